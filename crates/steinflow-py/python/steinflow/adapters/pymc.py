"""A PyMC model: through JAX where it is installed, by PyMC's own compiled function otherwise."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from steinflow._target import NARROW, Target, missing
from steinflow._tree import Layout
from steinflow.adapters import jax as jax_adapter


def target(model: Any, dtype: np.dtype | None) -> Target:
    """The model's log joint density over its value variables, which are unconstrained.

    Particles start around the model's initial point, with a spread of 0.1 on the unconstrained scale.
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
    layout = Layout.of_names(names, [np.shape(point[name]) for name in names])
    centre = np.concatenate([np.ravel(point[name]) for name in names]).astype(np.float64)
    # A transformed variable is there twice, and its unconstrained half is beside the result anyway.
    own = {variable.name for variable in model.free_RVs}
    outputs = [v for v in model.unobserved_value_vars if v.name not in names or v.name in own]
    kept = [variable.name for variable in outputs]

    def constrained(rows: np.ndarray) -> Any:
        function = model.compile_fn(outputs, inputs=model.value_vars, point_fn=False)
        found = [function(*_values(layout, row)) for row in rows.astype(np.float64)]
        return (np.stack(column) for column in zip(*found, strict=True))

    def target_of(through: Target, constrained: Any) -> Target:
        through.posterior = True
        through.start = (centre, NARROW)
        through.constrain = lambda rows: {
            name: np.asarray(column) for name, column in zip(kept, constrained(rows), strict=True)
        }
        return through

    if find_spec("jax") is not None:
        return target_of(*_through_jax(model, layout, dtype, outputs))
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})

    def evaluate(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        found = [function(row) for row in theta.astype(np.float64)]
        values = np.array([value for value, _ in found], theta.dtype)
        return values, np.array([gradient for _, gradient in found], theta.dtype)

    own_precision = dtype or np.dtype("float64")
    return target_of(Target("PyMC model", evaluate, layout, own_precision), constrained)


def _values(layout: Layout, row: np.ndarray) -> list[np.ndarray]:
    return list(layout.split(row).values())


def _through_jax(
    model: Any, layout: Layout, dtype: np.dtype | None, outputs: list[Any]
) -> tuple[Target, Any]:
    from pymc.sampling.jax import get_jaxified_graph, get_jaxified_logp

    jax = jax_adapter.import_jax()
    dtype = jax_adapter.precision(jax, dtype)
    logp = get_jaxified_logp(model)
    target = jax_adapter.from_flat(
        "PyMC model", lambda flat: logp(_values(layout, flat)), layout, dtype
    )
    graph = get_jaxified_graph(inputs=model.value_vars, outputs=outputs)
    return target, jax.jit(jax.vmap(lambda flat: graph(*_values(layout, flat))))
