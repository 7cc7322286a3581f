"""What can be asked for by name."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from steinflow import _steinflow


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


def model(
    name: str,
    *,
    dim: int | None = None,
    data: str | PathLike[str] | None = None,
    target: str | None = None,
    prior_sd: float | None = None,
    noise_sd: float | None = None,
    condition: float | None = None,
) -> _steinflow.BuiltIn:
    """A model that ships, with options.

    >>> import steinflow
    >>> steinflow.model("gaussian", dim=5).dim
    5

    Parameters
    ----------
    name
        One of `models()`.
    dim
        The number of coordinates, for models that come in any.
    data, target
        The CSV file of a regression, or the name of a data set, and the column to predict.
    prior_sd, noise_sd
        Standard deviations of a regression.
    condition
        Largest over smallest variance of the `gaussian` with a `dim`.
    """
    return _steinflow.BuiltIn(
        name,
        dim=dim,
        data=data,
        target=target,
        prior_sd=prior_sd,
        noise_sd=noise_sd,
        condition=condition,
    )
