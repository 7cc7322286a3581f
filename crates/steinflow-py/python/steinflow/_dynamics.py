"""Dynamics (A, C) of your own: the blocks of A and C, and functions for what varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Coefficient:
    """A block whose numbers differ from particle to particle.

    `Coefficient(k)` is cₖ·I; with `kind="diagonal"` the diagonal cₖ … and with `kind="full"` the
    matrix cₖ … in row order, where c is what `Dynamics.coefficients` returns.
    """

    first: int
    kind: Literal["scalar", "diagonal", "full"] = "scalar"


class Dynamics:
    """A pair (A, C): A block-diagonal and positive semidefinite, C skew by construction.

    SGHMC with friction ½, whole:

    >>> import steinflow
    >>> sghmc = steinflow.Dynamics(
    ...     auxiliaries={"r": 1.0},
    ...     diffusion={"r": 0.5},
    ...     curl={("r", "theta"): 1.0},
    ... )
    >>> result = steinflow.sample("gaussian", method="stein", dynamics=sghmc, progress=False)
    >>> result.blocks
    ['theta', 'r']

    Parameters
    ----------
    auxiliaries
        Gaussian variables beside θ, one number per coordinate of θ: names with variances, or with
        (mean, variance).
    diffusion
        Blocks of A by name: a number, a vector (diagonal), a symmetric matrix, or a `Coefficient`.
    curl
        Blocks of C by (row, column); the other half follows by skewness.
    coefficients
        `coefficients(point)`: the numbers that `Coefficient` blocks refer to, at one particle.
        `point` has the blocks by name (`point.theta`, `point.r`), `point.log_density` and
        `point.score`. Called for every particle at every step: write the hot ones in Rust.
    diffusion_divergence, curl_divergence
        ∇·A and ∇·C by rows at one particle, one entry for each coordinate of (θ, r, …); needed where
        A or C vary. Those of few coordinates are compared with differences of A and C before a run.
    split
        Which blocks move together in symmetric splitting, from the outermost half steps inwards.
    reads_density
        Whether coefficients and divergences use `log_density` or `score`.
    """

    def __init__(
        self,
        *,
        auxiliaries: Mapping[str, float | tuple[float, float]] | None = None,
        diffusion: Mapping[str, Any] | None = None,
        curl: Mapping[tuple[str, str], Any] | None = None,
        coefficients: Callable[[Any], Any] | None = None,
        diffusion_divergence: Callable[[Any], Any] | None = None,
        curl_divergence: Callable[[Any], Any] | None = None,
        split: Sequence[Sequence[str]] | None = None,
        reads_density: bool = True,
    ) -> None:
        self.auxiliaries = [
            (name, *(law if isinstance(law, tuple) else (0.0, law)))
            for name, law in (auxiliaries or {}).items()
        ]
        self.block_names = ["theta", *(name for name, *_ in self.auxiliaries)]
        self.diffusion_blocks = [
            (self._block(name), _block(value)) for name, value in (diffusion or {}).items()
        ]
        self.curl_blocks = [
            (self._block(row), self._block(column), _block(value))
            for (row, column), value in (curl or {}).items()
        ]
        self.stages: list[list[int]] | None = None
        if split is not None:
            self.stages = [[self._block(name) for name in stage] for stage in split]
        self.reads_density = reads_density
        self.checked: set[int] = set()
        """The dimensions in which it has been found to obey the laws of `steinflow.testing`."""
        self.coefficients = self._at_point(coefficients, "coefficients")
        self.diffusion_divergence = self._at_point(diffusion_divergence, "diffusion_divergence")
        self.curl_divergence = self._at_point(curl_divergence, "curl_divergence")
        if coefficients is None and any(
            isinstance(value, Coefficient)
            for value in [*(diffusion or {}).values(), *(curl or {}).values()]
        ):
            raise ValueError("a block has a Coefficient, but no coefficients function was given")

    def _block(self, name: str) -> int:
        if name not in self.block_names:
            known = ", ".join(self.block_names)
            raise ValueError(f"there is no block {name!r}; known: {known}")
        return self.block_names.index(name)

    def _at_point(self, function: Callable[[Any], Any] | None, what: str) -> Any:
        if function is None:
            return None
        names = self.block_names

        def call(blocks: Any, log_density: float, score: Any, size: int, precision: str) -> Any:
            point = SimpleNamespace(
                **dict(zip(names, blocks, strict=True)), log_density=log_density, score=score
            )
            found = np.asarray(function(point), np.float64).reshape(-1)
            if len(found) != size:
                raise ValueError(f"{what} returned {len(found)} numbers, expected {size}")
            return found

        return call


def _block(value: Any) -> tuple[str, list[float]]:
    if isinstance(value, Coefficient):
        plural = "scalar-coefficient" if value.kind == "scalar" else f"{value.kind}-coefficients"
        return plural, [float(value.first)]
    array = np.asarray(value, np.float64)
    kinds = ("scalar", "diagonal", "full")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(
            f"a block has shape {array.shape}: give a number, a vector (diagonal) or a square matrix"
        )
    return kinds[array.ndim], [float(x) for x in array.ravel()]
