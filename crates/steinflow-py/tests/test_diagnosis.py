"""Verdicts and distances from Python."""

import numpy as np
import pytest
import steinflow


def test_verdicts_tell_good_from_bad():
    good = steinflow.sample(
        steinflow.model("standard-normal", dim=2), method="svgd", steps=500, progress=False
    )
    found = good.diagnose()
    assert found.verdict == "trust"
    assert "variance, all coordinates" in str(found)
    assert found.advice
    narrow = steinflow.sample(
        steinflow.model("standard-normal", dim=50),
        method="svgd",
        steps=300,
        step_size=1.0,
        progress=False,
    )
    assert narrow.diagnose().verdict == "collapsed"


def test_functions_momenta_and_draws_are_judged():
    def logdensity_and_gradient(theta):
        return -0.5 * (theta**2).sum(1), -theta

    result = steinflow.sample(
        logdensity_and_gradient,
        np.random.default_rng(0).standard_normal((100, 3)),
        method="sghmc",
        steps=400,
        collect_from=200,
        collect_every=10,
        progress=False,
    )
    found = result.diagnose()
    names = [item.name for item in found.evidence]
    assert "variance, auxiliary variables" in names
    assert "R̂ of the collected draws" in names
    assert found.verdict in ("trust", "not-converged")
    assert np.isfinite(result.trace["ksd"]).any()
    without = result.diagnose(search_modes=False)
    assert len(without.evidence) < len(found.evidence)


def test_a_missing_mode_is_found():
    def two_modes(theta):
        centre = np.array([4.0, 0.0])
        left, right = theta + centre, theta - centre
        heights = np.stack([-0.5 * (left**2).sum(1), -0.5 * (right**2).sum(1)])
        total = np.logaddexp(*heights)
        share = np.exp(heights - total)
        return total, -(share[0][:, None] * left + share[1][:, None] * right)

    start = np.random.default_rng(0).standard_normal((60, 2)) * 0.3 - [4.0, 0.0]
    result = steinflow.sample(two_modes, start, method="svgd", steps=300, progress=False)
    found = result.diagnose()
    assert found.verdict == "not-converged"
    assert "mode without particles" in found.headline


def test_distances_and_tests_refuse_what_does_not_fit():
    x = np.zeros((5, 2))
    with pytest.raises(ValueError, match="2 coordinates, expected 3"):
        steinflow.distances(x, np.zeros((5, 3)))
    with pytest.raises(ValueError, match="19 or more"):
        steinflow.ksd_test(x, x, replicates=3)
    with pytest.raises(ValueError, match="one row for each particle"):
        steinflow.ksd_test(np.zeros(3), np.zeros(3))


def test_every_run_ends_with_its_verdict(capsys):
    model = steinflow.model("standard-normal", dim=2)
    result = steinflow.sample(model, method="svgd", steps=300)
    assert result.diagnosis.verdict == "trust"
    assert result.diagnosis.line in capsys.readouterr().err
    assert repr(result).endswith("Trust>") and "may be used" in result._repr_html_()
    assert 0 < result.diagnosis.evaluations <= 200 * len(result.theta)
    silent = steinflow.sample(model, method="svgd", steps=300, diagnose=False)
    assert silent.diagnosis is None and capsys.readouterr().err == ""


@pytest.mark.parametrize("factor, message", [(2.0, "2.000 times"), (0.5, "0.500 times")])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gradient_that_is_not_the_log_densitys_is_refused(factor, message, dtype):
    def wrong(theta):
        return -0.5 * np.sum(theta**2, axis=1), -factor * theta

    for method in ("auto", "svgd", "sghmc"):
        with pytest.raises(ValueError, match=message):
            steinflow.sample(wrong, shapes=2, method=method, dtype=dtype, progress=False)
    run = dict(method="svgd", warm_up=False, steps=20, progress=False)
    found = steinflow.sample(wrong, shapes=2, check_gradient=False, **run)
    assert found.steps == 20


@pytest.mark.parametrize(
    "wrong", [lambda s: s + 1.0, lambda s: 2.0 * s, lambda s: 0.5 * s, lambda s: 10.0 * s]
)
def test_one_wrong_coordinate_of_many_is_named(wrong):
    def logdensity_and_gradient(theta):
        gradient = -theta
        gradient[:, 157] = wrong(gradient[:, 157])
        return -0.5 * np.sum(theta**2, axis=1), gradient

    for method in ("auto", "svgd"):
        with pytest.raises(ValueError, match=r"`theta\[157\]`, coordinate 157 of the gradient"):
            steinflow.sample(logdensity_and_gradient, shapes=200, method=method, progress=False)
    draws = np.random.default_rng(1).standard_normal((100, 200))
    found = steinflow.diagnose(draws, logdensity_and_gradient)
    assert found.verdict == "not-converged" and "`theta[157]`" in found.headline


def test_draws_from_elsewhere_are_judged(rng):
    def normal(theta):
        return -0.5 * np.sum(theta**2, axis=1), -theta

    draws = rng.standard_normal((4, 500, 3))
    assert steinflow.diagnose(draws, normal).verdict == "trust"
    assert steinflow.diagnose(draws[0], normal).verdict == "trust"
    assert steinflow.diagnose(draws[0, :100] * 0.6, normal).verdict == "collapsed"
    stuck = draws + np.array([0.0, 0.0, 0.0, 3.0])[:, None, None]
    assert steinflow.diagnose(stuck, normal).verdict == "not-converged"
    resting = steinflow.sample(normal, shapes=3, method="svgd", progress=False).theta
    assert steinflow.diagnose(resting, normal, resting=True).verdict == "trust"
    by_name = steinflow.diagnose(draws, steinflow.model("standard-normal", dim=3))
    assert by_name.verdict == "trust"
    # A model by name knows its own moments.
    assert "spread, against the exact one" in [item.name for item in by_name.evidence]
    wide = steinflow.diagnose(1.3 * draws, steinflow.model("standard-normal", dim=3))
    assert wide.verdict != "trust"
    assert by_name.evaluations <= 200 * 4
    with pytest.raises(ValueError, match="draws has shape"):
        steinflow.diagnose(np.zeros(3), normal)
    with pytest.raises(TypeError, match="takes no 'steps'"):
        steinflow.diagnose(draws, normal, steps=3)
