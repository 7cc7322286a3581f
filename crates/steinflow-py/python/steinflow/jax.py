"""The posterior over the weights of a network in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steinflow import _ensemble
from steinflow.adapters.jax import import_jax, on_the_cpu


@_ensemble.documented
class Ensemble(_ensemble.Ensemble):
    """Particles that are pytrees of weights.

    ::

        ensemble = steinflow.jax.Ensemble(network, start, "categorical", particles=20)
        ensemble.fit(batches, epochs=100, rows=len(x))
        ensemble.predict(x_test).mean  # probabilities of the classes

    Parameters
    ----------
    apply
        `apply(weights, inputs)`, the outputs of one network.
    start
        `start(key)`, the weights of one network; or weights with a leading axis of particles.
    {parameters}
    """

    _backend = "jax"

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        start: Any,
        likelihood: Any,
        *,
        particles: int = 20,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self._jax = jax = import_jax()
        if callable(start):
            keys = jax.random.split(jax.random.PRNGKey(0 if seed is None else seed), particles)
            start = on_the_cpu(jax, jax.vmap(start)(keys))
        self._output = apply
        self._forward = jax.jit(jax.vmap(apply, in_axes=(0, None)))
        super().__init__(start, likelihood, seed=seed, **settings)

    def _log_probability(self, outputs: Any, targets: Any) -> Any:
        rows = self._jax.numpy.arange(len(targets))
        return self._jax.nn.log_softmax(outputs)[rows, targets]

    def _squared_norm(self, weights: Any) -> Any:
        return sum((leaf**2).sum() for leaf in self._jax.tree_util.tree_leaves(weights))
