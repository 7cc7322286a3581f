"""The posteriors of `steinflow_models::posteriors`, served by `reference serve` over a pipe."""

import os
import subprocess
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore", FutureWarning)
BINARY = Path(__file__).parents[2] / "target/debug/examples/reference"


class Served:
    """One posterior in a process of its own: `served(theta)` is (log density, score)."""

    def __init__(self, name, dim):
        self.dim, self.evaluations = dim, 0
        self.process = subprocess.Popen(
            [BINARY, "serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.to, self.back = self.process.stdin.fileno(), self.process.stdout.fileno()

    def __call__(self, theta):
        self.evaluations += 1
        os.write(self.to, np.ascontiguousarray(theta, dtype="<f8").tobytes())
        size, answer = 8 * (self.dim + 1), b""
        while len(answer) < size:
            more = os.read(self.back, size - len(answer))
            if not more:
                raise RuntimeError("the server ended")
            answer += more
        numbers = np.frombuffer(answer)
        return float(numbers[0]), numbers[1:].copy()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def catalogue():
    """{name: (half, description, parameter names)}, in the order of names."""
    listing = subprocess.run([BINARY, "list"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in listing.splitlines()]
    return {name: (half.lower(), about, names) for name, half, about, *names in rows}


def nutpie_model(function, dim, start=None):
    """A nutpie model of `function(theta) -> (log density, score)`; `start(seed)` gives first points."""
    import nutpie

    def expand(_seed1, _seed2, _chain):
        return lambda x, **_: {"theta": np.asarray(x)}

    return nutpie.compiled_pyfunc.from_pyfunc(
        ndim=dim,
        make_logp_fn=lambda: lambda x, **_: function(x),
        make_expand_fn=expand,
        expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(dim,)],
        expanded_names=["theta"],
        make_initial_point_fn=start,
    )
