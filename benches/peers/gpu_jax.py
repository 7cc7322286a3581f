"""The work of `benches/src/bin/gpu.rs` in JAX, as JSON lines: compiled, on the GPU, median of repeated calls."""

import json
import time

import jax
import jax.numpy as jnp
import network
import numpy as np

RNG = np.random.default_rng(0)


def report(name: str, particles: int, dim: int, precision: str, function, *arguments) -> None:
    """Times a compiled function; the first call compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    while len(times) < 7 or (sum(times) < 1.0 and len(times) < 100):
        begun = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - begun)
    line = {"work": name, "particles": particles, "dim": dim, "precision": precision}
    line["jax_ms"] = 1e3 * float(np.median(times))
    print(json.dumps(line), flush=True)


def squares(x):
    """Squared distances of all pairs, by products."""
    norms = jnp.sum(x * x, axis=1)
    return jnp.maximum(norms[:, None] + norms[None, :] - 2 * x @ x.T, 0)


def velocity(x, score, h):
    """SVGD with its two sums taken together, as one product with the kernel."""
    kernel = jnp.exp(-squares(x) / h)
    repulsion = 2 / h * x * jnp.sum(kernel, axis=1, keepdims=True)
    return (kernel @ (score - 2 / h * x) + repulsion) / x.shape[0]


def logistic_score(x, rows, outcomes):
    return rows.T.dot((outcomes[:, None] - jax.nn.sigmoid(rows @ x.T))).T - x / 2.5**2


def step_with_median(x, rows, outcomes):
    """A step with the median of all distances, as BlackJAX takes it."""
    count = x.shape[0]
    h = jnp.median(squares(x)) / jnp.log(count)
    return x + 1e-4 * velocity(x, logistic_score(x, rows, outcomes), h)


def step_with_sample(x, rows, outcomes, first, second):
    """A step with the median of 2^15 pairs, which is what Steinflow looks at."""
    count = x.shape[0]
    h = jnp.median(jnp.sum((x[first] - x[second]) ** 2, axis=1)) / jnp.log(count)
    return x + 1e-4 * velocity(x, logistic_score(x, rows, outcomes), h)


def time_network(particles: int, features: int, steps: int) -> None:
    """Steps of SGHMC-Stein with splitting on minibatches, compiled into a loop: `network.py` has them."""
    rows = RNG.normal(size=(500, features)).astype(np.float32)
    dim = network.UNITS * (features + 2) + 3
    state = 0.1 * RNG.normal(size=(particles, 2 * dim)).astype(np.float32)
    inputs = {"rows": rows, "targets": np.sin(rows[:, :1]), "state": state}
    for precision, name in [("highest", "f32"), ("default", "tf32")]:
        with jax.default_matmul_precision(precision):
            found = network.contenders(inputs, {"batch": 100, "friction": 1.0, "step": 1e-4})
            (scan,) = found.values()
            scan.warm_up(steps)
            times = []
            for _ in range(8):
                begun = time.perf_counter()
                scan.repeat(steps)
                times.append((time.perf_counter() - begun) / steps)
        line = {"work": "network, step with splitting and its medians", "particles": particles}
        line |= {"inputs": features, "dim": dim, "precision": name}
        print(json.dumps(line | {"jax_ms": 1e3 * float(np.median(times[1:]))}), flush=True)


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape).astype(np.float32))


def main() -> None:
    print(json.dumps({"jax": jax.__version__, "device": str(jax.devices()[0])}))
    for particles, dim in [(16_384, 2), (16_384, 64), (65_536, 64), (1000, 4653)]:
        x = normal(particles, dim)
        for precision, name in [("highest", "f32"), ("default", "tf32")]:
            with jax.default_matmul_precision(precision):
                h = 2.0 * dim / np.log(particles)
                report("velocity", particles, dim, name, jax.jit(velocity), x, -x, h)
    x, rows = normal(10_000, 54), normal(1000, 54)
    outcomes = (rows[:, 0] > 0).astype(jnp.float32)
    pairs = [jnp.asarray(RNG.integers(0, 10_000, 1 << 15)) for _ in range(2)]
    for precision, name in [("highest", "f32"), ("default", "tf32")]:
        with jax.default_matmul_precision(precision):
            title = "logistic regression, step with its median"
            report(title, 10_000, 54, name, jax.jit(step_with_median), x, rows, outcomes)
            title += " of a sample"
            report(title, 10_000, 54, name, jax.jit(step_with_sample), x, rows, outcomes, *pairs)
    for particles, features, steps in [(20, 13, 500), (20, 90, 500), (1000, 90, 20)]:
        time_network(particles, features, steps)


if __name__ == "__main__":
    main()
