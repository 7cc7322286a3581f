"""What a run gives back."""

from __future__ import annotations

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
        meeting its stop rule: `report` says why."""
        self.steps: int = outcome["steps"]
        self.trace: dict[str, np.ndarray] = outcome["trace"]
        """Step, mean log density, velocity norm, bandwidth, KSD, step size, gradients and seconds."""
        self.method: str = run.config.method
        self._draws: np.ndarray | None = outcome.get("draws")
        self.draw_steps: np.ndarray | None = outcome.get("draw_steps")
        self.report: dict[str, Any] | None = outcome.get("report")
        """What `auto` says of its draws: `done`, `reasons` if not, `effective` draws, `rhat`, `drift`,
        `acceptance`, `modes`, `bends`, gradients of the `warm_up` and `evaluations` in all."""
        self._outcome = outcome
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
        return self._constrained(self.theta)

    @property
    def unconstrained_draws(self) -> Any:
        """What was collected, with leading axes (particle, draw), on the unconstrained scale."""
        rows = self._draw_rows()
        return None if rows is None else self._run.target.layout.split(rows)

    @property
    def draws(self) -> Any:
        """What was collected from step `collect_from` on: leading axes (particle, draw)."""
        rows = self._draw_rows()
        if rows is None or self._run.target.constrain is None:
            return self.unconstrained_draws
        flat = self._constrained(rows.reshape(-1, rows.shape[-1]))
        return {
            name: value.reshape(*rows.shape[:2], *value.shape[1:]) for name, value in flat.items()
        }

    @property
    def points(self) -> Any:
        """Points at rest with equal weights, for expensive models: a pytree with an axis of points.

        None where none were asked for (`points=True`), or where they were refused: `no_points` says why.
        """
        rows = self._outcome.get("points")
        return None if rows is None else self._constrained(rows)

    @property
    def no_points(self) -> str | None:
        """Why there are no points, where they were asked for."""
        return self._outcome.get("no_points")

    def _draw_rows(self) -> np.ndarray | None:
        return None if self._draws is None else self._draws.swapaxes(0, 1)

    def _constrained(self, rows: np.ndarray) -> Any:
        target = self._run.target
        return target.layout.split(rows) if target.constrain is None else target.constrain(rows)

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

    def to_arviz(self) -> Any:
        """An ArviZ object: `InferenceData` for ArviZ 0.x, a `DataTree` for 1.x.

        Collected draws have a chain for every particle. Without them, the particles are the draws of
        one chain. Groups: `posterior`, `unconstrained_posterior` where parameters are constrained,
        `sample_stats`.
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
        """Scatter plots of the parameters in pairs, with a histogram of each; a matplotlib figure."""
        return _plots.particles(self, names)

    def plot_trace(self) -> Any:
        """Mean log density, velocity norm and bandwidth over the steps; a matplotlib figure."""
        return _plots.trace(self)

    def columns(self, constrained: bool = True) -> dict[str, np.ndarray]:
        """A column of numbers for every coordinate of the particles, by name."""
        return _export.columns(self, constrained)

    def __repr__(self) -> str:
        verdict = "" if self.diagnosis is None else f"; {self.diagnosis.title}"
        return (
            f"<steinflow.Result: {len(self.state)} particles in {self._run.target.dim} dimensions, "
            f"{self.method}, {self.steps} steps, {self.ended}{verdict}>"
        )

    def _repr_html_(self) -> str:
        return _report.html_of(self)
