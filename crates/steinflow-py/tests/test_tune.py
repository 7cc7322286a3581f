"""Step size and momentum by pilot runs."""

import functools

import numpy as np
import pytest
import steinflow
from conftest import standard_normal

tune = functools.partial(steinflow.tune, progress=False)


def narrow(theta):
    """N(0, 0.01²) in two coordinates."""
    return -0.5e4 * np.sum(theta**2, axis=1), -1e4 * theta


def test_what_is_found_samples_the_target():
    settings = {"shapes": 2, "particles": 50, "steps": 256, "progress": False}
    tuned = steinflow.tune(narrow, method="svgd", **settings)
    result = steinflow.sample(narrow, **tuned.best)
    assert result.steps == 256
    assert 0.008 < result.particles.std() < 0.011
    assert tuned.ksd < 0.1 * next(row["ksd"] for row in tuned.tried if row["eta"] == 1e-8)
    assert {row["fate"] for row in tuned.tried} >= {"best", "kept", "dropped"}
    assert tuned.steps < 20 * 256
    assert "step_size=" in repr(tuned)


def test_sample_can_tune_first():
    settings = {"method": "sghmc-stein", "particles": 30, "steps": 64, "progress": False}
    result = steinflow.sample("banana", tune=True, **settings)
    assert result.tuning.found.keys() == {"step_size", "friction"}
    again = steinflow.sample("banana", **settings, **result.tuning.found)
    assert np.array_equal(result.state, again.state)
    assert again.tuning is None
    assert tune("banana", **settings).tried == result.tuning.tried
    assert result.resume(steps=8, progress=False).steps == 72


def test_what_is_given_is_not_searched():
    tuned = tune("banana", method="sgnht-stein", steps=16, step_size=0.05, mu=1.0, rungs=2)
    assert tuned.found.keys() == {"friction"}
    assert {row["alpha"] for row in tuned.tried} == {0.01, 0.1, 0.5}
    assert tuned.best["mu"] == 1.0 and tuned.best["step_size"] == 0.05


def test_wrong_requests_are_told_what_to_do():
    for words, settings in [
        ("nothing to tune", {"method": "svgd", "step_size": 0.1}),
        ("nothing to tune", {"method": "lawgd"}),
        ("leave them out", {"method": "svgd", "phases": [("euler", 5, 0.1)] * 2}),
        ("budget-steps is 3", {"method": "svgd", "budget_steps": 3}),
        ("rungs is 0", {"method": "svgd", "rungs": 0}),
        ("rungs is 'x'", {"method": "svgd", "rungs": "x"}),
        ("steps is 0", {"method": "svgd", "steps": 0}),
        ("constant step size", {"method": "sghmc", "step_size": "linear:0.1:0.01"}),
    ]:
        with pytest.raises(ValueError, match=words):
            tune("banana", **settings)
    with pytest.raises(TypeError, match="did you mean particles"):
        tune("banana", particels=3)


def test_runs_that_all_diverge_are_an_error():
    def nowhere(theta):
        return np.full(len(theta), np.nan), np.full(theta.shape, np.nan)

    with pytest.raises(steinflow.SamplingError, match="diverged"):
        tune(nowhere, shapes=2, method="svgd", steps=16)


def test_what_the_target_raises_comes_back():
    calls = []

    def fails(theta):
        calls.append(1)
        if len(calls) > 100:
            raise RuntimeError("enough")
        return standard_normal(theta)

    with pytest.raises(RuntimeError, match="enough"):
        tune(fails, shapes=2, method="svgd", steps=64)
