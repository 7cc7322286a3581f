"""Eight schools, non-centred, in every front end, and the run of NUTS that they are compared with.

`python eight_schools.py` makes `eight_schools_nuts.json` again (some minutes).
"""

import json
from pathlib import Path

import numpy as np

TREATMENT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
STDDEV = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
REFERENCE = Path(__file__).with_name("eight_schools_nuts.json")


def numpyro_model(stddev, treatment):
    import numpyro
    from numpyro import distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(stddev)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, stddev), obs=treatment)


def pymc_model():
    import pymc as pm

    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, shape=8)
        theta = pm.Deterministic("theta", mu + tau * z)
        pm.Normal("y", theta, STDDEV, observed=TREATMENT)
    return model


def jax_logdensity(p):
    import jax.numpy as jnp

    tau = jnp.exp(p["log_tau"])
    theta = p["mu"] + tau * p["z"]
    # The half-Cauchy prior of tau, with the Jacobian of its logarithm.
    prior = -0.5 * (p["mu"] / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + p["log_tau"]
    likelihood = -0.5 * jnp.sum(((TREATMENT - theta) / STDDEV) ** 2)
    return prior - 0.5 * jnp.sum(p["z"] ** 2) + likelihood


STAN = """
data { int J; vector[J] y; vector[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] z; }
transformed parameters { vector[J] theta = mu + tau * z; }
model { mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ normal(0, 1); y ~ normal(theta, sigma); }
"""


def stan_model(folder):
    import stan_toolchain

    data = {"J": len(TREATMENT), "y": TREATMENT.tolist(), "sigma": STDDEV.tolist()}
    return stan_toolchain.compiled(STAN, data, folder)


def moments(samples):
    """Mean and standard deviation over the two leading axes, of mu, tau and theta."""
    return {
        name: {
            "mean": np.mean(samples[name], axis=(0, 1), dtype=float).tolist(),
            "sd": np.std(samples[name], axis=(0, 1), dtype=float).tolist(),
        }
        for name in ("mu", "tau", "theta")
    }


def run_nuts():
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    kernel = NUTS(numpyro_model, target_accept_prob=0.95)
    mcmc = MCMC(
        kernel,
        num_warmup=2000,
        num_samples=25_000,
        num_chains=8,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0), STDDEV, TREATMENT)
    samples = mcmc.get_samples(group_by_chain=True)
    summary = numpyro.diagnostics.summary(samples)
    fewest = min(float(np.min(summary[name]["n_eff"])) for name in ("mu", "tau", "theta"))
    made = f"NumPyro {numpyro.__version__} NUTS, 8 chains of 25,000, least effective sample {fewest:.0f}"
    REFERENCE.write_text(json.dumps({"made_by": made, **moments(samples)}, indent=1) + "\n")


if __name__ == "__main__":
    run_nuts()
