"""Eight schools in JAX, NumPyro, PyMC and Stan: the same posterior, and that of a long run of NUTS.

By `sghmc`, whose particles are independent chains, and by `svgd-product`, whose particles interact and
whose noise makes that exact. The methods without noise keep too little variance here.
"""

import functools
import json

import eight_schools
import numpy as np
import pytest
import steinflow
from steinflow.adapters import bridgestan

# The default; more draws than it takes by itself, for the tolerance of the comparison.
DEFAULT = dict(effective=10_000, gradients=20_000)
INTERACTING = dict(
    method="svgd-product",
    warm_up=False,
    steps=6000,
    step_size=1.0,
    collect_from=1000,
    collect_every=10,
)


@functools.cache
def draws(front_end, interacting=False):
    settings = INTERACTING if interacting else DEFAULT
    run = functools.partial(steinflow.sample, progress=False, **settings)
    pytest.importorskip("jax", reason="JAX is not installed")
    if front_end == "jax":
        found = run(eight_schools.jax_logdensity, shapes={"mu": (), "log_tau": (), "z": (8,)}).draws
        tau = np.exp(found["log_tau"])
        theta = found["mu"][..., None] + tau[..., None] * found["z"]
        return {"mu": found["mu"], "tau": tau, "theta": theta}
    pytest.importorskip(front_end, reason=f"{front_end} is not installed")
    if front_end == "numpyro":
        arguments = (eight_schools.STDDEV, eight_schools.TREATMENT)
        return run(eight_schools.numpyro_model, model_args=arguments).draws
    return run(eight_schools.pymc_model()).draws


def compare(found, expected):
    """Means and standard deviations within 5 % of the posterior's standard deviation."""
    for name in ("mu", "tau", "theta"):
        sd = np.array(expected[name]["sd"])
        mean = np.abs(np.subtract(found[name]["mean"], expected[name]["mean"])) / sd
        spread = np.abs(np.subtract(found[name]["sd"], sd)) / sd
        assert np.max(mean) < 0.05 and np.max(spread) < 0.05, (name, mean, spread)


@pytest.mark.parametrize("front_end", ["jax", "numpyro", "pymc"])
def test_front_ends_agree_with_nuts(front_end):
    expected = json.loads(eight_schools.REFERENCE.read_text())
    compare(eight_schools.moments(draws(front_end)), expected)


@pytest.mark.parametrize("front_end", ["numpyro", "pymc"])
def test_front_ends_agree_with_each_other(front_end):
    compare(eight_schools.moments(draws(front_end)), eight_schools.moments(draws("jax")))


def test_stan_agrees_with_jax_and_with_nuts(tmp_path):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    model = eight_schools.stan_model(tmp_path)
    theta = np.random.default_rng(0).standard_normal((50, 10))
    value, gradient = bridgestan.target(model, None).function(theta, None, 1.0)

    def logdensity(row):
        return eight_schools.jax_logdensity({"mu": row[0], "log_tau": row[1], "z": row[2:]})

    with jax.enable_x64(True):
        expected, slope = jax.vmap(jax.value_and_grad(logdensity))(theta)
    # Up to a constant.
    assert np.allclose(value - value[0], expected - expected[0], atol=1e-10)
    assert np.allclose(gradient, slope, atol=1e-10)
    found = steinflow.sample(model, progress=False, **DEFAULT).draws
    compare(eight_schools.moments(found), json.loads(eight_schools.REFERENCE.read_text()))


def test_interacting_particles_agree_with_nuts():
    expected = json.loads(eight_schools.REFERENCE.read_text())
    compare(eight_schools.moments(draws("jax", interacting=True)), expected)
