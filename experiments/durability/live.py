"""What four clients that hammer the live page cost a run: steps with them over steps without.

`python experiments/durability/live.py target/debug/steinflow` starts a run with `--live`, reads its step
from `/state`, and lets it go on by turns alone and hammered, so that both see the same machine. Steps are
counted by wall clock and by the processor time of the thread that takes them.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

TURNS, SECONDS, CLIENTS = 20, 1.5, 4
RUN = "sample tri-crescent --method svgd --steps 1000000000 --step-size 0.001 -n 200 --threads 1 -q --live"


def get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read()


def step(port: int) -> int:
    return json.loads(get(port, "/state"))["runs"][0]["frames"]["steps"][0]


def ticks(thread: Path) -> int:
    """Processor time of a thread; none of one that is gone."""
    try:
        stat = (thread / "stat").read_text()
    except FileNotFoundError:
        return 0
    return sum(int(x) for x in stat.rsplit(")", 1)[1].split()[11:13])


class Hammer(threading.Thread):
    """Asks for the state and the page, as fast as they come."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.stop, self.answers = port, False, 0

    def run(self) -> None:
        while not self.stop:
            get(self.port, "/" if self.answers % 10 == 0 else "/state")
            self.answers += 1


def turn(thread: Path, port: int, clients: int) -> tuple[float, float, int]:
    """Steps in a second, steps in a tick, answers."""
    hammers = [Hammer(port) for _ in range(clients)]
    for hammer in hammers:
        hammer.start()
    steps, spent, begun = step(port), ticks(thread), time.monotonic()
    time.sleep(SECONDS)
    steps, spent, seconds = step(port) - steps, ticks(thread) - spent, time.monotonic() - begun
    for hammer in hammers:
        hammer.stop = True
    for hammer in hammers:
        hammer.join()
    return steps / seconds, steps / max(spent, 1), sum(hammer.answers for hammer in hammers)


def main() -> None:
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen(
            [program, *RUN.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            port = int(re.search(rb":(\d+)", run.stderr.readline()).group(1))
            time.sleep(SECONDS)
            # The busiest thread is the one that takes steps.
            thread = max(Path(f"/proc/{run.pid}/task").iterdir(), key=ticks)
            turns = [(turn(thread, port, 0), turn(thread, port, CLIENTS)) for _ in range(TURNS)]
        finally:
            run.kill()
            run.wait()
    answers = sum(hammered[2] for _, hammered in turns)
    print(f"`{RUN}`: {TURNS} turns of {SECONDS} s each way, {CLIENTS} clients, {answers} answers")
    for place, name in enumerate(["a second of the clock", "processor time of its thread"]):
        ratios = sorted(hammered[place] / alone[place] for alone, hammered in turns)
        quartiles = statistics.quantiles(ratios, n=4)
        print(
            f"steps in {name}, hammered over alone: median {quartiles[1]:.3f}, "
            f"quartiles {quartiles[0]:.3f} and {quartiles[2]:.3f}"
        )


if __name__ == "__main__":
    main()
