"""Means and standard deviations of every parameter by two samplers: `references.csv`.

    cargo build -p steinflow-models --example reference
    python experiments/posteriors/references.py [NAME ...]

First: Hamiltonian Monte Carlo with random lengths and a dense metric, 16 chains (`reference sample`,
in Rust). Second: nutpie's NUTS, 8 chains, in coordinates that the first one's covariance whitens,
which changes its cost and not its law. A number is the mean of both, weighted by inverse squared
standard errors. Lines of posteriors that are not named stay as they are.
"""

import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from served import BINARY, Served, catalogue, nutpie_model

import arviz
import nutpie

TABLE = Path(__file__).with_name("references.csv")
FIELDS = ["posterior", "parameter", "mean", "sd", "mean_error", "sd_error", "hmc_mean", "hmc_sd",
          "nuts_mean", "nuts_sd", "hmc_ess", "nuts_ess", "hmc_rhat", "nuts_rhat"]
SEED = 20261116

# Moves between draws and acceptance of HMC, gain at which its climb ends; draws a chain and acceptance
# of NUTS. More for posteriors that mix slowly.
USUAL = {"thin": 3, "acceptance": 0.85, "calm": 0.01, "draws": 6000, "target": 0.9}
SPECIAL = {
    "eight-schools-non-centred": {"thin": 4, "acceptance": 0.98, "draws": 10000, "target": 0.99},
    "gp-latent-poisson": {"thin": 8, "acceptance": 0.95, "target": 0.95},
    "gp-regression": {"thin": 3, "acceptance": 0.95, "draws": 8000, "target": 0.97},
    "horseshoe-regression": {"thin": 15, "acceptance": 0.97, "draws": 8000, "target": 0.97},
    "item-response": {"thin": 4},
    "longley-linear": {"thin": 4, "acceptance": 0.9, "draws": 8000},
    "markets-garch": {"thin": 4, "acceptance": 0.95, "draws": 8000, "target": 0.97},
    "markets-stochastic-volatility": {"thin": 20, "acceptance": 0.95, "draws": 8000, "target": 0.93},
    "measurement-error": {"thin": 4, "calm": 25.0, "acceptance": 0.9, "target": 0.95},
    "orange-trees-growth": {"calm": 10.0},
    "radon-centred": {"calm": 25.0},
    "radon-slopes-non-centred": {"thin": 6, "acceptance": 0.97, "draws": 8000, "target": 0.95},
    "stack-loss-student": {"thin": 4, "acceptance": 0.9, "draws": 8000},
    "credit-saturated-logistic": {"thin": 3, "acceptance": 0.95, "draws": 8000, "target": 0.95},
}


def by_hmc(name, dim, plan):
    """16 chains × 4000 draws × dim."""
    numbers = [16, 4000, plan["thin"], plan["acceptance"], plan["calm"], SEED]
    command = [BINARY, "sample", name, *map(str, numbers)]
    draws = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(draws).reshape(16, -1, dim)


def by_nuts(name, dim, plan, pilot):
    """8 chains × draws × dim; starts are draws of the pilot."""
    flat = pilot.reshape(-1, dim)
    mean, factor = flat.mean(0), np.linalg.cholesky(np.cov(flat.T).reshape(dim, dim))
    served = Served(name, dim)

    def whitened(u):
        value, score = served(mean + factor @ u)
        return value, factor.T @ score

    def start(seed):
        chosen = flat[np.random.default_rng(seed).integers(len(flat))]
        return np.linalg.solve(factor, chosen - mean)

    trace = nutpie.sample(
        nutpie_model(whitened, dim, start), draws=plan["draws"], tune=1000, chains=8, cores=1,
        seed=SEED, target_accept=plan["target"], progress_bar=False,
    )
    served.close()
    divergences = int(trace.sample_stats.diverging.sum())
    return mean + trace.posterior.theta.values @ factor.T, divergences


def centred_schools(draws):
    """θ = μ + τz: draws of the non-centred posterior are draws of the centred one."""
    moved = draws.copy()
    moved[..., 2:] = draws[..., :1] + np.exp(draws[..., 1:2]) * draws[..., 2:]
    return moved


def summary(draws):
    """Mean, sd, their standard errors, ESS and R̂ of one parameter."""
    return (draws.mean(), draws.std(), float(arviz.mcse(draws, method="mean")),
            float(arviz.mcse(draws, method="sd")),
            min(float(arviz.ess(draws, method=how)) for how in ("mean", "sd")),
            float(arviz.rhat(draws)))


def weighted(a, error_a, b, error_b):
    share = error_b**2 / (error_a**2 + error_b**2)
    return share * a + (1 - share) * b, error_a * error_b / np.hypot(error_a, error_b)


def reference(name, names):
    source = name.replace("schools-centred", "schools-non-centred")
    plan = USUAL | SPECIAL.get(source, {})
    began = time.time()
    first = by_hmc(source, len(names), plan)
    between = time.time()
    second, divergences = by_nuts(source, len(names), plan, first)
    times = f"{between - began:.0f} s + {time.time() - between:.0f} s"
    if name != source:
        first, second = centred_schools(first), centred_schools(second)
    rows, worst = [], [0.0, 0.0, np.inf, 0.0]
    for j, parameter in enumerate(names):
        hmc, nuts = summary(first[..., j]), summary(second[..., j])
        mean, mean_error = weighted(hmc[0], hmc[2], nuts[0], nuts[2])
        sd, sd_error = weighted(hmc[1], hmc[3], nuts[1], nuts[3])
        numbers = [mean, sd, mean_error, sd_error, *hmc[:2], *nuts[:2], hmc[4], nuts[4], hmc[5], nuts[5]]
        formats = ["%.7g"] * 2 + ["%.2g"] * 2 + ["%.7g"] * 4 + ["%.0f"] * 2 + ["%.4f"] * 2
        rows.append([name, parameter, *(how % number for how, number in zip(formats, numbers))])
        worst = [max(worst[0], abs(hmc[0] - nuts[0]) / sd), max(worst[1], abs(hmc[1] / nuts[1] - 1)),
                 min(worst[2], hmc[4], nuts[4]), max(worst[3], hmc[5], nuts[5])]
    agree = worst[0] < 0.02 and worst[1] < 0.02 and worst[3] < 1.005
    print(f"{name:32} d {len(names):3}  means {worst[0]:.3f}  sds {worst[1]:.3f}  ESS {worst[2]:7.0f}  "
          f"R̂ {worst[3]:.4f}  divergences {divergences}  {times}  {'' if agree else 'DISAGREE'}", flush=True)
    return rows


def main():
    entries = catalogue()
    table = {}
    if TABLE.exists():
        for row in list(csv.reader(TABLE.open()))[1:]:
            table.setdefault(row[0], []).append(row)
    for name in sys.argv[1:] or entries:
        table[name] = reference(name, entries[name][2])
        with TABLE.open("w") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(FIELDS)
            writer.writerows(row for known in entries for row in table.get(known, []))


if __name__ == "__main__":
    main()
