"""The same mistakes, made in Steinflow, BlackJAX, NumPyro and Pyro.

    python experiments/durability/mistakes.py > experiments/durability/mistakes.md

Needs cargo, and whichever of blackjax, optax, numpyro and pyro-ppl are to be compared; a column of a
library that is not installed says so. The target is a standard normal in the plane, the sampler SVGD
with 10 particles and 200 steps, in the last two rows HMC.
"""

import math
import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

warnings.filterwarnings("ignore")
NAN, FAR = math.nan, math.inf


class Missing(Exception):
    """A mistake that cannot be made."""


def verdict(run):
    """What a run answers: its error, or what kind of numbers it gives without one."""
    try:
        numbers = run()
    except Missing as missing:
        return f"({missing})"
    except Exception as error:  # whatever it is, it is the answer
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text[:110]}{'…' if len(text) > 110 else ''}"
    import numpy

    numbers = numpy.asarray(numbers)
    if numbers.size == 0:
        return "no error; nothing"
    finite = numpy.isfinite(numbers)
    return "no error; finite numbers" if finite.all() else "no error; NaN"


def steinflow():
    command = ["cargo", "run", "--quiet", "--package", "steinflow", "--example", "mistakes"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(line.split("\t") for line in lines.splitlines())


def blackjax():
    import blackjax
    import jax
    import jax.numpy as jnp
    import optax

    def density(wall):
        # A root of a negative number, as it happens.
        edge = lambda x: 0.0 if wall == FAR else 1e-9 * jnp.sum(jnp.sqrt(wall**2 - x**2))
        return lambda x: -0.5 * jnp.sum(x**2) + edge(x)

    def svgd(step_size=0.1, count=10, columns=2, first=None, wall=FAR, length_scale=None):
        start = 0.5 + 0.1 * jax.random.normal(jax.random.key(0), (count, columns))
        if first is not None:
            start = start.at[0, 0].set(first)
        target = density(wall)
        if columns == 3:
            # The density is one of two coordinates.
            matrix = jnp.eye(2)
            target = lambda x: -0.5 * jnp.sum((matrix @ x) ** 2)
        update = blackjax.vi.svgd.update_median_heuristic if length_scale is None else lambda state: state
        sampler = blackjax.svgd(jax.grad(target), optax.sgd(step_size), update_kernel_parameters=update)
        state = sampler.init(start, {"length_scale": 1.0 if length_scale is None else length_scale})
        step = jax.jit(sampler.step)
        for _ in range(200):
            state = step(state)
        return state.particles

    def hmc(step_size=0.1, mass=1.0):
        sampler = blackjax.hmc(density(FAR), step_size, jnp.full(2, 1.0 / mass), 10)
        state = sampler.init(jnp.full(2, 0.5))
        step = jax.jit(sampler.step)
        for key in jax.random.split(jax.random.key(1), 200):
            state, _ = step(key, state)
        return state.position

    return answers(svgd, hmc, narrow={"length_scale": 0.0})


def numpyro():
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro.contrib.einstein import SVGD, RBFKernel
    from numpyro.distributions import Normal
    from numpyro.infer import HMC, MCMC
    from numpyro.optim import SGD

    def model(wall):
        x = numpyro.sample("x", Normal(jnp.zeros(2), 1.0).to_event(1))
        edge = 0.0 if wall == FAR else 1e-9 * jnp.sum(jnp.sqrt(wall**2 - x**2))
        numpyro.factor("edge", edge)

    def svgd(step_size=0.1, count=10, columns=2, first=None, wall=FAR, bandwidth=None):
        if columns != 2 or first is not None:
            raise Missing("a start cannot be given")
        kernel = RBFKernel() if bandwidth is None else RBFKernel(bandwidth_factor=lambda n: bandwidth)
        sampler = SVGD(model, SGD(step_size), kernel, num_stein_particles=count)
        result = sampler.run(jax.random.key(0), 200, wall, progress_bar=False)
        return next(iter(sampler.get_params(result.state).values()))

    def hmc(step_size=0.1, mass=1.0):
        kernel = HMC(
            model,
            step_size=step_size,
            num_steps=10,
            adapt_step_size=False,
            adapt_mass_matrix=False,
            inverse_mass_matrix=jnp.full(2, 1.0 / mass),
        )
        sampler = MCMC(kernel, num_warmup=0, num_samples=200, progress_bar=False)
        sampler.run(jax.random.key(1), FAR)
        return sampler.get_samples()["x"]

    return answers(svgd, hmc, narrow={"bandwidth": 0.0})


def pyro():
    import pyro
    import torch
    from pyro.distributions import Normal
    from pyro.infer import HMC, SVGD, RBFSteinKernel
    from pyro.optim import SGD

    def model(wall):
        x = pyro.sample("x", Normal(torch.zeros(2), 1.0).to_event(1))
        if wall != FAR:
            pyro.factor("edge", 1e-9 * (wall**2 - x**2).sqrt().sum(-1))

    def svgd(step_size=0.1, count=10, columns=2, first=None, wall=FAR, bandwidth=None):
        if columns != 2 or first is not None:
            raise Missing("a start cannot be given")
        pyro.clear_param_store()
        torch.manual_seed(0)
        sampler = SVGD(
            model, RBFSteinKernel(bandwidth_factor=bandwidth), SGD({"lr": step_size}), count, 0
        )
        for _ in range(200):
            sampler.step(wall)
        return sampler.get_named_particles()["x"].detach()

    def hmc(step_size=0.1, mass=1.0):
        kernel = HMC(model, step_size=step_size, num_steps=10, adapt_step_size=False,
                     adapt_mass_matrix=False)
        kernel.setup(0, FAR)
        # Only now, because the set-up makes it anew.
        kernel.mass_matrix_adapter.inverse_mass_matrix = {("x",): torch.full((2,), 1.0 / mass)}
        position = kernel.initial_params
        for _ in range(200):
            position = kernel.sample(position)
        return position["x"].detach()

    return answers(svgd, hmc, narrow={"bandwidth": 0.0})


def answers(svgd, hmc, narrow):
    return {
        "none": verdict(svgd),
        "step size -0.1": verdict(lambda: svgd(step_size=-0.1)),
        "step size NaN": verdict(lambda: svgd(step_size=NAN)),
        "step size 1e10": verdict(lambda: svgd(step_size=1e10)),
        "no particles": verdict(lambda: svgd(count=0)),
        "a start with a NaN": verdict(lambda: svgd(first=NAN)),
        "a start of 3 coordinates for 2": verdict(lambda: svgd(columns=3)),
        "bandwidth 0": verdict(lambda: svgd(**narrow)),
        "log density NaN beyond 1": verdict(lambda: svgd(wall=1.0)),
        "HMC: step size 0": verdict(lambda: hmc(step_size=0.0)),
        "HMC: mass -1": verdict(lambda: hmc(mass=-1.0)),
    }


def main():
    columns = {"Steinflow": steinflow()}
    for name, package, make in [
        ("BlackJAX", "blackjax", blackjax), ("NumPyro", "numpyro", numpyro), ("Pyro", "pyro-ppl", pyro)
    ]:
        try:
            columns[f"{name} {version(package)}"] = make()
        except (PackageNotFoundError, ImportError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    for name, rows in columns.items():
        print(f"### {name}\n\n| mistake | answer |\n|---|---|")
        for mistake, answer in rows.items():
            print(f"| {mistake} | {answer.replace('|', chr(92) + '|')} |")
        print()


main()
