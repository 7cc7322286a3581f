"""A PyMC model: through JAX where it is installed, by PyMC's own compiled function otherwise."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from steinflow._target import NARROW, Target, missing
from steinflow._tree import Layout
from steinflow.adapters import jax as jax_adapter

Named = Callable[[np.ndarray], dict[str, np.ndarray]]
Compile = Callable[[list[Any], list[str]], Named]


def target(model: Any, dtype: np.dtype | None) -> Target:
    """The model's log joint density over its value variables, which are unconstrained.

    Particles start around the model's initial point, with a spread of 0.1 on the unconstrained scale.
    """
    try:
        import pymc
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
    shown = [v for v in model.unobserved_value_vars if v.name not in names or v.name in own]
    if find_spec("jax") is not None:
        made, compiled = _through_jax(model, layout, dtype)
    else:
        made, compiled = _through_pymc(model, layout, dtype)
    made.posterior = True
    made.start = (centre, NARROW)
    made.constrain = compiled(shown, [variable.name for variable in shown])

    # Those whose values are known whole: of others, some rows are parameters.
    seen = {v.name: model.rvs_to_values[v] for v in model.observed_RVs}
    seen = {name: value for name, value in seen.items() if hasattr(value, "data")}

    def predict(rows: np.ndarray) -> dict[str, np.ndarray]:
        import xarray

        values = {
            name: (["chain", "draw", *(f"{name}_{k}" for k in range(found.ndim - 1))], found[None])
            for name, found in made.constrain(rows).items()
        }
        drawn = pymc.sample_posterior_predictive(
            xarray.Dataset(values),
            model=model,
            var_names=list(seen),
            random_seed=1,
            progressbar=False,
            return_inferencedata=False,
        )
        return {name: np.asarray(found)[0] for name, found in drawn.items()}

    if seen:
        densities = model.logp(vars=[model[name] for name in seen], jacobian=False, sum=False)
        made.log_likelihood = compiled(densities, list(seen))
        made.predict = predict
        made.observed = lambda: {name: np.asarray(value.data) for name, value in seen.items()}
    return made


def _values(layout: Layout, row: np.ndarray) -> list[np.ndarray]:
    return list(layout.split(row).values())


def _through_jax(model: Any, layout: Layout, dtype: np.dtype | None) -> tuple[Target, Compile]:
    """The target, and what makes a function of rows of expressions of the model."""
    from pymc.sampling.jax import get_jaxified_graph, get_jaxified_logp

    jax = jax_adapter.import_jax()
    dtype = jax_adapter.precision(jax, dtype)
    logp = get_jaxified_logp(model)

    def compiled(outputs: list[Any], names: list[str]) -> Named:
        graph = get_jaxified_graph(inputs=model.value_vars, outputs=outputs)
        of_rows = jax.jit(jax.vmap(lambda flat: graph(*_values(layout, flat))))
        return lambda rows: dict(zip(names, map(np.asarray, of_rows(rows)), strict=True))

    density = lambda flat: logp(_values(layout, flat))  # noqa: E731
    return jax_adapter.from_flat("PyMC model", density, layout, dtype), compiled


def _through_pymc(model: Any, layout: Layout, dtype: np.dtype | None) -> tuple[Target, Compile]:
    """As `_through_jax`, one row at a time."""
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})

    def evaluate(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        found = [function(row) for row in theta.astype(np.float64)]
        values = np.array([value for value, _ in found], theta.dtype)
        return values, np.array([gradient for _, gradient in found], theta.dtype)

    def compiled(outputs: list[Any], names: list[str]) -> Named:
        def of_rows(rows: np.ndarray) -> dict[str, np.ndarray]:
            of_row = model.compile_fn(outputs, inputs=model.value_vars, point_fn=False)
            found = [of_row(*_values(layout, row)) for row in rows.astype(np.float64)]
            columns = (np.stack(column) for column in zip(*found, strict=True))
            return dict(zip(names, columns, strict=True))

        return of_rows

    own_precision = dtype or np.dtype("float64")
    return Target("PyMC model", evaluate, layout, own_precision), compiled
