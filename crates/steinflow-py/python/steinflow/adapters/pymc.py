"""A PyMC model: through JAX where it is installed, by PyMC's own compiled function otherwise."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from steinflow import _steinflow
from steinflow._target import Target, missing
from steinflow._tree import Layout
from steinflow.adapters import jax as jax_adapter


def target(model: Any, dtype: np.dtype | None) -> Target:
    """The model's log joint density over its value variables, which are unconstrained.

    Particles start around the model's initial point, with unit spread on the unconstrained scale.
    """
    try:
        import pymc  # noqa: F401
    except ImportError as error:
        raise missing("PyMC", "a PyMC model", "pymc") from error
    point = model.initial_point()
    names = tuple(variable.name for variable in model.value_vars)
    discrete = [v.name for v in model.value_vars if v.dtype.startswith(("int", "bool", "uint"))]
    if discrete:
        raise ValueError(
            f"the model has discrete variables ({', '.join(discrete)}), which have no gradient: "
            "sum them out"
        )
    layout = Layout(
        names,
        tuple(np.shape(point[name]) for name in names),
        lambda leaves: dict(zip(names, leaves, strict=True)),
    )
    centre = np.concatenate([np.ravel(point[name]) for name in names]).astype(np.float64)
    # A transformed variable is there twice, and its unconstrained half is beside the result anyway.
    own = {variable.name for variable in model.free_RVs}
    outputs = [v for v in model.unobserved_value_vars if v.name not in names or v.name in own]
    kept = [variable.name for variable in outputs]
    compiled: list[Any] = []

    def constrain(rows: np.ndarray) -> dict[str, np.ndarray]:
        if not compiled:
            compiled.append(model.compile_fn(outputs, inputs=model.value_vars, point_fn=False))
        found = [compiled[0](*_values(layout, row)) for row in rows.astype(np.float64)]
        columns = [np.stack(column) for column in zip(*found, strict=True)]
        return {name: column for name, column in zip(kept, columns, strict=True)}

    more = {
        "posterior": True,
        "start": lambda count, seed: centre + _steinflow.standard_normal(count, layout.dim, seed),
        "constrain": constrain,
    }
    if find_spec("jax") is not None:
        return _through_jax(model, layout, dtype, more)
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})

    def evaluate(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        found = [function(row) for row in theta.astype(np.float64)]
        values = np.array([value for value, _ in found], theta.dtype)
        return values, np.array([gradient for _, gradient in found], theta.dtype)

    return Target("PyMC model", evaluate, layout, dtype or np.dtype("float64"), **more)


def _values(layout: Layout, row: np.ndarray) -> list[np.ndarray]:
    return list(layout.split(row).values())


def _through_jax(model: Any, layout: Layout, dtype: np.dtype | None, more: Any) -> Target:
    from pymc.sampling.jax import get_jaxified_logp

    jax = jax_adapter.import_jax()
    dtype = jax_adapter.precision(jax, dtype)
    logp = get_jaxified_logp(model)
    return jax_adapter.from_flat(
        "PyMC model", lambda flat: logp(_values(layout, flat)), layout, dtype, **more
    )
