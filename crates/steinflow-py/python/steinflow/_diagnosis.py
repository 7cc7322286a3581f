"""Whether particles can be believed, and how far they are from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steinflow import _settings, _steinflow
from steinflow._low_level import _rows

if TYPE_CHECKING:
    from steinflow._result import Result


@dataclass(frozen=True)
class Evidence:
    """One finding."""

    name: str
    value: float
    expected: str
    """What exact draws would show."""
    passed: bool | None
    """Whether it is that; None where it decides nothing."""
    meaning: str


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on a run, what it rests on, and what to try next."""

    verdict: str
    """`trust`, `means-only`, `not-converged`, `collapsed` or `diverged`."""
    title: str
    headline: str
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.headline}", ""]
        width = max((len(item.name) for item in self.evidence), default=0)
        for item in self.evidence:
            mark = {True: "passed", False: "FAILED", None: ""}[item.passed]
            line = f"  {item.name:<{width}}  {item.value:>10.4g}  {item.expected:<24}  {mark}"
            lines.append(line.rstrip())
        lines += [f"→ {advice}" for advice in self.advice]
        return "\n".join(lines)


def of_result(result: Result, search_modes: bool) -> Diagnosis:
    run = result._run
    draws = result._draws
    if draws is not None:
        draws = np.ascontiguousarray(draws.reshape(-1, draws.shape[-1]))
    found = _steinflow.diagnose(
        run.target.built_in or run.target,
        np.ascontiguousarray(result.state),
        run.config,
        log_densities=result.trace["mean_log_density"].tolist(),
        discrepancies=result.trace["ksd"].tolist(),
        draws=draws if draws is not None and len(draws) else None,
        stop_rule=result.report,
        warm_up=result._outcome.get("warm_up"),
        search_modes=search_modes,
    )
    evidence = tuple(Evidence(**item) for item in found.pop("evidence"))
    return Diagnosis(evidence=evidence, advice=tuple(found.pop("advice")), **found)


class KsdTest(NamedTuple):
    """A test of the hypothesis that points are independent draws from a density."""

    squared_ksd: float
    p_value: float


def ksd_test(
    particles: Any,
    score: Any,
    *,
    kernel: str = "imq",
    bandwidth: Any = "median",
    replicates: int = 999,
    seed: int = 0,
) -> KsdTest:
    """Tests particles against the density with these scores, by the wild bootstrap.

    >>> import numpy as np, steinflow
    >>> x = np.random.default_rng(0).standard_normal((200, 2))
    >>> steinflow.ksd_test(x, -x).p_value > 0.01
    True
    >>> steinflow.ksd_test(x + 0.5, -(x + 0.5)).p_value < 0.01
    True

    Particles that repel one another are nearer to the density than draws, with p-values close to 1.
    """
    points = _rows(particles, "particles", np.float64)
    score = _rows(score, "score", np.float64)
    rule = _settings.text(bandwidth)
    return KsdTest(*_steinflow.ksd_test(points, score, kernel, rule, replicates, seed))


class Distances(NamedTuple):
    """How far two sets of points are apart."""

    energy: float
    squared_mmd: float
    sliced_wasserstein: float


def distances(x: Any, y: Any, *, directions: int = 200, seed: int = 0) -> Distances:
    """Energy distance, MMD² and sliced Wasserstein distance between two sets of points.

    >>> import numpy as np, steinflow
    >>> x, y = np.random.default_rng(0).standard_normal((2, 300, 2))
    >>> near, far = steinflow.distances(x, y), steinflow.distances(x, y + 1)
    >>> all(a < b for a, b in zip(near, far))
    True

    MMD² is the unbiased statistic, with a squared exponential kernel of the median distance between all
    points; it can be negative.
    """
    first, second = _rows(x, "x", np.float64), _rows(y, "y", np.float64)
    return Distances(*_steinflow.distances(first, second, directions, seed))
