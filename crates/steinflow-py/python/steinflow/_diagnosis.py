"""Whether particles can be believed, and how far they are from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steinflow import _settings, _steinflow, _tree
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
    """What may be used, and why no more than that."""
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    evaluations: int = 0
    """Points that the target was evaluated at for it."""

    @property
    def line(self) -> str:
        """The verdict in a line."""
        return f"{self.title}: {self.headline}"

    def __str__(self) -> str:
        lines = [self.line, ""]
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
        gradients=result._outcome["gradients"],
        draws=draws if draws is not None and len(draws) else None,
        stop_rule=result.ensemble,
        warm_up=result._outcome.get("warm_up"),
        search_modes=search_modes,
    )
    return _made(found)


def _made(found: dict[str, Any]) -> Diagnosis:
    evidence = tuple(Evidence(**item) for item in found.pop("evidence"))
    return Diagnosis(evidence=evidence, advice=tuple(found.pop("advice")), **found)


def diagnose(
    draws: Any, target: Any, *, resting: bool = False, search_modes: bool = True, **how: Any
) -> Diagnosis:
    """Judges draws that were made elsewhere.

    >>> import numpy as np, steinflow
    >>> def logdensity_and_gradient(theta):
    ...     return -0.5 * np.sum(theta**2, axis=1), -theta
    >>> rng = np.random.default_rng(0)
    >>> steinflow.diagnose(rng.standard_normal((200, 2)), logdensity_and_gradient).verdict
    'trust'
    >>> steinflow.diagnose(0.5 * rng.standard_normal((4, 500, 2)), logdensity_and_gradient).verdict
    'collapsed'

    Parameters
    ----------
    draws
        An array `(draws, d)`: a cloud of particles, or draws that do not depend on each other; or
        `(chains, draws, d)`. On the unconstrained scale.
    target
        As for `steinflow.sample`.
    resting
        Whether the particles push one another and are at rest, as those of SVGD are: they are then
        spread more evenly than draws, and have to do better.
    search_modes
        Whether to search for modes without particles.
    how
        What else `steinflow.sample` takes to make a target: `backend`, `model_args`, `model_kwargs`,
        `loglikelihood_fn`, `logprior_fn`, `data`, `dtype`.
    """
    from steinflow._sample import target_of

    points = _tree.numbers(draws)
    if points.ndim not in (2, 3) or points.size == 0:
        raise ValueError(
            f"draws has shape {points.shape}: give (draws, d) or (chains, draws, d), one row a draw"
        )
    made = target_of(target, points.shape[-1], how)
    if made.dim != points.shape[-1]:
        raise ValueError(f"draws has {points.shape[-1]} numbers a draw, the target {made.dim}")
    chains = points.shape[0] if points.ndim == 3 else None
    if chains is not None:
        # Draw after draw of all chains.
        points = points.swapaxes(0, 1)
    rows = np.ascontiguousarray(points.reshape(-1, made.dim), made.dtype)
    found = _steinflow.diagnose_draws(
        made.built_in or made, rows, chains=chains, resting=resting, search_modes=search_modes
    )
    return _made(found)


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
