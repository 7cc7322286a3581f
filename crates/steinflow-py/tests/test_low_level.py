"""The pieces against double loops, and dynamics of one's own against the library's."""

import functools

import numpy as np
import pytest
import steinflow

sample = functools.partial(steinflow.sample, method="sghmc-stein", warm_up=False, progress=False)


def naive_svgd(x, score, h):
    velocity = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            k = np.exp(-np.sum((x[i] - x[j]) ** 2) / h)
            velocity[i] += k * score[j] + 2 / h * k * (x[i] - x[j])
    return velocity / len(x)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5)])
def test_velocity_is_that_of_a_double_loop(rng, dtype, tolerance):
    x, score = rng.standard_normal((2, 20, 3)).astype(dtype)
    found = steinflow.velocity(x, score, bandwidth=1.7)
    assert found.dtype == dtype
    assert np.allclose(found, naive_svgd(x, score, 1.7), atol=tolerance)
    # Columns first is another layout of the same numbers.
    assert np.array_equal(steinflow.velocity(np.asfortranarray(x), score, bandwidth=1.7), found)
    h = steinflow.bandwidth(x)
    distances = [np.linalg.norm(x[i] - x[j]) for i in range(20) for j in range(i)]
    assert h == pytest.approx(np.median(distances) ** 2 / np.log(20), rel=1e-5)
    assert np.allclose(steinflow.velocity(x, score), naive_svgd(x, score, h), atol=tolerance)


def test_velocity_of_a_state_with_momentum(rng):
    state, score = rng.standard_normal((15, 4)), rng.standard_normal((15, 2))
    found = steinflow.velocity(state, score, method="sghmc", friction=0.3)
    momentum = state[:, 2:]
    assert np.allclose(found, np.hstack([momentum, score - 0.3 * momentum]))
    with pytest.raises(ValueError, match=r"moves \(theta, r\).*expected \(15, 4\)"):
        steinflow.velocity(state[:, :2], score, method="sghmc")


@pytest.mark.parametrize("kernel", ["se", "imq"])
def test_kernel_sums_and_discrepancy_are_those_of_dense_matrices(rng, kernel):
    x, score, values = rng.standard_normal((3, 70, 3))
    h = 2.3
    difference = x[:, None] - x[None]
    q = np.sum(difference**2, axis=2) / h
    if kernel == "se":
        k, slope, curvature = np.exp(-q), -np.exp(-q), np.exp(-q)
    else:
        k, slope, curvature = (1 + q) ** -0.5, -0.5 * (1 + q) ** -1.5, 0.75 * (1 + q) ** -2.5
    assert np.allclose(steinflow.kernel_sums(x, values, kernel=kernel, bandwidth=h), k @ values)
    w = -2 * slope / h
    cross = np.einsum("ijk,ijk->ij", score[:, None] - score[None], difference)
    u = (score @ score.T) * k + w * (cross + 3) - 4 * q * curvature / h
    expected = np.sqrt(u.mean())
    assert steinflow.ksd(x, score, kernel=kernel, bandwidth=h) == pytest.approx(expected)
    others = (u.sum() - np.trace(u)) / (70 * 69)
    found = steinflow.ksd(x, score, kernel=kernel, bandwidth=h, statistic="u")
    assert found == pytest.approx(others)


def test_arrays_that_do_not_fit(rng):
    x = rng.standard_normal((5, 2))
    with pytest.raises(ValueError, match=r"score has shape \(5,\)"):
        steinflow.velocity(x, x[:, 0])
    with pytest.raises(ValueError, match="values have 4 rows, expected 5"):
        steinflow.kernel_sums(x, x[:4])
    with pytest.raises(ValueError, match="bandwidth is 0"):
        steinflow.kernel_sums(x, x, bandwidth=0.0)
    with pytest.raises(ValueError, match="no statistic `w`"):
        steinflow.ksd(x, x, statistic="w")


def test_own_dynamics_are_the_librarys_to_the_bit():
    own = steinflow.Dynamics(
        auxiliaries={"r": 4.0}, diffusion={"r": 0.5}, curl={("r", "theta"): 1.0}
    )
    run = functools.partial(sample, "gaussian", steps=50, step_size=0.1)
    for field, method in [("stein", "sghmc-stein"), ("diffusion", "sghmc"), ("blob", "sghmc-blob")]:
        ours = run(method=method, friction=0.5, sigma=2.0)
        theirs = run(method=field, dynamics=own)
        assert np.array_equal(ours.state, theirs.state), method


def hurried(growth):
    """A = (1 + g|θ|²) I, C = 0."""
    return steinflow.Dynamics(
        diffusion={"theta": steinflow.Coefficient(0)},
        coefficients=lambda at: [1 + growth * np.sum(at.theta**2)],
        diffusion_divergence=lambda at: 2 * growth * at.theta,
        reads_density=False,
    )


def test_coefficients_of_ones_own(rng):
    x = rng.standard_normal((12, 2))
    found = steinflow.velocity(x, -x, method="drift", dynamics=hurried(0.3))
    a = 1 + 0.3 * np.sum(x**2, axis=1, keepdims=True)
    assert np.allclose(found, -a * x + 0.6 * x)
    result = sample("standard-normal", method="stein", dynamics=hurried(0.3), steps=400)
    assert np.allclose(result.particles.mean(axis=0), 0, atol=0.05)
    assert np.allclose(result.particles.var(axis=0), 0.9, atol=0.15)


def test_own_dynamics_that_are_wrong():
    with pytest.raises(ValueError, match="no block 's'; known: theta, r"):
        steinflow.Dynamics(auxiliaries={"r": 1.0}, diffusion={"s": 1.0})
    with pytest.raises(ValueError, match="no coefficients function"):
        steinflow.Dynamics(diffusion={"theta": steinflow.Coefficient(0)})
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        steinflow.Dynamics(diffusion={"theta": np.ones((2, 3))})
    negative = steinflow.Dynamics(diffusion={"theta": -1.0})
    with pytest.raises(ValueError, match="positive semidefinite"):
        sample("gaussian", method="stein", dynamics=negative)
    with pytest.raises(ValueError, match="field for dynamics of your own `svgd`"):
        sample("gaussian", method="svgd", dynamics=hurried(0.1))
    short = steinflow.Dynamics(
        diffusion={"theta": steinflow.Coefficient(0, "diagonal")}, coefficients=lambda at: [1.0]
    )
    with pytest.raises(ValueError, match="coefficients returned 1 numbers, expected 2"):
        sample("gaussian", method="stein", dynamics=short, step_size=0.1)


def test_an_exception_in_a_coefficient_arrives_unchanged():
    def fail(at):
        raise ZeroDivisionError("mine")

    broken = steinflow.Dynamics(diffusion={"theta": steinflow.Coefficient(0)}, coefficients=fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        sample("gaussian", method="stein", dynamics=broken, step_size=0.1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        steinflow.velocity(np.eye(2), np.eye(2), method="stein", dynamics=broken)
