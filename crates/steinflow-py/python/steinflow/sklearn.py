"""Networks with a posterior over their weights, as estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from steinflow._ensemble import METHOD, settings_of
from steinflow._sampler import sampler
from steinflow._target import missing

try:
    from scipy.special import ndtr
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise missing("scikit-learn", "steinflow.sklearn", "scikit-learn") from error

FLOOR = 1e-4
"""The least variance of noise, relative to that of y: data without any have no posterior."""


class _Network(BaseEstimator):
    """One hidden layer of tanh, with particles for its weights; inputs are standardised."""

    def __init__(
        self,
        hidden: int = 16,
        *,
        particles: int = 10,
        steps: int = 400,
        batch_size: int = 100,
        prior_sd: float = 1.0,
        step_size: float = 0.3,
        method: str = METHOD,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.particles = particles
        self.steps = steps
        self.batch_size = batch_size
        self.prior_sd = prior_sd
        self.step_size = step_size
        self.method = method
        self.random_state = random_state

    def _sample(self, x: np.ndarray, y: np.ndarray, outputs: int) -> None:
        """Fits the weights of networks with so many outputs; keeps those of the second half."""
        for name in ("hidden", "steps", "batch_size", "prior_sd"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: give a number above zero")
        random = check_random_state(self.random_state)
        self.centre_, self.scale_ = x.mean(axis=0), x.std(axis=0)
        self.scale_ = np.where(self.scale_ > 0, self.scale_, 1.0)
        x = (x - self.centre_) / self.scale_
        count, size = self.particles, min(self.batch_size, len(x))
        start = {
            "hidden": random.standard_normal((count, x.shape[1], self.hidden))
            / np.sqrt(x.shape[1]),
            "bias": np.zeros((count, self.hidden)),
            "out": random.standard_normal((count, self.hidden, outputs)) / np.sqrt(self.hidden),
            "shift": np.zeros((count, outputs)),
            "log_sd": np.zeros(count),
        }
        settings = settings_of(self.method) | {"step_size": self.step_size}
        steps = sampler(self.method, self._log_posterior, backend="numpy", **settings)
        state = steps.init(start, seed=int(random.randint(2**31)))
        self.draws_: list[dict[str, np.ndarray]] = []
        for step in range(self.steps):
            rows = random.permutation(len(x))[:size]
            state = steps.step(state, x[rows], y[rows], len(x) / size)
            if step >= self.steps // 2 and step % 20 == 0:
                self.draws_.append(state.particles)
        self.draws_.append(state.particles)

    def _forward(self, w: dict[str, np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = np.tanh(x @ w["hidden"] + w["bias"][:, None])
        return inside, inside @ w["out"] + w["shift"][:, None]

    def _log_posterior(
        self, w: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, scale: float
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """For all particles, by hand: log density and gradient."""
        inside, outputs = self._forward(w, x)
        value, slope, of_sd = self._likelihood(outputs, y, w["log_sd"])
        slope = scale * slope
        back = (slope @ w["out"].swapaxes(1, 2)) * (1 - inside**2)
        gradient = {
            "hidden": x.T @ back,
            "bias": back.sum(axis=1),
            "out": inside.swapaxes(1, 2) @ slope,
            "shift": slope.sum(axis=1),
            "log_sd": scale * of_sd,
        }
        value = scale * value
        for name, leaf in w.items():
            value = (
                value - 0.5 * np.sum((leaf**2).reshape(len(leaf), -1), axis=1) / self.prior_sd**2
            )
            gradient[name] = gradient[name] - leaf / self.prior_sd**2
        return value, gradient

    def _likelihood(
        self, outputs: np.ndarray, y: np.ndarray, log_sd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Summed over rows: log likelihood, and its slopes in the outputs and in log_sd."""
        raise NotImplementedError

    def _outputs(self, x: Any) -> np.ndarray:
        """Outputs of all draws: `(draws, rows, outputs)`."""
        check_is_fitted(self)
        x = validate_data(self, x, dtype=np.float64, reset=False)
        x = (x - self.centre_) / self.scale_
        return np.concatenate([self._forward(w, x)[1] for w in self.draws_])


class BayesianNetworkRegressor(RegressorMixin, _Network):
    """A network for regression, with the posterior over its weights and its noise.

    >>> import numpy as np, steinflow
    >>> x = np.linspace(-2, 2, 80)[:, None]
    >>> model = steinflow.sklearn.BayesianNetworkRegressor(random_state=0).fit(x, np.sin(2 * x[:, 0]))
    >>> mean, sd = model.predict(x, return_std=True)
    >>> bool(model.score(x, np.sin(2 * x[:, 0])) > 0.9), sd.shape
    (True, (80,))
    """

    def fit(self, x: Any, y: Any) -> BayesianNetworkRegressor:
        x, y = validate_data(self, x, y, dtype=np.float64, y_numeric=True)
        self.y_centre_, self.y_scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        self._sample(x, (y - self.y_centre_) / self.y_scale_, 1)
        return self

    def _likelihood(
        self, outputs: np.ndarray, y: np.ndarray, log_sd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.exp(2 * log_sd)[:, None] + FLOOR
        left = y - outputs[:, :, 0]
        value = np.sum(-0.5 * left**2 / variance - 0.5 * np.log(variance), axis=1)
        by_variance = np.sum(0.5 * left**2 / variance**2 - 0.5 / variance, axis=1)
        return value, (left / variance)[:, :, None], by_variance * 2 * np.exp(2 * log_sd)

    def predict(self, x: Any, return_std: bool = False) -> Any:
        """The mean, and with `return_std` the standard deviation of a new observation."""
        found = self._outputs(x)[:, :, 0]
        mean = self.y_centre_ + self.y_scale_ * found.mean(axis=0)
        if not return_std:
            return mean
        noise = np.mean(np.exp(2 * np.concatenate([w["log_sd"] for w in self.draws_])))
        return mean, self.y_scale_ * np.sqrt(found.var(axis=0) + noise + FLOOR)

    def predict_interval(self, x: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Limits that a new observation lies between with this probability."""
        if not 0 < level < 1:
            raise ValueError(f"level is {level!r}: give a probability between 0 and 1, such as 0.9")
        found = self._outputs(x)[:, :, 0]
        sd = np.exp(np.concatenate([w["log_sd"] for w in self.draws_]))
        sd = np.sqrt(sd**2 + FLOOR)[:, None]

        def quantile(share: float) -> np.ndarray:
            """Of the mixture of normals, by bisection."""
            low, high = (found - 9 * sd).min(axis=0), (found + 9 * sd).max(axis=0)
            for _ in range(50):
                middle = 0.5 * (low + high)
                is_below = ndtr((middle - found) / sd).mean(axis=0) < share
                low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
            return self.y_centre_ + self.y_scale_ * low

        return quantile(0.5 - level / 2), quantile(0.5 + level / 2)


class BayesianNetworkClassifier(ClassifierMixin, _Network):
    """A network for classification, with the posterior over its weights.

    >>> import numpy as np, steinflow
    >>> x = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = steinflow.sklearn.BayesianNetworkClassifier(random_state=0).fit(x, x[:, 0] > 0)
    >>> bool(model.score(x, x[:, 0] > 0) > 0.9)
    True
    """

    def fit(self, x: Any, y: Any) -> BayesianNetworkClassifier:
        x, y = validate_data(self, x, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._sample(x, codes, len(self.classes_))
        return self

    def _likelihood(
        self, outputs: np.ndarray, y: np.ndarray, log_sd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = np.arange(len(y))
        probabilities = _softmax(outputs)
        slope = -probabilities
        slope[:, rows, y] += 1
        value = np.log(np.maximum(probabilities[:, rows, y], 1e-300)).sum(axis=1)
        return value, slope, np.zeros_like(log_sd)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of every class, averaged over draws of the weights."""
        return _softmax(self._outputs(x)).mean(axis=0)

    def predict(self, x: Any) -> np.ndarray:
        """The most probable class."""
        chosen = self.predict_proba(x).argmax(axis=1)
        return self.classes_[chosen]


def _softmax(outputs: np.ndarray) -> np.ndarray:
    found = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return found / found.sum(axis=-1, keepdims=True)
