"""The settings of a run as the compiled half reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steinflow import _steinflow
from steinflow._dynamics import Dynamics


def text(value: Any) -> str | None:
    """A number or a word, or several numbers, as the library's configs write them.

    >>> text(0.1), text("median"), text([1, 2.5]), text(None)
    ('0.1', 'median', '1,2.5', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return ",".join(str(float(one)) if isinstance(one, float) else str(one) for one in value)
    return repr(float(value)) if not isinstance(value, int) else str(value)


def whole(name: str, value: Any) -> int:
    """A count, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name} is {value!r}: give a whole number, zero or more")
    if value >= 2**63:
        raise ValueError(f"{name} is {value!r}: give a whole number below 2**63")
    return int(value)


def number(name: str, value: Any) -> float:
    """A number, or an error that names it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}: give a number") from None


def word(name: str, value: Any) -> str:
    """A name, or an error that says whose."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}: give its name, such as {name}={_EXAMPLES[name]!r}")
    return value


_EXAMPLES = {
    "method": "svgd",
    "kernel": "se",
    "kernel_on": "theta",
    "precondition": "rms",
    "non_finite": "shrink",
}
_KINDS = {
    whole: (
        "seed",
        "batch_size",
        "resample_every",
        "precondition_hold",
        "trace_every",
        "collect_from",
        "collect_every",
    ),
    number: ("budget", "tolerance"),
    word: tuple(_EXAMPLES),
}


def window(limits: Any) -> list[tuple[float, float]]:
    """Pairs of numbers, or an error that says so."""
    try:
        return [(float(low), float(high)) for low, high in limits]
    except (TypeError, ValueError):
        raise ValueError(
            f"window is {limits!r}: give (low, high) for each coordinate, such as [(-5, 5), (-5, 5)]"
        ) from None


def make(method: str, default_view: str = "joint", **given: Any) -> dict[str, Any]:
    """A complete dictionary, with what was not given left open."""
    open_settings: dict[str, Any] = dict.fromkeys(
        (
            "dynamics",
            "metric_sign",
            "kernel",
            "kernel_on",
            "bandwidth",
            "window",
            "batch_size",
            "budget",
            "tolerance",
            "resample_every",
            "precondition",
            "precondition_hold",
            "collect_from",
        )
    )
    settings = {
        **open_settings,
        "method": method,
        "parameters": {},
        "default_view": default_view,
        "phases": [],
        "seed": 0,
        "non_finite": "stop",
        "trace_every": 1,
        "collect_every": 1,
        **given,
    }
    for check, names in _KINDS.items():
        for name in names:
            if settings[name] is not None or name == "method":
                settings[name] = check(name, settings[name])
    if settings["window"] is not None:
        settings["window"] = window(settings["window"])
    if not isinstance(settings["dynamics"], (Dynamics, type(None))):
        kind = type(settings["dynamics"]).__name__
        raise TypeError(f"dynamics is {kind}: give a steinflow.Dynamics")
    settings["bandwidth"] = text(settings["bandwidth"])
    return settings


def known_parameters() -> set[str]:
    """The names of all settings that only some methods have."""
    return {name for _, _, parameters, _, _ in _steinflow.methods() for name in parameters}


def split_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The settings for `**parameters`; a name that no method has is refused."""
    import difflib

    known = known_parameters()
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *_OTHERS], 1)
            hint = f", did you mean {near[0]}?" if near else f"; methods have: {sorted(known)}"
            raise TypeError(f"sample() has no setting {name}{hint}")
    numbers = {
        name: number(name, value)
        for name, value in parameters.items()
        if name != "metric_sign" and value is not None
    }
    return {"parameters": numbers, "metric_sign": parameters.get("metric_sign")}


_OTHERS = (
    "method",
    "particles",
    "steps",
    "step_size",
    "integrator",
    "phases",
    "seed",
    "batch_size",
    "bandwidth",
    "kernel",
    "kernel_on",
    "callbacks",
    "progress",
    "resample_every",
    "collect_from",
    "collect_every",
    "non_finite",
    "tolerance",
    "budget",
    "dtype",
    "backend",
    "shapes",
    "tune",
)
