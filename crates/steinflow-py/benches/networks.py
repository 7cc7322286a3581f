"""What a step costs beyond the gradient where particles are networks, beside copying them once.

Run it with the package installed: `python crates/steinflow-py/benches/networks.py`. Scores are at hand,
so that what is timed is the sampler alone: `state = sampler.step(state, log_density, scores)`, and
`state.particles`, which a loop of one's own reads. The floor is what memory allows: NumPy copies the
particles once between any two steps. The least and the median of many steps are shown, and the time that
all threads together have computed in a step (`cpu`), which tells more on a machine that others use too:
a step takes no less than that divided by the threads. `--json FILE` keeps every number.

`--memory` measures the most memory that a run holds instead, in copies of the particles: a process for
every method, with 10 particles of 10⁷ weights. What Python and its packages hold before is not counted;
the particles and scores that are given are, two copies.
"""

import argparse
import json
import os
import platform
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
    """Times in ms of every step: a copy of the particles, the step, and reading the particles."""
    sampler, state, log_density, scores = begin(method, particles, weights)
    source, copy = scores.copy(), scores.copy()
    rows = []
    for _ in range(steps + 3):
        begun = time.perf_counter()
        np.copyto(copy, source)
        floor = milliseconds(begun)
        begun, computed = time.perf_counter(), time.process_time()
        state = sampler.step(state, log_density, scores)
        step, cpu = milliseconds(begun), (time.process_time() - computed) * 1e3
        begun = time.perf_counter()
        _ = state.particles
        rows.append((floor, step, cpu, milliseconds(begun)))
    columns = [[round(x, 4) for x in column] for column in zip(*rows[3:], strict=True)]
    return dict(zip(("copy", "step", "cpu", "read"), columns, strict=True))


def most_memory():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # What `getrusage` says on Linux is no less than what the process had that started this one.
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def peak_copies(method, particles, weights):
    """The most memory that some steps add, in copies of the particles; their inputs are two."""
    before = most_memory()
    sampler, state, log_density, scores = begin(method, particles, weights)
    for _ in range(3):
        state = sampler.step(state, log_density, scores)
        _ = state.particles
    return (most_memory() - before) / (4 * particles * weights)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak-of", metavar="METHOD", help=argparse.SUPPRESS)
    parser.add_argument("--particles", type=int)
    parser.add_argument("--weights", type=int)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    many = given.memory or given.peak_of
    particles = given.particles or (10 if many else 20)
    weights = given.weights or (10**7 if many else 10**5)
    if given.peak_of:
        return print(f"{peak_copies(given.peak_of, particles, weights):.2f}")
    about = f"steinflow {steinflow.__version__}, NumPy {np.__version__}, {platform.machine()}, "
    about += f"{os.cpu_count()} cores, {particles} x {weights} float32"
    print(about)
    found = {}
    if given.memory:
        print(f"{'':14}{'copies':>8}")
        for method in METHODS:
            shape = ["--particles", str(particles), "--weights", str(weights)]
            command = [sys.executable, __file__, "--peak-of", method, *shape]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[method] = {"copies": float(done.stdout)}
            print(f"{method:14}{float(done.stdout):8.2f}")
    else:
        print(f"{'least, median':14}{'copy':>15}{'step':>15}{'cpu':>15}{'read':>15}")
        for method in METHODS:
            found[method] = columns = measure(method, particles, weights, given.steps)
            shown = (f"{min(x):7.2f},{statistics.median(x):7.2f}" for x in columns.values())
            print(f"{method:14}{''.join(shown)}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "command": sys.argv, "found": found}, file)
            file.write("\n")
    return None


if __name__ == "__main__":
    main()
