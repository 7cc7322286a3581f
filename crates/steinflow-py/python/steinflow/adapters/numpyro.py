"""A NumPyro model with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from steinflow._target import NARROW, Target, missing
from steinflow._tree import Layout
from steinflow.adapters.jax import flatten, from_flat, import_jax, precision


def target(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dtype: np.dtype | None,
) -> Target:
    """The model's log joint density over its unconstrained sites.

    Particles start around the medians of the prior, with a spread of 0.1 on the unconstrained scale.
    """
    jax = import_jax()
    try:
        import numpyro
        from numpyro.infer.initialization import init_to_median
        from numpyro.infer.util import initialize_model
    except ImportError as error:
        raise missing("NumPyro", "a NumPyro model", "numpyro") from error
    dtype = precision(jax, dtype)
    info = initialize_model(
        jax.random.PRNGKey(0),
        model,
        init_strategy=init_to_median,
        # A start without a finite score is the run's to report, and need not be compiled for twice.
        validate_grad=False,
        model_args=tuple(args),
        model_kwargs=dict(kwargs),
    )
    position = info.param_info.z
    leaves, skeleton = flatten(position)
    layout = Layout(
        tuple(name for name, _ in leaves), tuple(np.shape(leaf) for _, leaf in leaves), skeleton
    )
    centre = np.concatenate([np.ravel(leaf) for _, leaf in leaves]).astype(np.float64)
    constrained = jax.jit(jax.vmap(lambda flat: info.postprocess_fn(layout.split(flat))))

    def constrain(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in constrained(rows).items()}

    seeded = numpyro.handlers.seed(model, jax.random.PRNGKey(0))
    sites = numpyro.handlers.trace(seeded).get_trace(*args, **kwargs).items()
    seen = [
        (name, site) for name, site in sites if site["type"] == "sample" and site["is_observed"]
    ]

    def log_likelihood(rows: np.ndarray) -> dict[str, np.ndarray]:
        found = numpyro.infer.log_likelihood(model, constrain(rows), *args, **kwargs)
        return {name: np.asarray(value) for name, value in found.items()}

    def predict(rows: np.ndarray) -> dict[str, np.ndarray]:
        fresh = numpyro.infer.Predictive(numpyro.handlers.uncondition(model), constrain(rows))
        found = fresh(jax.random.PRNGKey(1), *args, **kwargs)
        return {name: np.asarray(found[name]) for name, _ in seen}

    return from_flat(
        "NumPyro model",
        lambda flat: -info.potential_fn(layout.split(flat)),
        layout,
        dtype,
        posterior=True,
        start=(centre, NARROW),
        constrain=constrain,
        log_likelihood=log_likelihood if seen else None,
        predict=predict if seen else None,
        observed=lambda: {name: np.asarray(site["value"]) for name, site in seen},
    )
