"""`steinflow.sampler`: the moves of `sample`, in a loop of your own."""

from __future__ import annotations

import importlib
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Unpack

import numpy as np

from steinflow import _detect, _field, _settings, _steinflow, _tree, testing
from steinflow._catalogue import methods
from steinflow._tree import Layout
from steinflow._typed import RunSettings

OF_THE_LOOP = (
    *("particles", "effective", "gradients", "warm_up", "accept", "collect_from", "collect_every"),
    *(
        "points",
        "batch_size",
        "seed",
        "precision",
        "device",
        "start_mean",
        "start_sd",
        "non_finite",
    ),
    *("check_gradient", "budget", "tolerance", "trace_every"),
)
"""Settings of `sample` that say where particles begin, when the run ends and what is kept of it."""

STEP_SIZES = ("step_size", "eta", "phases")


@dataclass(frozen=True)
class State:
    """Particles between two steps. It is a value: nothing changes it, and it pickles.

    So a step writes into memory of its own, and what is read from a state is a copy; the arrays that
    `init` and `step` are given are read where they are.
    """

    _raw: _steinflow.State
    _layout: Layout
    _kind: str
    _names: tuple[str, ...]
    _count: int
    _dtype: np.dtype

    @property
    def particles(self) -> Any:
        """The particles, as the pytree that they were given as; a copy."""
        return self._tree_of(0)

    @property
    def momenta(self) -> Any:
        """The momenta of the particles, as such a pytree; None for methods without.

        With `splitting`, they lie half a step behind the particles and wait for the score there:
        `Sampler.finish` brings them up.
        """
        return self._tree_of(1) if len(self._names) > 1 else None

    @property
    def blocks(self) -> dict[str, Any]:
        """All blocks of the state by name: `theta`, and auxiliary variables such as `r`."""
        return {name: self._tree_of(index) for index, name in enumerate(self._names)}

    @property
    def array(self) -> np.ndarray:
        """z = (θ, r, …) as rows of numbers, `(N, blocks · d)`; a copy."""
        return self._raw.state

    @property
    def step(self) -> int:
        """Steps taken."""
        return self._raw.step

    @property
    def seed(self) -> int:
        """The seed of every random number of the run."""
        return self._raw.seed

    def minibatch(self, rows: int, batch_size: int) -> tuple[np.ndarray, float]:
        """The rows of data that `sample` looks at where it takes this step, and rows/batch_size.

        Numbers of `batch_size` of so many `rows`, without repetition, drawn by seed and step: the same
        state has the same. The log likelihood of these rows is to be multiplied by the second number.
        """
        return _steinflow.minibatch(self.seed, self.step, rows, batch_size)

    def _tree_of(self, block: int) -> Any:
        return _of_kind(self._layout.split(self._raw.block(block)), self._kind)

    def __repr__(self) -> str:
        count, dim = self._count, self._layout.dim
        return f"<steinflow.State: {count} particles in {dim} dimensions after {self.step} steps>"


@dataclass(frozen=True)
class Sampler:
    """Takes steps from state to state; made by `steinflow.sampler`."""

    method: str
    _stepper: _steinflow.Stepper
    _function: Callable[..., Any] | None
    _backend: str | None
    _evaluators: list[tuple[Layout, Callable[..., Any]]]
    """The function made ready for particles of a layout: the last one."""
    _is_deterministic: bool
    _dynamics: Any = None

    def init(self, particles: Any, *, seed: int | None = None) -> State:
        """Particles before the first step, with momenta drawn from their Gaussians.

        `particles` is an array `(N, d)`, or a pytree whose arrays have a leading axis of particles: a
        dictionary, or what JAX knows. Modules of PyTorch, one for each particle, stand for their
        parameters by name, as `torch.func.functional_call` takes them. Without a `seed` one is drawn,
        and kept in the state.
        """
        if (torch := sys.modules.get("torch")) is not None:
            particles = _parameters_of_modules(torch, particles)
        kind = _detect.kind_of(particles) or ("jax" if "jax" in sys.modules else "numpy")
        theta, layout = _tree.particles_of(particles, _flatten_of(kind))
        if theta.dtype not in (np.dtype("float32"), np.dtype("float64")):
            theta = theta.astype(np.float64)
        _tree.check_start(theta, self._is_deterministic)
        seed = secrets.randbits(32) if seed is None else seed
        if not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ValueError(f"seed is {seed!r}: give a whole number, zero or more")
        raw = self._stepper.init(theta, seed)
        testing.check_before_use(self._dynamics, theta.shape[1])
        names = tuple(self._stepper.blocks(theta.shape[1]))
        return State(raw, layout, kind, names, len(theta), theta.dtype)

    def step(self, state: State, *given: Any) -> State:
        """The particles after one step more; one gradient.

        `given` are the log densities `(N,)` and the scores of `state.particles`, or, where the sampler
        has a function, what it takes beside the parameters: a batch of data, or nothing.
        """
        return self._moved(self._stepper.step, state, given)

    def finish(self, state: State, *given: Any) -> State:
        """The same particles with momenta that do not lie behind: to look at, after the last step."""
        return self._moved(self._stepper.finish, state, given)

    def velocity(self, state: State, *given: Any) -> dict[str, Any]:
        """The velocity of every block of the finished state, by name, without noise."""
        answer = self._answer(state, given)
        rows = self._stepper.velocity(state._raw, answer)
        parts = np.split(rows, len(state._names), axis=1)
        trees = [_of_kind(state._layout.split(part), state._kind) for part in parts]
        return dict(zip(state._names, trees, strict=True))

    def _moved(self, move: Callable[..., Any], state: State, given: tuple[Any, ...]) -> State:
        answer = self._answer(state, given)
        return replace(state, _raw=move(state._raw, answer))

    def _answer(self, state: State, given: tuple[Any, ...]) -> Any:
        """A pair of arrays, or a function of rows that gives one."""
        if not isinstance(state, State):
            what = type(state).__name__
            raise TypeError(f"state is {what}: give what `init` or the last `step` has returned")
        if self._function is not None:
            evaluate = self._evaluator(state)
            return lambda theta: evaluate(theta, *given)
        if len(given) != 2:
            raise TypeError(
                f"step(state, log_density, scores) got {len(given)} of the last two: give both, or make "
                "the sampler with a function: steinflow.sampler(method, function, …)"
            )
        log_density, scores = given
        leaves, _ = _flatten_of(state._kind)(scores)
        names = tuple(name for name, _ in leaves)
        if names != state._layout.names:
            raise ValueError(f"scores has {list(names)}, expected {list(state._layout.names)}")
        arrays = [_tree.numbers(leaf) for _, leaf in leaves]
        for name, array, shape in zip(names, arrays, state._layout.shapes, strict=True):
            if array.shape[1:] != shape:
                what = f"scores[{name!r}]" if name else "scores"
                expected = ("particles", *shape)
                raise ValueError(
                    f"{what} has shape {array.shape}, expected ({str(expected)[1:-1]})"
                )
        # Leaves are put beside each other where the library keeps them.
        rows = [array.reshape(len(array), -1) for array in arrays]
        answer = (_tree.numbers(log_density), *rows)
        count, own = state._count, state._dtype
        for what, array in zip(("log_density", *("scores" for _ in rows)), answer, strict=True):
            if array.shape[:1] != (count,):
                raise ValueError(f"{what} has shape {array.shape} for {count} particles")
            if array.dtype.kind == "f" and array.dtype.itemsize < own.itemsize:
                raise TypeError(
                    f"{what} is in {array.dtype}, but the particles are {own}: give {own}, or `init` "
                    f"particles of {array.dtype}"
                )
        return answer

    def _evaluator(self, state: State) -> Callable[..., Any]:
        for layout, evaluate in self._evaluators:
            if layout == state._layout:
                return evaluate
        assert self._function is not None
        backend = self._backend or _detect.backend_of(self._function, state.particles)
        if backend is None:
            raise _detect.cannot_tell()
        adapter = importlib.import_module(f"steinflow.adapters.{backend}")
        evaluate = adapter.evaluator(self._function, state._layout)
        self._evaluators[:] = [(state._layout, evaluate)]
        return evaluate


@_settings.documented([row for row in _steinflow.settings() if row[0] not in OF_THE_LOOP])
def sampler(
    method: str,
    function: Callable[..., Any] | None = None,
    *,
    backend: str | None = None,
    dynamics: Any = None,
    field: Any = None,
    **settings: Unpack[RunSettings],
) -> Sampler:
    """A method whose steps are yours to take, as those of an optimiser are.

    >>> import numpy as np, steinflow
    >>> sampler = steinflow.sampler("sghmc-stein", step_size=0.3)
    >>> state = sampler.init(np.random.default_rng(0).standard_normal((50, 2)) + 1, seed=0)
    >>> for _ in range(500):
    ...     theta = state.particles
    ...     state = sampler.step(state, -0.5 * np.sum(theta**2, axis=1), -theta)
    >>> bool(np.abs(state.particles.mean(axis=0)).max() < 0.1)
    True

    The particles are, to the last bit, those of `steinflow.sample` with the same settings and seed.

    Parameters
    ----------
    method
        One of `methods()` that takes steps; with `dynamics` the name of a field, as for `sample`.
    function
        `function(parameters, *batch)`: the log density of one particle in JAX or PyTorch, or log
        densities and gradients of all particles in NumPy. Without it, `step` gets the numbers.
    backend
        `numpy`, `jax` or `torch`, where it cannot be told from the function.
    dynamics, field
        A `steinflow.Dynamics`, a `steinflow.Kernel` or a function of your own, as for `sample`.
    {settings}
    """
    for name in settings:
        if name in OF_THE_LOOP:
            raise TypeError(
                f"{name} is for the loop of steinflow.sample, and here the loop is yours: leave it out"
            )
    known = {row[0] for row in _steinflow.settings()}
    if known.issuperset(settings) and all(settings.get(name) is None for name in STEP_SIZES):
        raise ValueError("step_size is missing: give one, such as step_size=0.1, or eta or phases")
    # Those with an accept step, and those that lay a grid over the target.
    whole = (m.name for m in methods() if "effective" in m.parameters or "cells" in m.parameters)
    if method in whole:
        raise ValueError(
            f"{method} has a loop of its own: use steinflow.sample, or name a method such as svgd or "
            "sghmc-stein"
        )
    if function is not None and not callable(function):
        raise TypeError(f"function is {type(function).__name__}: give a function of the parameters")
    # A step size is given, so that nothing is evaluated.
    target = SimpleNamespace(function=None, dim=1, data_rows=0, names=None)
    given = {"method": method, "warm_up": False, **settings}
    config = _steinflow.Config.resolve(
        given, target, dynamics=dynamics, field=_field.callback(field)
    )
    stepper = _steinflow.Stepper(config)
    return Sampler(config.method, stepper, function, backend, [], config.is_deterministic, dynamics)


def _parameters_of_modules(torch: Any, particles: Any) -> Any:
    """The parameters of modules with a leading axis of particles; anything else as it is."""
    if isinstance(particles, torch.nn.Module) and not isinstance(particles, torch.nn.ModuleList):
        raise TypeError("particles is one module: give a list of modules, one for each particle")
    modules = list(particles) if isinstance(particles, (list, tuple, torch.nn.ModuleList)) else []
    if not modules or not all(isinstance(one, torch.nn.Module) for one in modules):
        return particles
    from steinflow.torch import stacked

    return stacked(torch, [dict(one.named_parameters()) for one in modules])


def _flatten_of(kind: str) -> _tree.Flatten:
    if kind == "jax":
        from steinflow.adapters import jax

        return jax.flatten
    return _tree.flatten


def _of_kind(tree: Any, kind: str) -> Any:
    """The pytree with arrays of this library in place of NumPy's."""
    if kind == "numpy":
        return tree
    if kind == "jax":
        from steinflow.adapters.jax import import_jax, on_the_cpu

        return on_the_cpu(import_jax(), tree)
    import torch

    leaves, skeleton = _tree.flatten(tree)
    return _tree.rebuild(skeleton, [torch.from_numpy(leaf) for _, leaf in leaves])
