"""Fields and kernels of your own: how particles move each other, as a function of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steinflow import testing
from steinflow._low_level import bandwidth


@dataclass(frozen=True)
class Instant:
    """All particles at one instant, as a field sees them; arrays of float64."""

    names: list[str]
    """The blocks of z: `theta`, and auxiliary variables such as `r`."""
    state: np.ndarray
    """z = (θ, r, …), `(N, blocks · d)`."""
    gradient: np.ndarray
    """∇log π(z), shaped as the state: the score, and that of the auxiliary variables' Gaussians."""
    drift: np.ndarray
    """f = (A + C)∇log π(z) + ∇·(A + C), shaped as the state."""
    coefficients: np.ndarray
    """What A and C are made of at every particle, with a leading 1."""
    _acting: Any

    def block(self, name: str) -> np.ndarray:
        """One block of the state, `(N, d)`."""
        place, dim = self.names.index(name), self.state.shape[1] // len(self.names)
        return self.state[:, place * dim : (place + 1) * dim]

    def apply(self, u: Any, coefficients: Any = None) -> np.ndarray:
        """(A + C) u for every row of u, at its own particle or with other coefficient rows.

        A + C is linear in them, so that Σⱼ wᵢⱼ (A + C)(zⱼ) is what `w @ coefficients` gives.
        """
        rows = self.coefficients if coefficients is None else coefficients
        return self._acting(np.asarray(rows, np.float64), np.asarray(u, np.float64))


class Kernel:
    """A radial kernel k(z, z′) = φ(|z − z′|²/h) of your own, for the Stein field of any dynamics.

    >>> import numpy as np, steinflow
    >>> rational = steinflow.Kernel(lambda q: 1 / (1 + q), lambda q: 2 / (1 + q) ** 2)
    >>> result = steinflow.sample("standard-normal", method="svgd", field=rational, progress=False)
    >>> bool(np.abs(result.particles.mean(axis=0)).max() < 0.3)
    True

    The sums are NumPy's, over all pairs at once: an N×N matrix, for some thousand particles at most.

    Parameters
    ----------
    value
        φ, of an array of q = |z − z′|²/h.
    slope
        −2φ′, of the same. It is compared with differences of φ here, before anything moves.
    bandwidth
        h, or the name of a rule for it.
    """

    def __init__(
        self,
        value: Callable[[np.ndarray], Any],
        slope: Callable[[np.ndarray], Any],
        bandwidth: str | float = "median-log",
    ) -> None:
        testing.check_kernel(value, slope)
        self.value, self.slope, self.bandwidth = value, slope, bandwidth

    def __call__(self, at: Instant) -> np.ndarray:
        """N vᵢ = Σⱼ kᵢⱼ f(zⱼ) + (A + C)(zⱼ) sᵢⱼ (zᵢ − zⱼ), with s the slope over h."""
        # Differences stay what they are, and lose fewer digits, around the mean.
        z = at.state - at.state.mean(axis=0)
        h = bandwidth(z, self.bandwidth)
        norms = np.sum(z**2, axis=1)
        squares = np.maximum(norms[:, None] + norms - 2 * z @ z.T, 0)
        np.fill_diagonal(squares, 0)
        k, s = np.asarray(self.value(squares / h)), np.asarray(self.slope(squares / h)) / h
        repulsion = at.apply(z, s @ at.coefficients) - s @ at.apply(z)
        return (k @ at.drift + repulsion) / len(z)


def callback(field: Any) -> Callable[..., np.ndarray] | None:
    """What the compiled half calls for a field, or None where there is none."""
    if field is None:
        return None
    if not callable(field):
        raise TypeError(
            f"field is {type(field).__name__}: give a steinflow.Kernel, or a function of all particles "
            "at one instant that returns their velocity"
        )

    def call(names: list[str], state: np.ndarray, *rest: Any) -> np.ndarray:
        found = np.asarray(field(Instant(names, state, *rest)), np.float64)
        if found.shape != state.shape:
            raise ValueError(
                f"your field returned a velocity of shape {found.shape}, expected {state.shape}: one "
                f"row for each particle, with the blocks {', '.join(names)}"
            )
        return found

    return call
