"""What draws of NUTS (nutpie) make of the same expectations and simulations: `nuts.csv`.

    cargo build -p steinflow-models --example reference
    python -m pip install -r experiments/posteriors/requirements.txt
    python experiments/derandomised/nuts.py

4 chains × 1000 draws with nutpie's own tuning, of which every so many are taken as points; and all draws of shorter
and longer runs, for errors by gradients. Errors are root mean squares over seeds (and, of expectations, over
coordinates); those of simulations in standard deviations of the answer, its truth by long runs of NUTS and so by nothing
of ours but the density. With names, only those are made again, of `normal`, `log-gamma` and `influenza-sir`.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from scipy import special

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "posteriors"))

from served import Served, nutpie_model  # noqa: E402

COUNTS, SEEDS = (30, 60, 120, 240, 480), range(6)
# Draws of each of 4 chains, all taken, for errors by gradients.
LENGTHS, USUAL = (30, 60, 125, 250, 500, 1000, 2000), 1000
FILE = HERE / "nuts.csv"
HEAD = ["of", "draws", "points", "gradients", "expectation", "error"]
DIM, BOYS = 5, 763.0


class Law:
    """Five independent coordinates with exact answers: E x, E x², E eˣ, P(x > t)."""

    dim = DIM

    def __init__(self, log_density, score, threshold, truth):
        self.log_density, self.score = log_density, score
        self.threshold, self.truth, self.evaluations = threshold, truth, 0

    def __call__(self, x):
        self.evaluations += 1
        return self.log_density(x).sum(), self.score(x)

    def errors(self, points):
        values = np.stack([points, points**2, np.exp(points), points > self.threshold])
        return values.mean(1).T - self.truth


def normal():
    truth = (0.0, 1.0, np.exp(0.5), special.ndtr(-1.0))
    return Law(lambda x: -0.5 * x * x, lambda x: -x, 1.0, truth)


def log_gamma():
    mean = special.digamma(4.0)
    truth = (mean, special.polygamma(1, 4.0) + mean**2, 4.0, special.gammaincc(4.0, np.exp(1.75)))
    return Law(lambda x: 4.0 * x - np.exp(x), lambda x: 4.0 - np.exp(x), 1.75, truth)


def outbreak(theta, days=60, steps=24):
    """Ill at once, ill in all, days with 5 or more ill, where contacts are halved from the fourth day on."""
    infection, recovery = np.exp(theta[:, 0]), np.exp(theta[:, 1])
    ill = np.exp(theta[:, 2]) / BOYS
    healthy, dt = 1.0 - ill, 1.0 / steps
    at_once, long = ill.copy(), np.zeros_like(ill)
    for step in range(days * steps):
        rate = infection * (1.0 if step < 3 * steps else 0.5)

        def slope(s, i, rate=rate):
            return -rate * s * i, rate * s * i - recovery * i

        a, b = slope(healthy, ill)
        c, d = slope(healthy + dt * a, ill + dt * b)
        healthy, ill = healthy + 0.5 * dt * (a + c), ill + 0.5 * dt * (b + d)
        at_once = np.maximum(at_once, ill)
        long += dt * (BOYS * ill >= 5.0)
    return np.stack([BOYS * at_once, BOYS * (1.0 - healthy), long], 1)


def nuts(target, seed, draws=1000):
    """Draws, chain after chain, and the gradients that they took."""
    import nutpie

    target.evaluations = 0
    trace = nutpie.sample(nutpie_model(target, target.dim), draws=draws, chains=4, cores=1, seed=seed,
                          progress_bar=False)
    return trace.posterior.theta.values.reshape(-1, target.dim), target.evaluations


def picked(draws, count):
    return draws[np.arange(count) * len(draws) // count]


def study(what, target, errors, names):
    for length in LENGTHS:
        runs = [nuts(target, seed, draws=length) for seed in SEEDS]
        gradients = round(np.mean([taken for _, taken in runs]))
        for count in (*COUNTS, 4 * length) if length == USUAL else (4 * length,):
            squares = [np.atleast_2d(errors(picked(draws, count))) ** 2 for draws, _ in runs]
            roots = np.sqrt(np.mean(squares, (0, 1)))
            for name, root in zip(names, roots, strict=True):
                yield what, 4 * length, count, gradients, name, f"{root:.5f}"


def simulations():
    served = Served("influenza-sir", 4)
    answers = np.concatenate([outbreak(nuts(served, 100 + k, draws=10_000)[0]) for k in range(4)])
    truth, sd = answers.mean(0), answers.std(0)
    names = ("ill at once", "ill in all", "days with 5 or more ill")
    yield from study("influenza-sir", served, lambda points: (outbreak(points).mean(0) - truth) / sd, names)
    served.close()


def main():
    names = ("E x", "E x²", "E eˣ", "P(x > t)")
    laws = {"normal": normal, "log-gamma": log_gamma}
    wanted = sys.argv[1:] or [*laws, "influenza-sir"]
    rows = []
    if FILE.exists():
        with FILE.open() as file:
            rows = [row for row in list(csv.reader(file))[1:] if row[0] not in wanted]
    for name in wanted:
        law = laws[name]() if name in laws else None
        rows += simulations() if law is None else study(name, law, law.errors, names)
    with FILE.open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
