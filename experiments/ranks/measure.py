"""What ranks cost beside threads: seconds per step of the same runs, one process with threads against ranks with one each.

    python3 experiments/ranks/measure.py target/release/steinflow ranks.csv [MOST_RANKS]

The command must be built with the feature `mpi`. Repeats go round and round over all runs, so that what else the machine does
meets all of them; every one of them is a line, with its wall-clock time and rank 0's waiting left in.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 20
REPEATS = 5
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
# Particles, coordinates, others met (none for all). Strong scaling: any line. Weak: 2000 with 1 against 4000 with 4, as
# pairs count, and 50 000 with 1 against 100 000 with 2.
RUNS = [(2000, 16, None), (4000, 16, None), (4000, 4, None), (4000, 64, None), (50_000, 16, 64), (100_000, 16, 64)]


def seconds_per_step(program, folder, ranks, threads, particles, dim, others):
    """A run, without what comes before the first step and after the last."""
    out = folder / "run"
    command = [program, "sample", "standard-normal", "--dim", str(dim), "--method", "svgd", "--particles", str(particles)]
    command += ["--steps", str(STEPS), "--step-size", "0.5", "--trace-every", str(STEPS), "--threads", str(threads)]
    command += ["--quiet", "--force", "--checkpoint-every", "never", "--out", str(out)]
    command += [] if others is None else ["--interactions", str(others)]
    command = command if ranks == 1 else [*MPIRUN, "-n", str(ranks), *command]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads((out / "summary.json").read_text())["seconds"] / STEPS


def main(program, table, most=2):
    counts = [2**k for k in range(int(most).bit_length())]
    ways = [(1, count) for count in counts] + [(count, 1) for count in counts[1:]]
    with tempfile.TemporaryDirectory() as folder, Path(table).open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["particles", "dim", "interactions", "ranks", "threads", "repeat", "seconds_per_step"])
        for repeat in range(REPEATS):
            for particles, dim, others in RUNS:
                for ranks, threads in ways:
                    seconds = seconds_per_step(program, Path(folder), ranks, threads, particles, dim, others)
                    out.writerow([particles, dim, others or "all", ranks, threads, repeat, f"{seconds:.6f}"])
                    file.flush()


main(*sys.argv[1:])
