"""The posterior over the weights of a network in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steinflow import _ensemble
from steinflow.adapters.jax import import_jax


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
    likelihood
        `categorical` (outputs are logits, targets whole numbers), `normal` with `noise_sd`, or a
        function of outputs and targets that returns the log likelihood of every row.
    particles, prior_sd, noise_sd, seed
        How many networks; the standard deviation of every weight before the data, and of the noise.
    settings
        As for `steinflow.sampler`; `method` too.
    """

    _backend = "jax"

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        start: Any,
        likelihood: Any,
        *,
        particles: int = 20,
        prior_sd: float = 1.0,
        noise_sd: float = 1.0,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        jax = import_jax()

        def categorical(outputs: Any, targets: Any) -> Any:
            return jax.nn.log_softmax(outputs)[jax.numpy.arange(len(targets)), targets]

        def normal(outputs: Any, targets: Any) -> Any:
            left = (targets - outputs.reshape(targets.shape)) / noise_sd
            return -0.5 * left**2 - jax.numpy.log(noise_sd)

        by_row = _ensemble.known_likelihood(
            likelihood, {"categorical": categorical, "normal": normal}
        )

        def log_density(weights: Any, x: Any, y: Any, scale: Any) -> Any:
            squares = [jax.numpy.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(weights)]
            return scale * by_row(apply(weights, x), y).sum() - 0.5 * sum(squares) / prior_sd**2

        if callable(start):
            keys = jax.random.split(jax.random.PRNGKey(0 if seed is None else seed), particles)
            start = jax.vmap(start)(keys)
        self._all = jax.jit(jax.vmap(apply, in_axes=(0, None)))
        super().__init__(start, log_density, likelihood, seed, settings)

    def _arrays(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y

    def _forward(self, weights: Any, x: Any) -> Any:
        return self._all(weights, x)
