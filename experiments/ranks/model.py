"""Fits the model of README.md to what `measure.py` has measured, and says what it predicts.

    python3 experiments/ranks/model.py experiments/ranks/ranks.csv
"""

import csv
import math
import statistics
import sys
from collections import defaultdict

# Ranks that share the cores of one machine with nobody; with as many as there are cores, they wait for one another's turn.
MOST_RANKS = 8


def solve(matrix, right):
    """Gauss elimination with pivots."""
    n = len(right)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def fit(rows):
    """Least squares of relative errors: rows of ([terms], value, scale)."""
    terms = len(rows[0][0])
    matrix = [[sum(x[i] * x[j] / s**2 for x, _, s in rows) for j in range(terms)] for i in range(terms)]
    return solve(matrix, [sum(x[i] * y / s**2 for x, y, s in rows) for i in range(terms)])


def messages(p):
    """Broadcasts in a tree, and what rank 0 says to and hears from each."""
    return 6 * math.ceil(math.log2(p)) + 4 * (p - 1)


def numbers(n, d, others, p):
    """That pass rank 0's link in a step of SVGD."""
    there_and_back = n * (3 * d + 2) * (p - 1) / p
    return there_and_back + (2 * n * (2 * d + 1) if others == "all" else n * (2 * d + 1) * (p - 1) / p)


def main(table):
    times = defaultdict(list)
    with open(table) as file:
        for row in csv.DictReader(file):
            key = (int(row["particles"]), int(row["dim"]), row["interactions"])
            times[key, int(row["ranks"]), int(row["threads"])].append(float(row["seconds_per_step"]))
    median = {key: statistics.median(values) for key, values in times.items()}
    runs = sorted({key for key, _, _ in median})
    alone, shared, rows = {}, {}, []
    for run in runs:
        own = [([1, 1 / t], y, y) for (key, p, t), y in median.items() if key == run and p == 1]
        alone[run], shared[run] = fit(own)
    for (run, p, _), y in median.items():
        if 1 < p <= MOST_RANKS:
            n, d, others = run
            # K of wide right-hand sides: one process computes half of it and mirrors it, ranks do so in their own rows only.
            twice = (1 - 1 / p) * shared[run] / p if others == "all" and d + 1 > 8 else 0.0
            terms = [messages(p), 8 * numbers(n, d, others, p), twice]
            rows.append((terms, y - alone[run] - shared[run] / p, y))
    alpha, per_byte, again = fit(rows)
    errors = [abs(sum(a * b for a, b in zip(x, (alpha, per_byte, again), strict=True)) - y) / s for x, y, s in rows]
    print(f"alpha {1e6 * alpha:.1f} us, b {1e-9 / per_byte:.2f} GB/s, phi {again:.2f}")
    print(f"error of the model: median {statistics.median(errors):.1%}, largest {max(errors):.1%}\n")
    print("| N | d | P | alone, ms | shared, ms | threads 1 / 2 / 4 / 8, ms | ranks 2 / 4 / 8, ms | 2 ranks : 2 threads |")
    print("|---|---|---|---|---|---|---|---|")
    for run in runs:
        at = lambda p, t: f"{1e3 * median[run, p, t]:.1f}" if (run, p, t) in median else "–"  # noqa: B023, E731
        threads = " / ".join(at(1, t) for t in (1, 2, 4, 8))
        ranks = " / ".join(at(p, 1) for p in (2, 4, 8))
        pair = [median.get((run, 2, 1)), median.get((run, 1, 2))]
        ratio = f"{pair[0] / pair[1]:.2f}" if all(pair) else "–"
        cells = [*map(str, run), f"{1e3 * alone[run]:.1f}", f"{1e3 * shared[run]:.1f}", threads, ranks, ratio]
        print("| " + " | ".join(cells) + " |")


main(*sys.argv[1:])
