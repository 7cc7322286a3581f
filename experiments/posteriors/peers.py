"""What other samplers make of the posteriors, from their own starts and settings: `peers.csv`.

    python experiments/posteriors/peers.py [SAMPLER ...]

Strict: every mean within 0.1 reference standard deviations and every standard deviation within 5 %;
loose: 0.3 and 20 %. Gradients are counted where they are evaluated, warm-up included; a run is stopped
at LIMIT of them. Rows that are in the table already are not made again.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from served import Served, catalogue, nutpie_model

import arviz

HERE = Path(__file__).parent
FIELDS = ["sampler", "posterior", "half", "d", "seed", "strict", "loose", "worst_mean", "worst_sd",
          "gradients", "seconds", "rhat", "ess", "divergences", "outcome"]
SEEDS = [1, 2, 3]
LIMIT = 1_000_000


class Limited(Served):
    """Beyond the limit everything is a wall, at which runs soon end by themselves."""

    def __call__(self, theta):
        if self.evaluations >= LIMIT:
            return -np.inf, np.zeros(self.dim)
        return super().__call__(theta)


def nutpie_run(served, seed, **how):
    """4 chains × 1000 draws; the number of tuning steps is nutpie's own."""
    import nutpie

    trace = nutpie.sample(
        nutpie_model(served, served.dim), draws=1000, chains=4, cores=1, seed=seed,
        progress_bar=False, **how,
    )
    return trace.posterior.theta.values, int(trace.sample_stats.diverging.sum())


def jax_density(served):
    """The density for JAX, with its score from the same call; many chains in one."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def evaluate(theta):
        flat = np.asarray(theta).reshape(-1, served.dim)
        answers = [served(row) for row in flat]
        shape = np.shape(theta)[:-1]
        values = np.array([value for value, _ in answers])
        return values.reshape(shape), np.array([score for _, score in answers]).reshape(*shape, -1)

    def both(theta):
        kind = (jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((served.dim,), jnp.float64))
        return jax.pure_callback(evaluate, kind, theta, vmap_method="broadcast_all")

    @jax.custom_vjp
    def log_density(theta):
        return both(theta)[0]

    log_density.defvjp(both, lambda score, cotangent: (cotangent * score,))
    return log_density


def starts(seed, chains, dim):
    """U(−2, 2), as Stan and nutpie's peers have it."""
    import jax

    return jax.random.uniform(jax.random.key(seed), (chains, dim), minval=-2.0, maxval=2.0, dtype=float)


def blackjax_nuts(served, seed):
    """Window adaptation with a diagonal metric, 1000 steps; 4 chains × 1000 draws."""
    import blackjax
    import jax

    log_density = jax_density(served)
    chains = []
    divergences = 0
    for chain, start in enumerate(starts(seed, 4, served.dim)):
        warm_key, key = jax.random.split(jax.random.fold_in(jax.random.key(seed), chain))
        warm_up = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, parameters), _ = warm_up.run(warm_key, start, num_steps=1000)
        step = blackjax.nuts(log_density, **parameters).step

        def one(state, key, step=step):
            state, info = step(key, state)
            return state, (state.position, info.is_divergent)

        _, (draws, diverged) = jax.lax.scan(one, state, jax.random.split(key, 1000))
        chains.append(np.asarray(draws))
        divergences += int(diverged.sum())
    return np.stack(chains), divergences


def blackjax_chees(served, seed):
    """ChEES-HMC: 64 chains, 500 steps of adaptation, 100 draws each."""
    import blackjax
    import jax
    import optax

    log_density = jax_density(served)
    warm_key, key = jax.random.split(jax.random.key(seed))
    warm_up = blackjax.chees_adaptation(log_density, 64)
    (states, parameters), _ = warm_up.run(
        warm_key, starts(seed, 64, served.dim), 0.1, optax.adam(0.05), num_steps=500
    )
    step = jax.vmap(blackjax.dynamic_hmc(log_density, **parameters).step)
    return _many(step, states, key, 100)


def blackjax_meads(served, seed):
    """MEADS: 64 chains, 1000 steps of adaptation, 1000 draws each (a gradient a draw)."""
    import blackjax
    import jax

    log_density = jax_density(served)
    warm_key, key = jax.random.split(jax.random.key(seed))
    warm_up = blackjax.meads_adaptation(log_density, 64)
    (states, parameters), _ = warm_up.run(warm_key, starts(seed, 64, served.dim), num_steps=1000)
    step = jax.vmap(blackjax.ghmc(log_density, **parameters).step)
    return _many(step, states, key, 1000)


def _many(step, states, key, count):
    import jax

    def one(states, key):
        states, info = step(jax.random.split(key, 64), states)
        return states, (states.position, info.is_divergent)

    _, (draws, diverged) = jax.lax.scan(one, states, jax.random.split(key, count))
    return np.asarray(draws).transpose(1, 0, 2), int(diverged.sum())


SAMPLERS = {
    "nutpie-diagonal": nutpie_run,
    "nutpie-low-rank": lambda served, seed: nutpie_run(served, seed, low_rank_modified_mass_matrix=True),
    "blackjax-meads": blackjax_meads,
    "blackjax-chees": blackjax_chees,
    "blackjax-nuts": blackjax_nuts,
}


def references():
    table = {}
    for row in csv.DictReader((HERE / "references.csv").open()):
        table.setdefault(row["posterior"], []).append((float(row["mean"]), float(row["sd"])))
    return {name: np.array(rows).T for name, rows in table.items()}


def judge(sampler, name, seed, half, mean, sd):
    served = Limited(name, len(mean))
    row = {"sampler": sampler, "posterior": name, "half": half, "d": len(mean), "seed": seed,
           "strict": 0, "loose": 0, "outcome": "ran"}
    began = time.time()
    try:
        draws, row["divergences"] = SAMPLERS[sampler](served, seed)
        draws = np.asarray(draws)
        by_mean = (np.abs(draws.mean((0, 1)) - mean) / sd).max()
        by_sd = np.abs(draws.std((0, 1)) / sd - 1).max()
        row |= {"strict": int(by_mean <= 0.1 and by_sd <= 0.05), "loose": int(by_mean <= 0.3 and by_sd <= 0.2),
                "worst_mean": f"{by_mean:.3g}", "worst_sd": f"{by_sd:.3g}",
                "rhat": f"{max(float(arviz.rhat(draws[..., j])) for j in range(len(mean))):.3f}",
                "ess": f"{min(float(arviz.ess(draws[..., j])) for j in range(len(mean))):.0f}"}
    except Exception as error:  # whatever a peer says when it gives up is its outcome
        row["outcome"] = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    if served.evaluations >= LIMIT:
        row |= {"strict": 0, "loose": 0, "outcome": "stopped at the limit of gradients"}
    row |= {"gradients": served.evaluations, "seconds": f"{time.time() - began:.1f}"}
    served.close()
    return row


def main():
    path = HERE / "peers.csv"
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    known = {(row["sampler"], row["posterior"], int(row["seed"])) for row in rows}
    moments = references()
    for sampler in sys.argv[1:] or SAMPLERS:
        for seed in SEEDS:
            for name, (half, _, _) in catalogue().items():
                if (sampler, name, seed) in known or name not in moments:
                    continue
                row = judge(sampler, name, seed, half, *moments[name])
                rows.append(row)
                print(*(f"{key}={row[key]}" for key in FIELDS if key in row), flush=True)
                with path.open("w") as file:
                    writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)


if __name__ == "__main__":
    main()
