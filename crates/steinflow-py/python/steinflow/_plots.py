"""Pictures of a result, with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from steinflow._target import missing

if TYPE_CHECKING:
    from steinflow._result import Result

BLUE = "#3465a4"
MOST_POINTS = 2000
MOST_PARAMETERS = 5


def _figure(**how: Any) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing("matplotlib", "a plot") from error

    class Shown(Figure):
        """A figure that notebooks show by themselves."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=80)
            return buffer.getvalue()

    return Shown(layout="constrained", **how)


def _thinned(column: np.ndarray) -> np.ndarray:
    return column[np.linspace(0, len(column) - 1, min(len(column), MOST_POINTS)).astype(int)]


def particles(result: Result, names: Iterable[str] | None = None) -> Any:
    """Pairs of parameters; the first few unless `names` says which. Draws where any were collected."""
    columns = {name: _thinned(column) for name, column in result.columns(draws=True).items()}
    what = "particles" if result._draws is None else "draws"
    title = f"{len(next(iter(columns.values())))} {what}, {result.method}, {result.steps} steps"
    chosen = list(columns)[:MOST_PARAMETERS] if names is None else list(names)
    for name in chosen:
        if name not in columns:
            raise ValueError(f"there is no parameter {name!r}; known: {', '.join(columns)}")
    if len(chosen) == 2:
        figure = _figure(figsize=(5, 5))
        axes = figure.subplots()
        axes.scatter(columns[chosen[0]], columns[chosen[1]], s=12, color=BLUE, alpha=0.7)
        axes.set(xlabel=chosen[0], ylabel=chosen[1], title=title)
        return figure
    size = len(chosen)
    side = 2.0 if size > 1 else 4.0
    figure = _figure(figsize=(side * size, side * size))
    grid = figure.subplots(size, size, squeeze=False, sharex="col")
    for i, vertical in enumerate(chosen):
        for j, horizontal in enumerate(chosen):
            axes = grid[i, j]
            if j > i:
                axes.set_visible(False)
                continue
            if i == j:
                axes.hist(columns[vertical], bins="auto", color=BLUE, alpha=0.7)
                axes.set_yticks([])
            else:
                axes.scatter(columns[horizontal], columns[vertical], s=6, color=BLUE, alpha=0.7)
                if j == 0:
                    axes.set_ylabel(vertical)
            if i == size - 1:
                axes.set_xlabel(horizontal)
    figure.suptitle(title)
    return figure


def trace(result: Result) -> Any:
    """The course of the run."""
    shown = [
        ("mean_log_density", "mean log density", "linear"),
        ("velocity_norm", "velocity norm", "log"),
        ("bandwidth", "bandwidth", "linear"),
    ]
    shown = [row for row in shown if not np.isnan(result.trace[row[0]]).all()]
    figure = _figure(figsize=(7, 1.9 * len(shown)))
    grid = figure.subplots(len(shown), 1, squeeze=False, sharex=True)
    for axes, (name, label, scale) in zip(grid[:, 0], shown, strict=True):
        axes.plot(result.trace["step"], result.trace[name], color=BLUE)
        axes.set(ylabel=label, yscale=scale)
    grid[-1, 0].set_xlabel("step")
    figure.suptitle(_title(result))
    return figure


def _title(result: Result) -> str:
    return f"{len(result.state)} particles, {result.method}, {result.steps} steps"
