"""What ranks cost beside threads: seconds per step of the same runs, one process with threads against ranks with one each.

    python3 experiments/ranks/measure.py target/release/steinflow experiments/ranks/ranks.csv

The command must be built with the feature `mpi`. Every run is made three times, and the fastest counts.
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 20
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
# Particles, coordinates, others met (none for all): strong scaling, and weak with half of the particles for one.
RUNS = [(2000, 16, None), (4000, 16, None), (4000, 64, None), (50_000, 16, 64), (100_000, 16, 64)]


def seconds_per_step(program, folder, ranks, threads, particles, dim, others):
    """The fastest of three runs, without what comes after the last step."""
    out = folder / "run"
    command = [program, "sample", "standard-normal", "--dim", str(dim), "--method", "svgd", "--particles", str(particles)]
    command += ["--steps", str(STEPS), "--step-size", "0.5", "--trace-every", str(STEPS), "--threads", str(threads)]
    command += ["--quiet", "--force", "--checkpoint-every", "never", "--out", str(out)]
    command += [] if others is None else ["--interactions", str(others)]
    command = command if ranks == 1 else [*MPIRUN, "-n", str(ranks), *command]
    times = []
    for _ in range(3):
        subprocess.run(command, check=True, capture_output=True)
        times.append(json.loads((out / "summary.json").read_text())["seconds"] / STEPS)
    return min(times)


def main(program, table):
    folder = Path(tempfile.mkdtemp())
    with Path(table).open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["particles", "dim", "interactions", "ranks", "threads", "seconds_per_step"])
        for particles, dim, others in RUNS:
            for ranks, threads in [(1, 1), (1, 2), (2, 1)]:
                seconds = seconds_per_step(program, folder, ranks, threads, particles, dim, others)
                out.writerow([particles, dim, others or "all", ranks, threads, f"{seconds:.5f}"])
                file.flush()
    shutil.rmtree(folder)


main(sys.argv[1], sys.argv[2])
