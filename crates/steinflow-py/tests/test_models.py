"""NumPyro, PyMC and Stan: constrained parameters, starts, arguments."""

import functools

import numpy as np
import pytest
import stan_toolchain
import steinflow

sample = functools.partial(steinflow.sample, method="sghmc-stein", warm_up=False, progress=False)
DATA = np.random.default_rng(3).normal(5.0, 2.0, 200)


def exact_enough(result, scale_name):
    """With 200 rows the posterior is near the sample moments, and sd/√200 and sd/√400 wide."""
    mean, sd = DATA.mean(), DATA.std()
    draws = result.draws
    assert (draws[scale_name] > 0).all()
    assert abs(draws["mu"].mean() - mean) < 0.05
    assert abs(draws[scale_name].mean() - sd) < 0.05
    assert np.isclose(draws["mu"].std(), sd / np.sqrt(200), rtol=0.2)
    assert np.isclose(draws[scale_name].std(), sd / np.sqrt(400), rtol=0.2)


RUN = dict(
    method="sghmc", steps=1500, step_size=0.03, collect_from=500, collect_every=5, particles=50
)


def test_numpyro():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")
    dist = numpyro.distributions

    def model(rows, scale=1.0):
        mu = numpyro.sample("mu", dist.Normal(0, 10 * scale))
        sigma = numpyro.sample("sigma", dist.HalfNormal(5 * scale))
        numpyro.deterministic("ratio", mu / sigma)
        numpyro.sample("y", dist.Normal(mu, sigma), obs=rows)

    result = sample(model, model_args=(DATA,), model_kwargs={"scale": 2.0}, **RUN)
    exact_enough(result, "sigma")
    particles, unconstrained = result.particles, result.unconstrained_particles
    assert set(particles) == {"mu", "sigma", "ratio"} and set(unconstrained) == {"mu", "sigma"}
    assert np.allclose(particles["sigma"], np.exp(unconstrained["sigma"]), rtol=1e-5)
    assert np.allclose(particles["ratio"], particles["mu"] / particles["sigma"], rtol=1e-5)
    # The log density is that of the model, up to a constant.
    from numpyro.infer.util import log_density

    def log_joint(mu, sigma):
        sites = {"mu": mu, "sigma": sigma}
        return log_density(model, (DATA,), {"scale": 2.0}, sites)[0] + jax.numpy.log(sigma)

    own = jax.vmap(log_joint)(particles["mu"], particles["sigma"])
    assert np.allclose(own - own[0], result.log_density - result.log_density[0], atol=1e-2)
    again = sample(model, unconstrained, model_args=(DATA,), steps=0, backend="numpyro")
    assert np.allclose(again.particles["sigma"], particles["sigma"])
    with pytest.raises(ValueError, match=r"init has \['mu'\], but the model's unconstrained"):
        sample(model, {"mu": np.zeros(5)}, model_args=(DATA,))


def test_pymc():
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 20)
        sigma = pm.HalfNormal("sigma", 10)
        pm.Deterministic("ratio", mu / sigma)
        pm.Normal("y", mu, sigma, observed=DATA)
    result = sample(model, **RUN)
    exact_enough(result, "sigma")
    assert set(result.particles) == {"mu", "sigma", "ratio"}
    assert set(result.unconstrained_particles) == {"mu", "sigma_log__"}
    own = result.unconstrained_particles["sigma_log__"]
    assert np.allclose(result.particles["sigma"], np.exp(own), rtol=1e-5)
    with pm.Model() as discrete:
        pm.Poisson("count", 3)
    with pytest.raises(ValueError, match=r"discrete variables \(count\)"):
        sample(discrete)


def test_pymc_without_jax(monkeypatch):
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    from steinflow.adapters import pymc as adapter

    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 20)
        pm.Normal("y", mu, 2.0, observed=DATA)
    through_jax = sample(model, method="svgd", steps=20, particles=10, step_size=0.005)
    monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    compiled = sample(model, method="svgd", steps=20, particles=10, step_size=0.005)
    assert compiled.state.dtype == np.float64
    assert np.allclose(compiled.particles["mu"], through_jax.particles["mu"], atol=1e-3)


STAN = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; simplex[3] p; }
transformed parameters { matrix[2, 3] m; m = [[mu, 1, 2], [3, 4, sigma]]; }
model { mu ~ normal(0, 20); sigma ~ normal(0, 10); y ~ normal(mu, sigma); }
"""


def test_stan(tmp_path, rng):
    model = stan_toolchain.compiled(STAN, {"N": len(DATA), "y": DATA.tolist()}, tmp_path)
    # With a sigma that is wide enough: below, the scores of 200 rows are too steep for the step size.
    init = np.array([0.0, 2.0, 0.0, 0.0]) + 0.1 * rng.standard_normal((50, 4))
    result = sample(model, init, **RUN)
    exact_enough(result, "sigma")
    particles = result.particles
    assert np.allclose(particles["p"].sum(axis=1), 1.0)
    assert particles["m"].shape == (50, 2, 3)
    assert np.allclose(particles["m"][:, 0, 0], particles["mu"])
    assert np.allclose(particles["m"][:, 1, 2], particles["sigma"])


class PretendStan:
    """A model with the interface of `bridgestan.StanModel`: N(0, 1) of log(sigma)."""

    def param_unc_names(self):
        return ["sigma", "x.1"]

    def param_names(self, include_tp=False):
        return ["sigma", "x.1", "m.1.1", "m.2.1", "m.1.2", "m.2.2"]

    def param_unc_num(self):
        return 2

    def log_density_gradient(self, theta, out):
        out[:] = -theta
        return -0.5 * float(theta @ theta), out

    def param_constrain(self, theta, include_tp=False):
        return np.array([np.exp(theta[0]), theta[1], 11.0, 21.0, 12.0, 22.0])


PretendStan.__module__ = "bridgestan.model"


def test_the_stan_adapter_without_its_toolchain():
    result = sample(PretendStan(), method="svgd", steps=300)
    assert np.allclose(result.theta.mean(axis=0), 0, atol=0.05)
    particles = result.particles
    assert np.allclose(particles["sigma"], np.exp(result.theta[:, 0]))
    assert particles["x"].shape == (100, 1)
    assert np.array_equal(particles["m"][0], [[11.0, 12.0], [21.0, 22.0]])


class RefusesTheMiddle(PretendStan):
    def log_density_gradient(self, theta, out):
        if abs(theta[0]) < 0.5:
            raise RuntimeError("Exception: Scale parameter is 0, but must be positive!")
        return super().log_density_gradient(theta, out)


RefusesTheMiddle.__module__ = "bridgestan.model"


@pytest.mark.filterwarnings("always:Stan")
def test_where_stan_refuses_there_is_no_density():
    run = functools.partial(
        sample, RefusesTheMiddle(), np.array([[1.0, 0.0], [9.0, 0.0]]), method="svgd", step_size=0.2
    )
    with pytest.warns(RuntimeWarning, match="Stan: Exception: Scale parameter is 0"):
        assert run(steps=20, non_finite="freeze").diagnostics["frozen"] == [0]
    with (
        pytest.warns(RuntimeWarning, match="Stan"),
        pytest.raises(steinflow.SamplingError, match="of particle 0 is NaN"),
    ):
        run(steps=20)


def test_a_regression_speaks_in_the_units_of_its_table(tmp_path):
    table = tmp_path / "homes.csv"
    noise = np.random.default_rng(1).normal(size=(200, 2))
    lines = ["id;district;area;price"]
    for k, (x, e) in enumerate(noise):
        district, area = ("south", "north")[k % 2], 50 + 10 * x
        price = 100 + 2 * area + 30 * (district == "south") + 5 * e
        lines.append(f"{k};{district};{area};{price}".replace(".", ","))
    table.write_text("\n".join(lines))
    model = steinflow.model("linear-regression", data=table)
    assert model.parameter_names == ["intercept", "district[south]", "area", "noise"]
    assert model.notes[0] == "read 200 rows, 3 columns, with semicolons and decimal commas"
    result = steinflow.sample(model, progress=False)
    for name, truth in {"area": 2, "district[south]": 30, "noise": 5}.items():
        draws = result.draws[name]
        # Four posterior standard deviations of data with this seed.
        assert abs(draws.mean() - truth) < 4 * draws.std() < 0.2 * truth
    assert list(result.columns()) == model.parameter_names
    assert np.all(result.columns()["noise"] > 0)
    assert result.theta[:, 0].mean() < 1, "the sampler's own units"
