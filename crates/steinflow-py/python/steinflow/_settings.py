"""The settings of a run as the compiled half reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steinflow import _steinflow


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
    settings["bandwidth"] = text(settings["bandwidth"])
    return settings


def known_parameters() -> set[str]:
    """The names of all settings that only some methods have."""
    names = {name for _, _, parameters, _, _ in _steinflow.methods() for name in parameters}
    return (names - {"metric"}) | {"metric_scale", "metric_offset", "metric_sign"}


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
        name: float(value)
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
