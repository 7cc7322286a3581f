"""What four clients that hammer the live page cost a run: its speed with them over its speed without.

`python experiments/durability/live.py target/debug/steinflow` starts a run with `--live` and lets it go on by
turns alone and hammered, so that both see the same machine. Steps are counted by the checkpoints it writes;
time is that of the clock, for which the clients compete too, and the processor's for the thread of the run.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

TURNS, SECONDS, CLIENTS = 12, 3.0, 4
RUN = (
    "sample tri-crescent --method svgd --steps 1000000000 --step-size 0.001 -n 200 --threads 1 -q "
    "--checkpoint-every 200ms --out run --live"
)


class Hammer(threading.Thread):
    """Asks for the state, and now and then for the page, as fast as they come."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.stop, self.answers = port, False, 0

    def run(self) -> None:
        while not self.stop:
            path = "/" if self.answers % 10 == 0 else "/state"
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                answer.read()
            self.answers += 1


def on_processor(thread: Path) -> float:
    """Seconds that a thread has run; none of one that is gone."""
    try:
        return int((thread / "schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        return 0.0


def speed(folder: Path, thread: Path) -> tuple[float, float]:
    """Steps in a second of the clock, and in one of the processor, between the first and the last
    checkpoint that is written from now on."""
    begun, seen = time.time(), {}
    while time.time() - begun < SECONDS or len(seen) < 3:
        for file in folder.glob("run.unfinished/checkpoint-*"):
            step = int(file.name.partition("-")[2])
            try:
                is_new = step not in seen and file.stat().st_mtime > begun
            except FileNotFoundError:
                continue
            if is_new:
                seen[step] = (time.time(), on_processor(thread))
        time.sleep(0.01)
    first, last = min(seen), max(seen)
    clock, processor = (b - a for a, b in zip(seen[first], seen[last], strict=True))
    return (last - first) / clock, (last - first) / processor


def hammered(folder: Path, thread: Path, port: int) -> tuple[tuple[float, float], int]:
    hammers = [Hammer(port) for _ in range(CLIENTS)]
    for hammer in hammers:
        hammer.start()
    found = speed(folder, thread)
    for hammer in hammers:
        hammer.stop = True
    for hammer in hammers:
        hammer.join()
    return found, sum(hammer.answers for hammer in hammers)


def main() -> None:
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = subprocess.Popen(
            [program, *RUN.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            port = int(re.search(rb":(\d+)", run.stderr.readline()).group(1))
            time.sleep(SECONDS)
            # The busiest thread is that of the run.
            thread = max(Path(f"/proc/{run.pid}/task").iterdir(), key=on_processor)
            turns = [(speed(folder, thread), *hammered(folder, thread, port)) for _ in range(TURNS)]
        finally:
            run.kill()
            run.wait()
    answers = sum(answers for *_, answers in turns)
    print(f"{TURNS} turns of {SECONDS} s each way, {CLIENTS} clients, {answers} answers;")
    for place, what in enumerate(["the clock", "the processor"]):
        ratios = [with_them[place] / alone[place] for alone, with_them, _ in turns]
        low, median, high = statistics.quantiles(ratios, n=4)
        print(f"by {what}: median {median:.3f}, quartiles {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
