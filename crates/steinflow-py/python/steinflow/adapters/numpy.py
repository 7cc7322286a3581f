"""A NumPy function of all particles that returns log densities and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow._target import Target
from steinflow._tree import Layout, flatten, numbers, rebuild, rows_of_data


def _leaves(gradient: Any, layout: Layout, count: int) -> list[Any]:
    """The gradient as arrays of rows, from one of them or from a pytree shaped as the parameters."""
    if layout.names == ("",):
        return [gradient]
    leaves = flatten(gradient)[0]
    if tuple(name for name, _ in leaves) != layout.names:
        raise ValueError(
            f"your function returned gradients for {[name for name, _ in leaves]}, expected "
            f"{list(layout.names)}"
        )
    return [np.reshape(leaf, (count, -1)) for _, leaf in leaves]


def _beside(leaves: list[Any]) -> Any:
    return leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis=1)


def pair(answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(
            f"your function returned {type(answer).__name__}, expected a pair: the log densities "
            "of all particles, and their gradients (JAX and PyTorch functions need none: pass "
            'backend="jax" or "torch")'
        )
    return answer


def evaluator(fn: Callable[..., Any], layout: Layout) -> Callable[..., tuple[Any, ...]]:
    """`fn(particles, *batch)` of all particles, as a function of rows and a batch that returns log
    densities and every leaf of the gradients."""

    def evaluate(theta: np.ndarray, *batch: Any) -> tuple[Any, ...]:
        value, gradient = pair(fn(layout.split(theta), *batch))
        return (value, *_leaves(gradient, layout, len(theta)))

    return evaluate


def target(
    fn: Callable[..., Any] | None,
    layout: Layout,
    dtype: np.dtype | None,
    loglikelihood_fn: Any = None,
    logprior_fn: Any = None,
    data: Any = None,
) -> Target:
    """The user's function, called as it is.

    `fn(theta)` gets all particles, an array `(N, d)` or a pytree with a leading axis, and returns the
    log densities `(N,)` and gradients of the shape of `theta`. `loglikelihood_fn(theta, rows)` and
    `logprior_fn(theta)` return such pairs too, the likelihood summed over `rows` of the data.
    """

    if fn is not None:
        evaluate = evaluator(fn, layout)

        def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
            value, *slopes = evaluate(theta)
            return value, _beside(slopes)

        return Target("NumPy function", function, layout, dtype or np.dtype("float64"))

    leaves, skeleton = flatten(data)
    arrays = [numbers(leaf) for _, leaf in leaves]
    count = rows_of_data(arrays)

    def with_data(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        chosen = rebuild(skeleton, [a if rows is None else a[rows] for a in arrays])
        parameters = layout.split(theta)
        likelihood, slope = pair(loglikelihood_fn(parameters, chosen))
        prior, prior_slope = pair(logprior_fn(parameters))
        slope = _beside(_leaves(slope, layout, len(theta)))
        prior_slope = _beside(_leaves(prior_slope, layout, len(theta)))
        return prior + scale * likelihood, prior_slope + scale * slope

    return Target(
        "NumPy likelihood and prior",
        with_data,
        layout,
        dtype or np.dtype("float64"),
        data_rows=count,
        posterior=True,
    )
