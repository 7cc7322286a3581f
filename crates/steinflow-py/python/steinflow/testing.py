"""Laws that dynamics and kernels of your own have to obey: what breaks one is a mistake in a formula.

`sample`, `sampler` and `velocity` check small dynamics by themselves, and a `Kernel` is checked when it
is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow import _steinflow
from steinflow._steinflow import LawBroken

MOST_CHECKED = 64
"""Dynamics of up to so many numbers a particle are checked before they are used, by dense matrices."""


def check_dynamics(dynamics: Any, dim: int, *, states: Any = None, seed: int = 0) -> None:
    """Checks that A is positive semidefinite, C skew, and the divergences those of A and C.

    >>> import numpy as np, steinflow
    >>> hurried = steinflow.Dynamics(
    ...     diffusion={"theta": steinflow.Coefficient(0)},
    ...     coefficients=lambda at: [1 + 0.3 * np.sum(at.theta**2)],
    ...     diffusion_divergence=lambda at: 0.5 * at.theta,  # 0.6 would be right
    ... )
    >>> steinflow.testing.check_dynamics(hurried, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    steinflow.LawBroken: diffusion divergence = Σⱼ ∂Aᵢⱼ/∂zⱼ: at ...

    `states` are rows z = (θ, r, …) to check at; random ones without.
    """
    blocks = len(dynamics.block_names)
    if states is None:
        states = np.random.default_rng(seed).standard_normal((3, blocks * dim))
        for place, (_, mean, variance) in enumerate(dynamics.auxiliaries, 1):
            block = states[:, place * dim : (place + 1) * dim]
            block[:] = mean + np.sqrt(max(variance, 0)) * block
    states = np.require(states, np.float64, "CA")
    if states.ndim != 2 or states.shape[1] != blocks * dim:
        raise ValueError(f"states has shape {states.shape}, expected (rows, {blocks * dim})")
    _steinflow.check_dynamics(dynamics, states, dim)


def check_kernel(value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> None:
    """Checks that φ(0) is finite and positive, and that the slope is −2φ′.

    >>> check_kernel(lambda q: np.exp(-q), lambda q: 2 * np.exp(-q))
    >>> check_kernel(lambda q: np.exp(-q), lambda q: np.exp(-q))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    steinflow.LawBroken: slope = −2φ′: at q = 0.1 found 0.9048..., expected 1.809...
    """
    q = np.array([0.1, 0.5, 1.0, 3.0, 10.0])
    step = 1e-5 * q
    values, slopes = np.asarray(value(q), float), np.asarray(slope(q), float)
    for name, found in (("value", values), ("slope", slopes)):
        if found.shape != q.shape:
            raise ValueError(
                f"the kernel's {name} returned shape {found.shape} for {q.shape}: write it for arrays"
            )
    origin = float(np.asarray(value(np.zeros(1)))[0])
    if not (np.isfinite(origin) and origin > 0 and np.isfinite(slope(np.zeros(1))).all()):
        raise LawBroken(f"φ(0) > 0, with a finite slope there: at q = 0 found {origin}")
    differences = np.asarray(value(q + step), float) - np.asarray(value(q - step), float)
    expected = -differences / step
    for at, found, wanted in zip(q, slopes, expected, strict=True):
        if not abs(found - wanted) <= 1e-6 * (abs(wanted) + abs(origin)):
            raise LawBroken(f"slope = −2φ′: at q = {at} found {found}, expected {wanted}")


def check_before_use(dynamics: Any, dim: int) -> None:
    """Checks dynamics that have functions of their own, where that takes no time to speak of."""
    if dynamics is None:
        return
    functions = (dynamics.coefficients, dynamics.diffusion_divergence, dynamics.curl_divergence)
    varies = any(function is not None for function in functions)
    is_small = len(dynamics.block_names) * dim <= MOST_CHECKED
    if varies and is_small and dim not in dynamics.checked:
        check_dynamics(dynamics, dim)
        dynamics.checked.add(dim)
