"""The settings of a run: keyword arguments, from the table that the command's flags come from too."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from steinflow import _steinflow

F = TypeVar("F", bound=Callable[..., Any])


def documented(table: list[tuple[str, str, str]]) -> Callable[[F], F]:
    """Puts the settings of a table in the place of `{settings}` in a docstring."""

    def add(function: F) -> F:
        rows = []
        for name, _, help in table:
            rows.append(name)
            text = help.replace("`steinflow methods`", "`steinflow.methods()`")
            rows.append(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))
        described = textwrap.indent("\n".join(rows), "    ").lstrip()
        function.__doc__ = (function.__doc__ or "").replace("{settings}", described)
        return function

    return add


def text(value: Any) -> str:
    """A number or a word as the compiled half reads it.

    >>> text(0.1), text("median"), text(2)
    ('0.1', 'median', '2')
    """
    return value if isinstance(value, str) else repr(value)


def typed() -> str:
    """The text of `_typed.py`, which editors and type checkers read."""
    lines = [
        '"""What `sample` and `model` take by keyword: written by `python -m steinflow._settings`."""',
        "",
        "from collections.abc import Sequence",
        "from os import PathLike",
        "from typing import TypedDict",
    ]
    tables = {"RunSettings": _steinflow.settings(), "ModelOptions": _steinflow.model_options()}
    for name, table in tables.items():
        lines += ["", "", f"class {name}(TypedDict, total=False):"]
        lines += [f"    {setting}: {kind} | None" for setting, kind, _ in table]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(typed(), end="")
