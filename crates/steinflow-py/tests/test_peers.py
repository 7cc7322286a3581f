"""The verdict on draws that other packages have made."""

import numpy as np
import pytest
import steinflow

jax = pytest.importorskip("jax")


def banana(theta):
    """x ~ N(0, 1), y − x² ~ N(0, 1/2), three more that are independent."""
    x, y, rest = theta[0], theta[1], theta[2:]
    return -0.5 * (x**2 + 2.0 * (y - x**2) ** 2 + (rest**2).sum())


def normal(theta):
    return -0.5 * (theta**2).sum()


def test_nuts_of_numpyro_is_trusted_and_a_stuck_chain_is_not():
    infer = pytest.importorskip("numpyro.infer")
    kernel = infer.NUTS(potential_fn=lambda theta: -banana(theta))
    mcmc = infer.MCMC(
        kernel, num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip
    mcmc.run(jax.random.PRNGKey(0), init_params=jax.numpy.zeros((4, 5)))
    draws = np.asarray(mcmc.get_samples(group_by_chain=True), np.float32)
    found = steinflow.diagnose(draws, banana, backend="jax")
    assert found.verdict == "trust", found
    # The same chains with one that stayed where it was.
    stuck = draws.copy()
    stuck[3, :, 0] = 0.05 * stuck[3, :, 0] + 2.5
    stuck[3, :, 1] = stuck[3, :, 0] ** 2 + 0.1 * stuck[3, :, 2]
    assert steinflow.diagnose(stuck, banana, backend="jax").verdict == "not-converged"


@pytest.mark.parametrize("dim, verdict", [(2, "trust"), (20, "collapsed")])
def test_svgd_of_blackjax_is_trusted_where_it_keeps_the_variance(dim, verdict):
    svgd = pytest.importorskip("blackjax.vi.svgd")
    optax = pytest.importorskip("optax")
    particles = jax.random.normal(jax.random.PRNGKey(1), (100, dim))
    algorithm = svgd.as_top_level_api(
        jax.grad(normal), optax.adam(0.05), svgd.rbf_kernel, svgd.update_median_heuristic
    )
    state = algorithm.init(particles)
    step = jax.jit(algorithm.step)
    for _ in range(1000):
        state = step(state)
    points = np.asarray(state.particles, np.float32)
    found = steinflow.diagnose(points, normal, resting=True, backend="jax")
    assert found.verdict == verdict, found
