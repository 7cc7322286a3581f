"""`steinflow.tune`: step size and momentum by short pilot runs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steinflow import _settings, _steinflow
from steinflow._progress import Bar
from steinflow._signals import interruptible

if TYPE_CHECKING:
    from steinflow._sample import Run

DEFAULT_RUNGS = 4


@dataclass(frozen=True)
class TuneResult:
    """What was found, and all that was tried."""

    best: dict[str, Any]
    """The settings that were passed, with those that were found: `steinflow.sample(target, **best)`."""
    found: dict[str, float]
    """What was found alone: `step_size`, and what the method has of `friction`, `mu` and `gamma`."""
    tried: list[dict[str, Any]]
    """A row for every candidate in every round: what it was, `steps`, `ksd` and its `fate`, which is
    `diverged`, `dropped`, `kept` or `best`; `pandas.DataFrame(result.tried)` makes a table of it."""
    steps: int
    """The steps that all pilot runs took together."""

    @property
    def ksd(self) -> float:
        """The kernel Stein discrepancy of the best."""
        return next(row["ksd"] for row in self.tried if row["fate"] == "best")

    def applied_to(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of a run with what was found."""
        found = dict(self.found)
        size = found.pop("step_size", None)
        [(integrator, steps, given)] = settings["phases"]
        size = given if size is None else _settings.text(size)
        return {
            **settings,
            "phases": [(integrator, steps, size)],
            "parameters": {**settings["parameters"], **found},
        }

    def __repr__(self) -> str:
        candidates = sum(row["round"] == 1 for row in self.tried)
        found = ", ".join(f"{name}={value:.4g}" for name, value in self.found.items())
        return (
            f"<steinflow.TuneResult: {found}, the best of {candidates} candidates, "
            f"{self.steps} pilot steps>"
        )


def tune(
    target: Any = None,
    init: Any = None,
    *,
    rungs: int = DEFAULT_RUNGS,
    budget_steps: int | None = None,
    **settings: Any,
) -> TuneResult:
    """Finds step size and momentum for a target and a method by short pilot runs.

    >>> import steinflow
    >>> tuned = steinflow.tune("funnel", method="svgd", steps=256, progress=False)
    >>> result = steinflow.sample("funnel", **tuned.best)
    >>> result.steps
    256

    All candidates of a grid run for a few steps, the better ones longer, and the best four for half of
    the run, judged by kernel Stein discrepancy on all of the data, with one kernel for all. Searched are
    the learning rate (the paper's grid, extended to where runs diverge) and what the method has of
    momentum decay, μ and γ; what is passed is not.

    Parameters
    ----------
    target, init, **settings
        As for `steinflow.sample`.
    rungs
        Rounds of the search: each is four times as long as the one before and keeps a quarter, at
        least four; the last is half of the run.
    budget_steps
        The most steps that all pilot runs together may take; all rounds get shorter.

    Returns
    -------
    TuneResult

    Raises
    ------
    ValueError
        Nothing to tune, or a budget that is too small.
    SamplingError
        All candidates diverged.
    KeyboardInterrupt
        Ctrl-C.
    """
    from steinflow._sample import prepare, sample

    bound = inspect.signature(sample).bind(target, init, **settings)
    bound.apply_defaults()
    run = prepare(**bound.arguments)
    return search(run, rungs, budget_steps, settings)


def search(
    run: Run,
    rungs: int = DEFAULT_RUNGS,
    budget_steps: int | None = None,
    given: dict[str, Any] | None = None,
) -> TuneResult:
    """Tunes a run that is ready to start."""
    if len(run.settings["phases"]) != 1:
        raise ValueError("phases state their steps: leave them out, and give steps, to tune")
    for name, value in (("rungs", rungs), ("budget_steps", budget_steps)):
        if value is not None and (not isinstance(value, int) or value < 0):
            raise ValueError(f"{name} is {value!r}: give a whole number, 1 or more")
    bar = Bar(f"tuning {run.settings['method']} on {run.target.name}")
    shown = bar if run.progress and bar.visible else None
    try:
        with interruptible() as interrupt:
            outcome = _steinflow.tune(
                run.target.built_in or run.target,
                run.init,
                run.settings,
                rungs=rungs,
                budget_steps=budget_steps,
                interrupt=interrupt,
                progress=shown,
            )
    finally:
        if shown is not None:
            bar.close()
    found = outcome["found"]
    best = {**(given or {}), "method": run.settings["method"], **found}
    return TuneResult(best, found, outcome["tried"], outcome["steps"])
