"""What can be asked for by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from steinflow import _settings, _steinflow
from steinflow._typed import ModelOptions


@dataclass(frozen=True)
class MethodInfo:
    """A sampler with a name."""

    name: str
    formula: str
    parameters: tuple[str, ...]
    reference: str
    deterministic: bool
    """Whether particles move by each other alone, without noise."""


@dataclass(frozen=True)
class ModelInfo:
    """A density that ships."""

    name: str
    title: str
    formula: str
    reference: str


def methods() -> list[MethodInfo]:
    """All samplers that have a name.

    >>> import steinflow
    >>> [m.name for m in steinflow.methods() if "friction" in m.parameters][:2]
    ['sghmc', 'sgnht']
    """
    return [MethodInfo(n, f, tuple(p), r, d) for n, f, p, r, d in _steinflow.methods()]


def models() -> list[ModelInfo]:
    """All densities that ship.

    >>> import steinflow
    >>> "tri-crescent" in [model.name for model in steinflow.models()]
    True
    """
    return [ModelInfo(*info) for info in _steinflow.models()]


@_settings.documented(_steinflow.model_options())
def model(name: str, **options: Unpack[ModelOptions]) -> _steinflow.BuiltIn:
    """A model that ships, with options.

    >>> import steinflow
    >>> steinflow.model("gaussian", dim=5).dim
    5

    Parameters
    ----------
    name
        One of `models()`.
    {settings}
    """
    return _steinflow.BuiltIn(name, **options)
