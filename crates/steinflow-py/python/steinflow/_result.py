"""What a run gives back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from steinflow import _diagnosis, _export, _plots, _report
from steinflow._low_level import ksd as stein_discrepancy

if TYPE_CHECKING:
    from steinflow._diagnosis import Diagnosis
    from steinflow._sample import Run


class Result:
    """Particles, and how they came about.

    >>> import steinflow
    >>> result = steinflow.sample("gaussian", method="svgd", steps=50, progress=False)
    >>> result.ended, result.steps
    ('finished', 50)
    >>> result.resume(steps=50, progress=False).steps
    100
    """

    def __init__(self, run: Run, outcome: dict[str, Any]) -> None:
        self._run = run
        self._checkpoint = outcome["checkpoint"]
        self.state: np.ndarray = outcome["state"]
        """z = (θ, r, …) of every particle, `(N, blocks · d)`."""
        self.blocks: list[str] = outcome["blocks"]
        """The names of the blocks of the state."""
        self.log_density: np.ndarray = outcome["log_density"]
        """log π(θ) of every particle, on all of the data."""
        self.ended: str = outcome["ended"]
        """`finished`, `at rest`, `out of time`, `interrupted`, or `not done` where `auto` ended without
        meeting its stop rule: `ensemble` says why."""
        self.steps: int = outcome["steps"]
        self.trace: dict[str, np.ndarray] = outcome["trace"]
        """Step, mean log density, velocity norm, bandwidth, KSD, step size, gradients and seconds."""
        self.method: str = run.config.method
        self._draws: np.ndarray | None = outcome.get("draws")
        self.draw_steps: np.ndarray | None = outcome.get("draw_steps")
        self.ensemble: dict[str, Any] | None = outcome.get("report")
        """What `auto` says of its draws: `done`, `reasons` if not, `effective` draws, `rhat`, `drift`,
        `acceptance`, `modes`, `bends`, gradients of the `warm_up` and `evaluations` in all."""
        self._outcome = outcome
        self._shown: dict[str, Any] = {}
        """Constrained parameters, where they were computed."""
        self.diagnosis: Diagnosis | None = None
        """The verdict that the run ended with; None with `diagnose=False`, or after Ctrl-C."""

    @property
    def config(self) -> str:
        """All settings of the run, those left out filled in, as a TOML file that the command reads."""
        return self._run.config.toml

    @property
    def theta(self) -> np.ndarray:
        """The particles as rows of numbers on the unconstrained scale, `(N, d)`."""
        return self.state[:, : self._run.target.dim]

    @property
    def unconstrained_particles(self) -> Any:
        """The particles on the scale they moved on, as the pytree of the parameters."""
        return self._run.target.layout.split(self.theta)

    @property
    def particles(self) -> Any:
        """The particles: a pytree of arrays with a leading axis of particles.

        Constrained parameters are constrained, with the model's deterministic values beside them.
        """
        return self._constrained("particles", self.theta)

    @property
    def unconstrained_draws(self) -> Any:
        """What was collected, with leading axes (particle, draw), on the unconstrained scale."""
        rows = self._draw_rows()
        return None if rows is None else self._run.target.layout.split(rows)

    @property
    def draws(self) -> Any:
        """What was collected from step `collect_from` on: leading axes (particle, draw)."""
        rows = self._draw_rows()
        if rows is None or not self._is_constrained:
            return self.unconstrained_draws
        flat = self._constrained("draws", rows.reshape(-1, rows.shape[-1]))
        return {
            name: value.reshape(*rows.shape[:2], *value.shape[1:]) for name, value in flat.items()
        }

    @property
    def points(self) -> Any:
        """Points at rest with equal weights, for expensive models: a pytree with an axis of points.

        None where none were asked for (`points=True`), or where they were refused: `no_points` says why.
        """
        rows = self._outcome.get("points")
        return None if rows is None else self._constrained("points", rows)

    @property
    def no_points(self) -> str | None:
        """Why there are no points, where they were asked for."""
        return self._outcome.get("no_points")

    def _draw_rows(self) -> np.ndarray | None:
        return None if self._draws is None else self._draws.swapaxes(0, 1)

    @property
    def _is_constrained(self) -> bool:
        return bool(self._shown) or self._run.target.constrain is not None

    def _constrained(self, what: str, rows: np.ndarray) -> Any:
        target = self._run.target
        if not self._is_constrained:
            return target.layout.split(rows)
        if what not in self._shown:
            self._shown[what] = target.constrain(rows)
        return self._shown[what]

    @property
    def diagnostics(self) -> dict[str, Any]:
        """How the run went, in numbers."""
        last = {name: column[-1] for name, column in self.trace.items() if len(column)}
        return {
            "method": self.method,
            "particles": len(self.state),
            "dim": self._run.target.dim,
            "ended": self.ended,
            "steps": self.steps,
            "gradients": self._outcome["gradients"],
            "seconds": self._outcome["seconds"],
            "step_size": float(last.get("step_size", np.nan)),
            "velocity_norm": float(last.get("velocity_norm", np.nan)),
            "bandwidth": float(last.get("bandwidth", np.nan)),
            "mean_log_density": float(np.mean(self.log_density)),
            "frozen": self._outcome["frozen"],
            "shrinks": self._outcome["shrinks"],
        }

    def diagnose(self, *, search_modes: bool = True) -> Diagnosis:
        """Judges the particles, or the draws where any were collected.

        >>> import steinflow
        >>> wide = steinflow.model("standard-normal", dim=50)
        >>> run = dict(method="svgd", steps=300, step_size=1.0, progress=False)
        >>> found = steinflow.sample(wide, **run).diagnose()
        >>> found.verdict
        'collapsed'
        >>> print(found.title)
        Collapsed

        Evaluates the target at the particles, and, to search for modes without particles, some thousand
        times around them; `search_modes=False` leaves that out.
        """
        return _diagnosis.of_result(self, search_modes)

    def ksd(self, **settings: Any) -> float:
        """Kernel Stein discrepancy of the particles from the target; settings as `steinflow.ksd`."""
        _, score = self._run.target.evaluate(self.theta)
        return stein_discrepancy(self.theta, score, **settings)

    def resume(
        self,
        steps: int | None = None,
        *,
        budget: float | None = None,
        callbacks: Iterable[Callable[[Any], Any]] | None = None,
        progress: bool = True,
    ) -> Result:
        """Takes what is left of an interrupted run, and then `steps` more.

        The particles are, to the last bit, those of a run that was not interrupted. `budget` counts
        from the run's beginning.
        """
        return self._run.resume(
            self._checkpoint,
            steps=steps,
            budget=budget,
            callbacks=None if callbacks is None else list(callbacks),
            progress=progress,
        )

    def __getstate__(self) -> dict[str, Any]:
        """All but the function: what was drawn, and what was said about it."""
        run = self._run
        if run.target.constrain is not None:
            # What only the function's own model can compute.
            _ = self.particles, self.draws, self.points
        kept = dict(self.__dict__)
        kept["_checkpoint"] = None
        kept["_outcome"] = {k: v for k, v in self._outcome.items() if k != "checkpoint"}
        kept["_run"] = run.without_function()
        return kept

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        """Arrays of its own, and the same function."""
        twin = Result.__new__(Result)
        shared = {"_run": self._run, "_checkpoint": self._checkpoint}
        own = {k: v for k, v in self.__dict__.items() if k not in (*shared, "_outcome")}
        outcome = {k: v for k, v in self._outcome.items() if k != "checkpoint"}
        twin.__dict__ = copy.deepcopy({**own, "_outcome": outcome}, memo) | shared
        return twin

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the result to a file, without the function: `Result.load` reads it.

        >>> import steinflow, tempfile
        >>> result = steinflow.sample("gaussian", method="svgd", steps=20, progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/result.pickle")
        ...     again = steinflow.Result.load(f"{folder}/result.pickle")
        >>> bool((again.particles == result.particles).all()), again.diagnosis == result.diagnosis
        (True, True)
        """
        with open(path, "wb") as file:
            pickle.dump(self, file)

    @staticmethod
    def load(path: str | PathLike[str]) -> Result:
        """Reads what `save` has written. As any pickle, it runs what is in it: read only your own."""
        with open(path, "rb") as file:
            try:
                found = pickle.load(file)
            except (pickle.UnpicklingError, EOFError, ValueError) as error:
                raise ValueError(f"{path} is no file that `save` has written") from error
        if not isinstance(found, Result):
            raise ValueError(f"{path} holds a {type(found).__name__}, which no result has saved")
        return found

    def to_dataframe(self) -> Any:
        """A pandas data frame of the draws with `chain` and `draw`, or of the particles without.

        >>> import steinflow
        >>> frame = steinflow.sample("gaussian", progress=False).to_dataframe()
        >>> list(frame.columns)
        ['chain', 'draw', 'x', 'y']
        """
        return _export.to_dataframe(self)

    def to_arviz(self) -> Any:
        """An ArviZ object: `InferenceData` for ArviZ 0.x, a `DataTree` for 1.x.

        Collected draws have a chain for every particle. Without them, the particles are the draws of
        one chain. Groups: `posterior`, `unconstrained_posterior` where parameters are constrained,
        `sample_stats`; and, where the model has them, `log_likelihood`, `posterior_predictive` and
        `observed_data`, for `arviz.loo` and its like.
        """
        return _export.to_arviz(self)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Writes the particles, a row for each, with `log_density`; columns are named by parameter."""
        _export.to_parquet(self, path)

    def to_netcdf(self, path: str | PathLike[str]) -> None:
        """Writes the groups of `to_arviz` to a NetCDF file."""
        _export.to_tree(self).to_netcdf(path)

    def to_zarr(self, path: str | PathLike[str]) -> None:
        """Writes the groups of `to_arviz` to a Zarr store."""
        _export.to_tree(self).to_zarr(path, mode="w")

    def plot_particles(self, names: Iterable[str] | None = None) -> Any:
        """Scatter plots of the parameters in pairs, with a histogram of each; a matplotlib figure.

        Of the draws where any were collected, evenly thinned where there are many.
        """
        return _plots.particles(self, names)

    def plot_trace(self) -> Any:
        """Mean log density, velocity norm and bandwidth over the steps; a matplotlib figure."""
        return _plots.trace(self)

    def columns(self, constrained: bool = True, *, draws: bool = False) -> dict[str, np.ndarray]:
        """A column of numbers for every coordinate of the particles, by name.

        With `draws`, of all draws instead, chain after chain, where any were collected.
        """
        return _export.columns(self, constrained, draws)

    def report(self, path: str | PathLike[str], name: str | None = None) -> None:
        """Writes the page that `steinflow report` writes of a run: one HTML file that needs no other.

        Of a regression that ships it begins with every row as all others predict it.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(_report.page(self, name))

    def __repr__(self) -> str:
        verdict = "" if self.diagnosis is None else f"; {self.diagnosis.title}"
        return (
            f"<steinflow.Result: {len(self.state)} particles in {self._run.target.dim} dimensions, "
            f"{self.method}, {self.steps} steps, {self.ended}{verdict}>"
        )

    def _repr_html_(self) -> str:
        return _report.html_of(self)
