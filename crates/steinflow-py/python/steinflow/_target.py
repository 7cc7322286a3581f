"""What every adapter makes of the user's target: a function of all particles at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steinflow._tree import Layout

NARROW = 0.1
"""A start around a place that the model recommends: on the unconstrained scale a wide one puts scales
near zero, where scores explode; interacting particles spread by themselves."""

Evaluate = Callable[[np.ndarray, "np.ndarray | None", float], tuple[Any, Any]]


@dataclass
class Target:
    """A log density over rows of numbers, and the way back to what the user speaks."""

    name: str
    function: Evaluate
    """`function(theta, rows, scale)`: log densities and gradients of all particles; with `rows`, the
    likelihood of those rows of the data times `scale`."""
    layout: Layout
    dtype: np.dtype
    data_rows: int = 0
    posterior: bool = False
    """Whether it is known to describe data: the kernel then sees the parameters alone."""
    start: tuple[np.ndarray, float] | None = None
    """Centre and spread of the particles of a run without `init`; a standard normal if None."""
    constrain: Callable[[np.ndarray], dict[str, np.ndarray]] | None = None
    """From rows of unconstrained numbers to named constrained ones."""
    built_in: Any = None
    """The compiled model, where there is one."""
    coordinate_names: tuple[str, ...] | None = None
    """A name for every number of a row, where a model has them."""
    log_likelihood: Callable[[np.ndarray], dict[str, np.ndarray]] | None = None
    """From rows of unconstrained numbers to the log likelihood of every row of the data, by variable;
    nothing where there is none to be had."""
    predict: Callable[[np.ndarray], dict[str, np.ndarray]] | None = None
    """Draws of the data from rows of unconstrained numbers, by variable."""
    observed: Callable[[], dict[str, np.ndarray]] | None = None
    """The data that they are compared with."""

    @property
    def dim(self) -> int:
        return self.layout.dim

    def names(self) -> tuple[str, ...]:
        """A name for every number of a row, as messages have it."""
        return self.coordinate_names or self.layout.coordinate_names()

    def without_function(self) -> Target:
        """What is left of it in a file: the shape of the parameters."""
        return Target(
            self.name, _gone, self.layout, self.dtype, coordinate_names=self.coordinate_names
        )

    def evaluate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log densities and gradients on all of the data."""
        value, gradient = self.function(np.ascontiguousarray(theta, self.dtype), None, 1.0)
        return np.asarray(value), np.asarray(gradient)


def _gone(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
    raise ValueError(
        "this result was saved without its function, so that it can be looked at, but not gone on with: "
        "for that, give `sample` a `checkpoint`"
    )


def missing(package: str, what: str, install: str | None = None) -> ImportError:
    """The error for a package that is not there."""
    return ImportError(f"{what} needs {package}: pip install {install or package}")


def not_a_scalar(found: str, expected: str = "a scalar") -> TypeError:
    """The error for a log density of one particle that is no number."""
    return TypeError(
        f"your log density returned {found} for one particle, expected {expected}; it gets the "
        "parameters of one particle, not a batch: the batch is made for you"
    )


def of_data(
    package: str,
    function: Evaluate,
    layout: Layout,
    dtype: np.dtype,
    rows: int,
    by_row: Callable[[np.ndarray], np.ndarray],
) -> Target:
    """A log likelihood of rows of data and a log prior, in a package that differentiates them.

    `by_row(draws)` is the log likelihood of every row, `(draws, rows)`; it gets a few draws at a time,
    for there are draws × rows of the data.
    """

    def log_likelihood(draws: np.ndarray) -> dict[str, np.ndarray]:
        parts = [by_row(draws[first : first + 256]) for first in range(0, len(draws), 256)]
        return {"data": np.concatenate(parts)}

    return Target(
        f"{package} likelihood and prior",
        function,
        layout,
        dtype,
        data_rows=rows,
        posterior=True,
        log_likelihood=log_likelihood,
    )
