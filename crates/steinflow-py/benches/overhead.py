"""What a step costs beyond the target: a trivial JAX log density, 100 particles in 10 dimensions.

Run it with the package and JAX installed: `python crates/steinflow-py/benches/overhead.py`. The
overhead is a run's time per step less the time of the compiled target, arrays in and out as NumPy:
once as it takes when it is called over and over by itself, and once as it takes inside the run,
where it finds the processor's caches full of other things. The last column is a step with the same
density compiled in Rust: what of the overhead is the sampler's own work, and not the way to Python
and back. The smallest of several repetitions counts, which is the least disturbed one.
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


def evaluation():
    batched = jax.jit(jax.vmap(jax.value_and_grad(logdensity_fn)))

    def function(theta):
        value, gradient = batched(theta)
        return np.asarray(value), np.asarray(gradient)

    return function


def target_microseconds(init):
    function = evaluation()
    function(init)
    begun = time.perf_counter()
    for _ in range(STEPS):
        function(init)
    return (time.perf_counter() - begun) / STEPS * 1e6


def step_microseconds(target, init, method, backend=None):
    """From the first recorded step to the last: compiling is not in it."""
    settings = dict(method=method, steps=STEPS, step_size=0.1, dtype=init.dtype, progress=False)
    result = steinflow.sample(target, init, backend=backend, **settings)
    begun, ended = result.trace["seconds"][0], result.trace["seconds"][-1]
    steps = result.trace["step"][-1] - result.trace["step"][0]
    return (ended - begun) / steps * 1e6


def outside_microseconds(init, method):
    """The time of a step that is not spent in the target, by a clock around it."""
    function, spent = evaluation(), []

    def timed(theta):
        begun = time.perf_counter()
        answer = function(theta)
        spent.append(time.perf_counter() - begun)
        return answer

    step = step_microseconds(timed, init, method, "numpy")
    # The first evaluations compile, and are before the first recorded step.
    return step - np.mean(spent[2:]) * 1e6


def main():
    print(f"{PARTICLES} particles, {DIM} dimensions, {STEPS} steps, best of {REPETITIONS}")
    print(f"steinflow {steinflow.__version__}, JAX {jax.__version__}, {os.cpu_count()} cores")
    print(f"{'':14}{'target':>8}{'step':>8}{'overhead':>10}{'in the run':>12}{'in Rust':>9}  µs")
    compiled = steinflow.model("standard-normal", dim=DIM)
    for precision in ("float32", "float64"):
        jax.config.update("jax_enable_x64", precision == "float64")
        init = np.random.default_rng(0).standard_normal((PARTICLES, DIM)).astype(precision)

        def best(measure, *arguments):
            return min(measure(*arguments) for _ in range(REPETITIONS))

        target = best(target_microseconds, init)
        for method in ("svgd", "sghmc-stein", "sghmc"):
            step = best(step_microseconds, logdensity_fn, init, method, "jax")
            outside = best(outside_microseconds, init, method)
            in_rust = best(step_microseconds, compiled, init, method)
            name = f"{method} {precision[5:]}"
            print(
                f"{name:14}{target:8.0f}{step:8.0f}{step - target:10.0f}{outside:12.0f}{in_rust:9.0f}"
            )


if __name__ == "__main__":
    main()
