"""The posterior over the weights of a network: what the ensembles of JAX and PyTorch share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from steinflow import _sampler, _tree
from steinflow._sampler import State

METHOD = "sghmc-stein"


def settings_of(method: str) -> dict[str, Any]:
    """In coordinates that are scaled by the gradients, these suit small and middling networks."""
    own = {"friction": 1.0, "kernel_on": "theta"} if method == METHOD else {}
    return {"step_size": 0.3, "precondition": "rms", **own}


class Prediction(NamedTuple):
    """What the draws of the weights say of some inputs, together."""

    mean: np.ndarray
    """The mean over draws: of outputs, or of the probabilities of classes."""
    sd: np.ndarray
    """How far the draws disagree; the noise of the data is not in it."""


PARAMETERS = """likelihood
        `categorical` (outputs are logits, targets whole numbers), `normal` with `noise_sd`, or a
        function of outputs and targets that returns the log likelihood of every row.
    particles, prior_sd, noise_sd, seed
        How many networks; the standard deviation of every weight before the data, and of the noise.
    settings
        As for `steinflow.sampler`; `method` too."""


def documented(ensemble: type[Ensemble]) -> type[Ensemble]:
    """Puts the parameters that all ensembles have in the place of `{parameters}` in a docstring."""
    ensemble.__doc__ = (ensemble.__doc__ or "").replace("{parameters}", PARAMETERS)
    return ensemble


class Ensemble:
    """Particles that are whole sets of weights of the user's own network.

    Made by `steinflow.jax.Ensemble` or `steinflow.torch.Ensemble`. Weights have independent priors
    N(0, prior_sd²); the likelihood is that of the batches, scaled to all rows of the data.
    """

    _backend: str

    def __init__(
        self,
        weights: Any,
        likelihood: Any,
        *,
        prior_sd: float = 1.0,
        noise_sd: float = 1.0,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self.likelihood = likelihood
        for name, sd in (("prior_sd", prior_sd), ("noise_sd", noise_sd)):
            if not sd > 0:
                raise ValueError(f"{name} is {sd!r}: give a number above zero")
        by_row = self._by_row(likelihood, noise_sd)

        def log_density(weights: Any, x: Any, y: Any, scale: float) -> Any:
            of_rows = by_row(self._output(weights, x), y)
            if tuple(of_rows.shape) != (len(y),):
                raise ValueError(
                    f"the likelihood returned shape {tuple(of_rows.shape)} for {len(y)} rows: return "
                    "the log likelihood of every row, neither a sum nor a mean"
                )
            of_data = scale * of_rows.sum()
            return of_data - 0.5 * self._squared_norm(weights) / prior_sd**2

        method = settings.pop("method", METHOD)
        given = {**settings_of(method), **settings}
        self._sampler = _sampler.sampler(method, log_density, backend=self._backend, **given)
        self.state: State = self._sampler.init(weights, seed=seed)
        """Where the particles are: a value, which pickles. Setting it goes back, or elsewhere."""
        self._kept: list[Any] = []

    def _by_row(self, likelihood: Any, noise_sd: float) -> Callable[..., Any]:
        """The log likelihood of every row, as a function of outputs and targets."""
        if callable(likelihood):
            return likelihood
        if likelihood == "categorical":
            return self._log_probability

        def normal(outputs: Any, targets: Any) -> Any:
            left = (targets - outputs.reshape(targets.shape)) / noise_sd
            by_output = -0.5 * left**2 - math.log(noise_sd)
            return by_output.reshape(len(targets), -1).sum(-1)

        if likelihood == "normal":
            return normal
        raise ValueError(
            f"likelihood is {likelihood!r}: give 'categorical' or 'normal', or a function of outputs "
            "and targets that returns the log likelihood of every row"
        )

    def step(self, x: Any, y: Any, rows: int) -> None:
        """One step on a batch of inputs and targets, of data with so many rows."""
        self.state = self._sampler.step(self.state, *self._arrays(x, y), rows / len(y))

    def fit(
        self,
        batches: Iterable[tuple[Any, Any]],
        epochs: int = 1,
        *,
        rows: int | None = None,
        keep_from: int | None = None,
    ) -> Ensemble:
        """Goes through the batches, pairs of inputs and targets, so many times.

        `rows` is how many rows of data there are, known already of a PyTorch `DataLoader`. From epoch
        `keep_from` on, the particles at the end of an epoch are kept as further draws, for `predict`.
        """
        if rows is None:
            dataset = getattr(batches, "dataset", None)
            if dataset is None:
                raise ValueError(
                    "rows is not known: say how many rows of data the batches come from"
                )
            rows = len(dataset)
        for epoch in range(epochs):
            before = self.state.step
            for x, y in batches:
                self.step(x, y, rows)
            if self.state.step == before:
                raise ValueError(
                    f"there are no batches in epoch {epoch}: give a list or a DataLoader, which can be "
                    "gone through again, and no generator"
                )
            if keep_from is not None and epoch >= keep_from:
                self.keep()
        return self

    def keep(self) -> None:
        """Keeps the particles as draws, for `predict`."""
        self._kept.append(self.state.particles)

    @property
    def draws(self) -> list[Any]:
        """Stacks of weights, each with a leading axis of particles: those that are kept, or the last."""
        return self._kept or [self.state.particles]

    def outputs(self, x: Any) -> np.ndarray:
        """What the network says for each draw of the weights: `(draws, rows, …)`."""
        return np.concatenate([_tree.numbers(self._forward(w, x)) for w in self.draws])

    def predict(self, x: Any) -> Prediction:
        """Mean and disagreement of the draws: of probabilities for `categorical`, else of outputs."""
        found = self.outputs(x).astype(np.float64)
        if self.likelihood == "categorical":
            found = np.exp(found - found.max(axis=-1, keepdims=True))
            found /= found.sum(axis=-1, keepdims=True)
        return Prediction(found.mean(axis=0), found.std(axis=0))

    def _arrays(self, x: Any, y: Any) -> tuple[Any, Any]:
        """A batch, as the network takes it."""
        return x, y

    def _output(self, weights: Any, x: Any) -> Any:
        """What one network says."""
        raise NotImplementedError

    def _forward(self, weights: Any, x: Any) -> Any:
        """What a stack of networks says."""
        raise NotImplementedError

    def _log_probability(self, outputs: Any, targets: Any) -> Any:
        """The log probability of the class of every row, from logits."""
        raise NotImplementedError

    def _squared_norm(self, weights: Any) -> Any:
        """Σ w² over the weights of one network."""
        raise NotImplementedError
