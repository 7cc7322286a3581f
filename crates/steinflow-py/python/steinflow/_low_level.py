"""The pieces, for a loop of your own: arrays in, arrays out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from steinflow import _settings, _steinflow, testing
from steinflow._tree import numbers


def _rows(array: Any, what: str, dtype: Any = None) -> np.ndarray:
    rows = numbers(array)
    if rows.dtype.kind not in "fiu":
        raise TypeError(f"{what} has dtype {rows.dtype}: give an array of numbers")
    if dtype is None and rows.dtype not in (np.dtype("float32"), np.dtype("float64")):
        dtype = np.float64
    rows = np.require(rows, dtype, "A")
    if rows.ndim != 2:
        raise ValueError(f"{what} has shape {rows.shape}: give one row for each particle")
    return rows


def velocity(
    particles: Any,
    score: Any,
    *,
    method: str = "svgd",
    log_density: Any = None,
    dynamics: Any = None,
    field: Any = None,
    **settings: Any,
) -> np.ndarray:
    """The velocity of every particle.

    >>> import numpy as np, steinflow
    >>> particles = np.array([[0.0], [1.0], [3.0]])
    >>> for _ in range(500):
    ...     score = -particles  # of a standard normal
    ...     particles = particles + 0.1 * steinflow.velocity(particles, score)
    >>> bool(abs(particles.mean()) < 1e-3)
    True

    Parameters
    ----------
    particles
        `(N, d)`; for methods with momentum the whole state (θ, r, …), `(N, blocks · d)`.
    score
        ∇log π(θ) of every particle, `(N, d)`.
    method, dynamics, field, **settings
        As for `steinflow.sample`: `kernel`, `kernel_on`, `bandwidth`, and what the method has.
    log_density
        log π(θ), for metrics that read it.

    Returns
    -------
    numpy.ndarray
        Shaped as `particles`. The noise of a stochastic method is not in it.
    """
    from steinflow._field import callback

    state = _rows(particles, "particles")
    score = _rows(score, "score", state.dtype)
    testing.check_before_use(dynamics, score.shape[1])
    # Nothing is evaluated where a step size is given.
    target = SimpleNamespace(function=None, dim=score.shape[1], data_rows=0, names=None)
    given = {"method": method, "step_size": 1.0, "warm_up": False, **settings}
    config = _steinflow.Config.resolve(given, target, dynamics=dynamics, field=callback(field))
    known = None if log_density is None else np.ravel(numbers(log_density)).astype(float).tolist()
    return _steinflow.velocity(state, score, known, config)


def jax_velocity(particles: Any, score: Any, **settings: Any) -> Any:
    """`velocity` for traced JAX arrays: usable in `jax.jit` and `jax.lax.scan`, through a callback.

    Its settings are those of `velocity`. It has no derivative of its own.
    """
    from steinflow.adapters.jax import import_jax, warn_of_travel

    jax = import_jax()
    warn_of_travel(jax)
    shape = jax.ShapeDtypeStruct(particles.shape, particles.dtype)

    def call(state: Any, gradient: Any) -> np.ndarray:
        return velocity(np.asarray(state), np.asarray(gradient), **settings)

    return jax.pure_callback(call, shape, particles, score, vmap_method="sequential")


def kernel_sums(
    particles: Any, values: Any, *, kernel: str = "se", bandwidth: Any = "median-log"
) -> np.ndarray:
    """K·values without the N×N matrix K, kᵢⱼ = φ(|xᵢ − xⱼ|²/h).

    >>> import numpy as np, steinflow
    >>> steinflow.kernel_sums(np.zeros((3, 1)), np.ones((3, 1)), bandwidth=1.0).ravel().tolist()
    [3.0, 3.0, 3.0]
    """
    points = _rows(particles, "particles")
    values = _rows(values, "values", points.dtype)
    return _steinflow.kernel_sums(points, values, kernel, _settings.text(bandwidth))


def bandwidth(particles: Any, rule: Any = "median-log") -> float:
    """h of a rule for these particles.

    >>> import numpy as np, steinflow
    >>> steinflow.bandwidth(np.array([[0.0], [3.0], [4.0]]), "median")
    9.0
    """
    return _steinflow.bandwidth(_rows(particles, "particles"), _settings.text(rule))


def ksd(
    particles: Any,
    score: Any,
    *,
    kernel: str = "imq",
    bandwidth: Any = "median",
    statistic: str = "v",
) -> float:
    """Kernel Stein discrepancy: how far particles are from the density with these scores.

    >>> import numpy as np, steinflow
    >>> x = np.random.default_rng(0).standard_normal((500, 2))
    >>> steinflow.ksd(x, -x) < steinflow.ksd(x + 1, -(x + 1))
    True

    `statistic="v"` returns √KSD² over all pairs; `"u"` the unbiased KSD², which can be negative. A low
    value does not mean that all modes are found.
    """
    points = _rows(particles, "particles")
    score = _rows(score, "score", points.dtype)
    rule = _settings.text(bandwidth)
    squared = _steinflow.squared_ksd(points, score, kernel, rule, statistic)
    return float(np.sqrt(max(squared, 0.0))) if statistic == "v" else squared
