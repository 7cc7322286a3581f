"""What a step costs beyond the target: a trivial JAX log density, 100 particles in 10 dimensions.

Run it with the package and JAX installed: `python crates/steinflow-py/benches/overhead.py`. A run's time
per step, less the time of the compiled target called by itself on the same particles, arrays in and out
as NumPy. The last column is a step with the same density compiled in Rust: what of the overhead is
the sampler's own work, and not the way to Python and back. The smallest of several repetitions counts,
which is the least disturbed one.
"""

import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import steinflow

PARTICLES, DIM, STEPS, REPETITIONS = 100, 10, 2000, 7


def logdensity_fn(x):
    return -0.5 * jnp.sum(x**2)


def target_microseconds(init):
    batched = jax.jit(jax.vmap(jax.value_and_grad(logdensity_fn)))
    jax.block_until_ready(batched(init))
    begun = time.perf_counter()
    for _ in range(STEPS):
        value, gradient = batched(init)
        np.asarray(value), np.asarray(gradient)
    return (time.perf_counter() - begun) / STEPS * 1e6


def step_microseconds(target, init, method):
    """From the first recorded step to the last: compiling is not in it."""
    backend = "jax" if callable(target) else None
    settings = dict(method=method, steps=STEPS, step_size=0.1, dtype=init.dtype, progress=False)
    result = steinflow.sample(target, init, backend=backend, **settings)
    begun, ended = result.trace["seconds"][0], result.trace["seconds"][-1]
    steps = result.trace["step"][-1] - result.trace["step"][0]
    return (ended - begun) / steps * 1e6


def main():
    print(f"{PARTICLES} particles, {DIM} dimensions, {STEPS} steps, best of {REPETITIONS}")
    print(f"steinflow {steinflow.__version__}, JAX {jax.__version__}, {os.cpu_count()} cores")
    print(f"{'':14}{'target':>10}{'step':>10}{'overhead':>12}{'in Rust':>10}  µs")
    compiled = steinflow.model("standard-normal", dim=DIM)
    for precision in ("float32", "float64"):
        jax.config.update("jax_enable_x64", precision == "float64")
        init = np.random.default_rng(0).standard_normal((PARTICLES, DIM)).astype(precision)
        target = min(target_microseconds(init) for _ in range(REPETITIONS))
        for method in ("svgd", "sghmc-stein", "sghmc"):
            step, in_rust = (
                min(step_microseconds(density, init, method) for _ in range(REPETITIONS))
                for density in (logdensity_fn, compiled)
            )
            name, overhead = f"{method} {precision[5:]}", step - target
            print(f"{name:14}{target:10.0f}{step:10.0f}{overhead:12.0f}{in_rust:10.0f}")


if __name__ == "__main__":
    main()
