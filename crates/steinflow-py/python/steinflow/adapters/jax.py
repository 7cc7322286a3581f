"""A JAX log density of one pytree of parameters: vectorised, compiled and differentiated here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow._target import Target, missing, not_a_scalar, of_data
from steinflow._tree import Layout, rows_of_data
from steinflow.adapters._compiled import compiled


def import_jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise missing("JAX", "a JAX function", "jax") from error
    return jax


def flatten(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    """As `steinflow._tree.flatten`, for every pytree that JAX knows."""
    jax = import_jax()
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    named = [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves
    ]
    return named, jax.tree_util.tree_unflatten(structure, range(len(leaves)))


def precision(jax: Any, dtype: np.dtype | None) -> np.dtype:
    """The precision JAX computes in, which is the one that the particles get."""
    own = np.dtype("float64" if jax.config.jax_enable_x64 else "float32")
    warn_of_travel(jax)
    if dtype is not None and dtype.itemsize > own.itemsize:
        raise TypeError(
            "the particles are float64 but JAX computes in float32: call "
            'jax.config.update("jax_enable_x64", True) first, or pass dtype="float32"'
        )
    return dtype or own


def warn_of_travel(jax: Any) -> None:
    """Says so where every step takes particles to a GPU and back."""
    place = jax.default_backend()
    if place != "cpu":
        warnings.warn(
            f"JAX computes on the {place}, and particles are moved on the CPU: they travel there and "
            'back at every step. Where that is slow, set JAX_PLATFORMS="cpu"',
            RuntimeWarning,
            stacklevel=2,
        )


def on_the_cpu(jax: Any, tree: Any) -> Any:
    """A pytree of arrays where particles are moved, wherever else JAX computes."""
    if jax.default_backend() == "cpu":
        return jax.tree_util.tree_map(jax.numpy.asarray, tree)
    return jax.device_put(tree, jax.local_devices(backend="cpu")[0])


def from_flat(
    name: str,
    flat_logdensity: Callable[[Any], Any],
    layout: Layout,
    dtype: np.dtype,
    **more: Any,
) -> Target:
    """A target from a traceable log density of one row of numbers."""
    jax = import_jax()
    require_scalar(jax, flat_logdensity, layout, dtype)
    batched = of_all(flat_logdensity)
    fitted = fitted_sizes()

    def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        value, gradient = batched(fitted(theta))
        # On a CPU these are views of JAX's own memory.
        return np.asarray(value)[: len(theta)], np.asarray(gradient)[: len(theta)]

    return Target(name, function, layout, dtype, **more)


def of_all(of_one: Callable[..., Any]) -> Callable[..., Any]:
    """Values and gradients for all rows of the first argument, of a function of one row."""
    jax = import_jax()

    def batched(theta: Any, *more: Any) -> Any:
        axes = (0, *(None for _ in more))
        return jax.vmap(jax.value_and_grad(of_one), in_axes=axes)(theta, *more)

    return compiled(jax, batched)


def evaluator(fn: Callable[..., Any], layout: Layout) -> Callable[..., tuple[Any, Any]]:
    """`fn(parameters, *batch)` of one particle, as a function of all rows and a batch."""
    warn_of_travel(import_jax())

    def of_one(flat: Any, *batch: Any) -> Any:
        return scalar(fn(layout.split(flat), *batch))

    return of_all(of_one)


def scalar(value: Any) -> Any:
    """The value, if it is one number."""
    shape = getattr(value, "shape", None)
    if shape != ():
        raise not_a_scalar(type(value).__name__ if shape is None else f"shape {shape}")
    return value


def fitted_sizes() -> Callable[[np.ndarray], np.ndarray]:
    """Pads batches to a few sizes: JAX compiles anew for every one, and particles that rest are not
    evaluated.

    >>> fitted = fitted_sizes()
    >>> [len(fitted(np.zeros((n, 1)))) for n in (100, 70, 3, 100)]
    [100, 100, 16, 100]
    """
    largest = 0

    def fitted(theta: np.ndarray) -> np.ndarray:
        nonlocal largest
        count = len(theta)
        largest = max(largest, count)
        size = min(largest, max(16, 1 << (count - 1).bit_length()))
        if size <= count:
            return theta
        return np.concatenate([theta, np.broadcast_to(theta[:1], (size - count, theta.shape[1]))])

    return fitted


def require_scalar(jax: Any, fn: Callable[[Any], Any], layout: Layout, dtype: np.dtype) -> None:
    """Refuses a function that does not give one number for one particle."""
    try:
        found = jax.eval_shape(fn, jax.ShapeDtypeStruct((layout.dim,), dtype))
    except Exception as error:
        shapes = layout.named(np.empty(layout.dim))
        given = ", ".join(f"{name} {np.shape(value)}" for name, value in shapes.items())
        error.add_note(f"steinflow: your function got the parameters of one particle: {given}")
        raise
    scalar(found)


def target(
    fn: Callable[..., Any] | None,
    layout: Layout,
    dtype: np.dtype | None,
    loglikelihood_fn: Any = None,
    logprior_fn: Any = None,
    data: Any = None,
) -> Target:
    """`fn(parameters)`, or `logprior_fn(parameters)` and `loglikelihood_fn(parameters, row)` of one
    row of the data."""
    jax = import_jax()
    dtype = precision(jax, dtype)
    if fn is not None:
        return from_flat("JAX function", lambda flat: fn(layout.split(flat)), layout, dtype)

    data = jax.tree_util.tree_map(jax.numpy.asarray, data)
    count = rows_of_data(jax.tree_util.tree_leaves(data))

    def by_row(flat: Any, batch: Any) -> Any:
        parameters = layout.split(flat)
        found = jax.vmap(lambda row: loglikelihood_fn(parameters, row))(batch)
        if found.ndim != 1:
            raise TypeError(
                f"your log likelihood returned shape {found.shape[1:]} for one row of the data, "
                "expected a scalar: the sum over rows is made for you"
            )
        return found

    def logdensity(flat: Any, batch: Any, scale: Any) -> Any:
        return logprior_fn(layout.split(flat)) + scale * by_row(flat, batch).sum()

    gradients = jax.vmap(jax.value_and_grad(logdensity), in_axes=(0, None, None))

    def on_rows(theta: Any, data: Any, rows: Any, scale: Any) -> Any:
        batch = jax.tree_util.tree_map(lambda array: array[rows], data)
        return gradients(theta, batch, scale)

    require_scalar(jax, lambda flat: logdensity(flat, data, 1.0), layout, dtype)
    on_all, on_rows = compiled(jax, gradients), compiled(jax, on_rows)
    of_draws = compiled(jax, jax.vmap(lambda flat, data: (by_row(flat, data),), in_axes=(0, None)))
    fitted = fitted_sizes()

    def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        if rows is not None:
            found = on_rows(theta, data, rows, dtype.type(scale))
            return np.asarray(found[0]), np.asarray(found[1])
        value, gradient = on_all(fitted(theta), data, dtype.type(1.0))
        return np.asarray(value)[: len(theta)], np.asarray(gradient)[: len(theta)]

    return of_data(
        "JAX", function, layout, dtype, count, lambda draws: np.asarray(of_draws(draws, data)[0])
    )
