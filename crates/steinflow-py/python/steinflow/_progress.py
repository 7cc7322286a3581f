"""A bar that shows how far a run is: on a terminal, in a notebook, or not at all."""

from __future__ import annotations

import html
import sys
from typing import Any

WIDTH = 30


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def line(title: str, step: int, total: int, seconds: float) -> str:
    """One line of text.

    >>> line("svgd", 50, 200, 2.0)
    'svgd: 50/200 steps, 25 %, 2 s, 6 s to go'
    """
    share = step / total if total else 1.0
    left = f", {seconds * (1 - share) / share:.0f} s to go" if 0 < share < 1 else ""
    return f"{title}: {step}/{total} steps, {share:.0%}, {seconds:.0f} s{left}".replace("%", " %")


def stage_line(title: str, stage: str, effective: tuple[float, float], seconds: float) -> str:
    """One line about an ensemble.

    >>> stage_line("auto", "draw", (500.2, 2000.0), 3.2)
    'auto: draw, 500 of 2000 effective draws, 3 s'
    >>> stage_line("auto", "climb", (0.0, 2000.0), 0.1)
    'auto: climb, 0 s'
    """
    found, wanted = effective
    draws = f", {found:.0f} of {wanted:.0f} effective draws" if found else ""
    return f"{title}: {stage}{draws}, {seconds:.0f} s"


class Bar:
    """Called with (step, total, seconds) now and then; draws itself where somebody can see it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.display: Any = None
        self.notebook = _in_notebook()
        self.terminal = not self.notebook and sys.stderr is not None and sys.stderr.isatty()

    @property
    def visible(self) -> bool:
        return self.notebook or self.terminal

    def __call__(
        self,
        step: int,
        total: int,
        seconds: float,
        stage: str | None = None,
        effective: tuple[float, float] | None = None,
    ) -> None:
        if stage is None or effective is None:
            text = line(self.title, step, total, seconds)
        else:
            text = stage_line(self.title, stage, effective, seconds)
        if self.terminal:
            filled = WIDTH * step // total if total else WIDTH
            bar = "█" * filled + "·" * (WIDTH - filled)
            sys.stderr.write(f"\r{bar} {text}\x1b[K")
            sys.stderr.flush()
        elif self.notebook:
            from IPython.display import HTML, display

            markup = f'<progress value="{step}" max="{total}"></progress> {html.escape(text)}'
            if self.display is None:
                self.display = display(HTML(markup), display_id=True)
            else:
                self.display.update(HTML(markup))

    def close(self) -> None:
        if self.terminal:
            sys.stderr.write("\n")
