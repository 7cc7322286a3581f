"""Times the peers on request: one JSON request a line, one JSON answer a line."""

import importlib
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import numpy as np


def inputs(folder):
    """The matrices in a folder, by name: NAME.ROWSxCOLS.f32."""
    matrices = {}
    for path in Path(folder).glob("*.f32"):
        name, shape, _ = path.name.split(".")
        rows, cols = map(int, shape.split("x"))
        matrices[name] = np.fromfile(path, dtype="<f4").reshape(rows, cols)
    return matrices


def serve():
    folder, contenders = None, {}
    # Whatever a package prints, even as it is imported, must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        match request["do"]:
            case "versions":
                names = ["jax", "jaxlib", "blackjax", "numpyro", "pykeops", "numpy"]
                reply = {name: importlib.metadata.version(name) for name in names}
                reply["python"] = sys.version.split()[0]
            case "prepare":
                folder = Path(request["folder"])
                work = importlib.import_module(request["work"])
                contenders = work.contenders(inputs(folder), request["given"])
                reply = list(contenders)
            case "answer":
                answer = contenders[request["contender"]].answer()
                if answer is not None:
                    path = folder / f"{request['contender']}.answer"
                    np.ascontiguousarray(answer, dtype="<f4").tofile(path)
                reply = None
            case "time":
                contender, repeats = contenders[request["contender"]], request["repeats"]
                contender.warm_up(repeats)
                begun = time.perf_counter()
                contender.repeat(repeats)
                reply = time.perf_counter() - begun
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    serve()
