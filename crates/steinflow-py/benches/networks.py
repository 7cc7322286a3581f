"""What a step costs beyond the gradient where particles are networks, beside copying them once.

Run it with the package installed: `python crates/steinflow-py/benches/networks.py`. Scores are at hand,
so that what is timed is the sampler alone: `state = sampler.step(state, log_density, scores)`, and
`state.particles`, which a loop of one's own reads. The floor is what memory allows: NumPy copies the
particles once between any two steps, so that whatever else the machine does slows both down. Medians
count.

`--memory` measures the most memory that a run holds instead, in copies of the particles: a process for
every method, with 10 particles of 10⁷ weights.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import steinflow

METHODS = ("svgd", "sghmc-stein", "sgnht-stein")


def begin(method, particles, weights):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((particles, weights), np.float32)
    scores = rng.standard_normal((particles, weights), np.float32)
    sampler = steinflow.sampler(method, step_size=1e-3)
    return sampler, sampler.init(theta, seed=0), np.zeros(particles, np.float32), scores


def milliseconds(begun):
    return (time.perf_counter() - begun) * 1e3


def measure(method, particles, weights, steps):
    """Medians in ms: a copy of the particles, a step, and reading the particles."""
    sampler, state, log_density, scores = begin(method, particles, weights)
    source, copy = scores.copy(), scores.copy()
    rows = []
    for _ in range(steps):
        begun = time.perf_counter()
        np.copyto(copy, source)
        floor = milliseconds(begun)
        begun = time.perf_counter()
        state = sampler.step(state, log_density, scores)
        step = milliseconds(begun)
        begun = time.perf_counter()
        _ = state.particles
        rows.append((floor, step, milliseconds(begun)))
    return [statistics.median(column) for column in zip(*rows[3:], strict=True)]


def peak_copies(method, particles, weights):
    """The most memory of a run of some steps, in copies of the particles; its own inputs are two."""
    sampler, state, log_density, scores = begin(method, particles, weights)
    for _ in range(3):
        state = sampler.step(state, log_density, scores)
        _ = state.particles
    kilobyte = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte
    return peak / (4 * particles * weights)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak-of", metavar="METHOD", help=argparse.SUPPRESS)
    parser.add_argument("--particles", type=int)
    parser.add_argument("--weights", type=int)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    many = given.memory or given.peak_of
    particles = given.particles or (10 if many else 20)
    weights = given.weights or (10**7 if many else 10**5)
    if given.peak_of:
        return print(f"{peak_copies(given.peak_of, particles, weights):.2f}")
    print(
        f"steinflow {steinflow.__version__}, {os.cpu_count()} cores, {particles} x {weights} float32"
    )
    if given.memory:
        print(f"{'':14}{'copies':>8}")
        for method in METHODS:
            shape = ["--particles", str(particles), "--weights", str(weights)]
            command = [sys.executable, __file__, "--peak-of", method, *shape]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{method:14}{float(done.stdout):8.2f}")
        return None
    print(f"{'':14}{'copy':>8}{'step':>8}{'read':>8}{'(step + read) / copy':>22}")
    for method in METHODS:
        copy, step, read = measure(method, particles, weights, given.steps)
        print(f"{method:14}{copy:8.2f}{step:8.2f}{read:8.2f}{(step + read) / copy:22.1f}")
    return None


if __name__ == "__main__":
    main()
