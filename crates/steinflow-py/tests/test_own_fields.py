"""Fields and kernels of the user's own, and the laws that find their mistakes."""

import numpy as np
import pytest
import steinflow


def gaussian(theta):
    return -0.5 * np.sum(theta**2, axis=1), -theta


SE = steinflow.Kernel(lambda q: np.exp(-q), lambda q: 2 * np.exp(-q))
SGHMC = {"auxiliaries": {"r": 1.5}, "diffusion": {"r": 0.7}, "curl": {("r", "theta"): 1.0}}
HURRIED = {
    "diffusion": {"theta": steinflow.Coefficient(0)},
    "coefficients": lambda at: [1 + 0.3 * np.sum(at.theta**2)],
    "reads_density": False,
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_kernel_that_ships_written_anew_gives_the_same_velocity(rng, dtype):
    state, score = rng.standard_normal((30, 6)).astype(dtype), None
    score = -state[:, :3]
    for method, columns in (("svgd", 3), ("sghmc-stein", 6)):
        own = steinflow.velocity(state[:, :columns], score, method=method, field=SE)
        ours = steinflow.velocity(state[:, :columns], score, method=method)
        assert np.allclose(own, ours, atol=1e-12 if dtype == "float64" else 1e-5)


def test_a_kernel_sees_coefficients(rng):
    dynamics = steinflow.Dynamics(**HURRIED, diffusion_divergence=lambda at: 0.6 * at.theta)
    theta = rng.standard_normal((20, 2))
    how = {"method": "stein", "dynamics": dynamics}
    own = steinflow.velocity(theta, -theta, field=SE, **how)
    assert np.allclose(own, steinflow.velocity(theta, -theta, **how), atol=1e-12)


def test_runs_steps_and_resumes_with_a_field_of_ones_own(rng):
    init = rng.standard_normal((20, 2)) + 1
    how = {"method": "sghmc-stein", "step_size": 0.1, "field": SE}
    result = steinflow.sample(gaussian, init, steps=20, progress=False, diagnose=False, **how)
    built_in = steinflow.sample(
        gaussian, init, steps=20, progress=False, diagnose=False, **{**how, "field": None}
    )
    assert np.allclose(result.state, built_in.state, atol=1e-12)
    sampler = steinflow.sampler(**how)
    state = sampler.init(init, seed=0)
    for _ in range(20):
        state = sampler.step(state, *gaussian(state.particles))
    assert np.array_equal(state.particles, result.particles)
    half = steinflow.sample(gaussian, init, steps=10, progress=False, diagnose=False, **how)
    assert np.array_equal(half.resume(steps=10, progress=False).state, result.state)


def test_a_function_of_all_particles_is_a_field(rng):
    def gradient_flow(at):
        assert at.names == ["theta"] and at.block("theta").shape == (10, 2)
        return at.drift

    init = rng.standard_normal((10, 2))
    how = {"steps": 10, "step_size": 0.1, "progress": False, "diagnose": False}
    result = steinflow.sample(gaussian, init, method="svgd", field=gradient_flow, **how)
    assert np.allclose(result.particles, 0.9**10 * init)


def test_wrong_formulas_are_found_before_a_run(rng):
    with pytest.raises(steinflow.LawBroken, match="slope = −2φ′: at q"):
        steinflow.Kernel(lambda q: np.exp(-q), lambda q: np.exp(-q))
    asked = []

    def target(theta):
        asked.append(len(theta))
        return gaussian(theta)

    wrong = steinflow.Dynamics(**HURRIED, diffusion_divergence=lambda at: 0.5 * at.theta)
    init = rng.standard_normal((10, 2))
    with pytest.raises(steinflow.LawBroken, match="diffusion divergence"):
        steinflow.sample(target, init, method="stein", dynamics=wrong, backend="numpy")
    assert asked == []
    with pytest.raises(steinflow.LawBroken, match="diffusion divergence"):
        steinflow.velocity(init, -init, method="stein", dynamics=wrong)
    with pytest.raises(steinflow.LawBroken, match="diffusion divergence"):
        steinflow.sampler("stein", dynamics=wrong, step_size=0.1).init(init)
    thermostat = {
        "auxiliaries": {"r": 1.0, "xi": (0.5, 1.0)},
        "curl": {("r", "theta"): 1.0, ("r", "xi"): steinflow.Coefficient(0, "diagonal")},
        "coefficients": lambda at: at.r,
        "reads_density": False,
    }
    right = lambda at: np.r_[0 * at.r, 0 * at.r, -1 + 0 * at.r]  # noqa: E731
    steinflow.testing.check_dynamics(steinflow.Dynamics(**thermostat, curl_divergence=right), 3)
    with pytest.raises(steinflow.LawBroken, match="curl divergence"):
        steinflow.testing.check_dynamics(steinflow.Dynamics(**thermostat), 3)


def test_mistakes_have_names(rng):
    init = rng.standard_normal((5, 2))
    how = {"progress": False, "diagnose": False}
    with pytest.raises(TypeError, match="field is int: give a"):
        steinflow.sample(gaussian, init, method="svgd", field=3, **how)
    with pytest.raises(ValueError, match="name a method such as svgd"):
        steinflow.sample(gaussian, init, field=SE, **how)
    with pytest.raises(ValueError, match=r"shape \(5,\), expected \(5, 2\)"):
        steinflow.sample(gaussian, init, method="svgd", field=lambda at: at.state[:, 0], **how)
    with pytest.raises(ZeroDivisionError):
        steinflow.sample(gaussian, init, method="svgd", field=lambda at: 1 // 0, **how)
    with pytest.raises(ValueError, match="write it for arrays"):
        steinflow.Kernel(lambda q: 1.0, lambda q: 0.0)
    with pytest.raises(steinflow.LawBroken, match=r"φ\(0\) > 0"), np.errstate(all="ignore"):
        steinflow.Kernel(lambda q: q**-0.5, lambda q: q**-1.5)
