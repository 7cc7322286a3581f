"""The default: no setting at all."""

import numpy as np
import pytest
import steinflow


def moments(draws):
    flat = draws.reshape(-1, draws.shape[-1])
    return flat.mean(axis=0), flat.std(axis=0)


def raw_scales(theta):
    """Independent normals with means and spreads that nobody has prepared."""
    centre, sd = np.array([1e4, -3.0, 0.0, 250.0]), np.array([1e-2, 5.0, 1e3, 1.0])
    away = (theta - centre) / sd
    return -0.5 * np.sum(away**2, axis=1), -away / sd


def test_raw_scales_need_no_setting():
    result = steinflow.sample(raw_scales, shapes=4, progress=False)
    assert result.method == "auto" and result.ended == "finished" and result.ensemble["done"]
    mean, sd = moments(result.draws)
    centre, spread = np.array([1e4, -3.0, 0.0, 250.0]), np.array([1e-2, 5.0, 1e3, 1.0])
    assert np.all(np.abs(mean - centre) < 0.1 * spread)
    assert np.all(np.abs(sd / spread - 1) < 0.05)
    assert result.diagnose().verdict == "trust"


def test_points_come_with_a_run_or_with_the_reason_why_not():
    result = steinflow.sample(raw_scales, shapes=4, points=True, progress=False)
    mean, sd = moments(result.points)
    centre, spread = np.array([1e4, -3.0, 0.0, 250.0]), np.array([1e-2, 5.0, 1e3, 1.0])
    # As many draws would err by 0.12 and 9 %.
    assert result.points.shape == (64, 4) and result.no_points is None
    assert np.all(np.abs(mean - centre) < 0.03 * spread)
    assert np.all(np.abs(sd / spread - 1) < 0.03)

    normal = steinflow.model("standard-normal", dim=10)
    few = steinflow.sample(normal, particles=16, points=True, progress=False)
    assert few.points is None and "20 or more" in few.no_points
    assert len(few.theta) == 16
    unasked = steinflow.sample("gaussian", progress=False)
    assert unasked.points is None and unasked.no_points is None


def test_draws_are_chains_by_draws_by_name():
    def density(p):
        value = -0.5 * (p["a"] ** 2 + np.sum(p["b"] ** 2, axis=1))
        return value, {"a": -p["a"], "b": -p["b"]}

    result = steinflow.sample(density, shapes={"a": (), "b": (2,)}, progress=False)
    chains, draws = result.draws["a"].shape
    assert chains == 64 and draws == result.ensemble["draws"]
    assert result.draws["b"].shape == (chains, draws, 2)


def test_what_is_asked_for_is_what_is_given():
    few = steinflow.sample("banana", effective=200, seed=3, particles=32, progress=False)
    many = steinflow.sample("banana", effective=4000, seed=3, particles=32, progress=False)
    assert few.ensemble["effective"] < many.ensemble["effective"] and len(few.state) == 32
    again = steinflow.sample("banana", effective=200, seed=3, particles=32, progress=False)
    assert np.array_equal(few.draws, again.draws)


def test_what_is_not_done_is_said():
    result = steinflow.sample("funnel", gradients=60, progress=False)
    assert result.ended == "not done" and not result.ensemble["done"] and result.ensemble["reasons"]
    assert result.diagnose().verdict != "trust"


def test_a_run_that_is_stopped_goes_on_to_the_same_bits():
    def stop(at):
        return at.stage == "draw"

    whole = steinflow.sample("banana", progress=False)
    part = steinflow.sample("banana", callbacks=[stop], progress=False)
    assert part.ended == "interrupted"
    rest = part.resume(callbacks=[], progress=False)
    assert rest.ended == "finished" and np.array_equal(whole.draws, rest.draws)


def test_a_start_at_a_wall_is_redrawn_and_a_given_one_refused():
    def positive(theta):
        inside = theta[:, 0] > 0
        value = np.where(inside, 2 * np.log(np.abs(theta[:, 0])) - theta[:, 0], -np.inf)
        return value, np.where(inside, 2 / theta[:, 0] - 1, 0.0)[:, None]

    result = steinflow.sample(positive, shapes=1, progress=False)
    assert abs(result.draws.mean() - 3) < 0.2
    init = np.linspace(-1, 5, 32)[:, None]
    with pytest.raises(ValueError, match="start"):
        steinflow.sample(positive, init, progress=False)


@pytest.mark.parametrize(
    ("setting", "value"), [("steps", 10), ("step_size", 0.1), ("kernel", "se"), ("friction", 1.0)]
)
def test_what_auto_finds_by_itself_is_refused_by_name(setting, value):
    with pytest.raises(ValueError, match=f"{setting} does not fit the method `auto`"):
        steinflow.sample("banana", progress=False, **{setting: value})


def test_every_method_starts_where_the_mass_is():
    for method in ("svgd", "sghmc-stein", "sghmc", "blob"):
        result = steinflow.sample(raw_scales, shapes=4, method=method, progress=False)
        found = result.draws if result.draws is not None else result.particles
        mean, sd = moments(found)
        centre, spread = np.array([1e4, -3.0, 0.0, 250.0]), np.array([1e-2, 5.0, 1e3, 1.0])
        assert np.all(np.abs(mean - centre) < 0.5 * spread), method
        assert np.all(sd / spread > 0.4) and np.all(sd / spread < 1.6), method


def test_resting_particles_have_the_mean_and_covariance_of_a_normal():
    result = steinflow.sample(raw_scales, shapes=4, method="svgd", progress=False)
    mean, sd = moments(result.particles)
    centre, spread = np.array([1e4, -3.0, 0.0, 250.0]), np.array([1e-2, 5.0, 1e3, 1.0])
    assert np.all(np.abs(mean - centre) < 0.01 * spread)
    assert np.all(np.abs(sd / spread - 1) < 0.02)
