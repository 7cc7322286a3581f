"""`steinflow.sample`: particles from a target."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from steinflow import _detect, _settings, _steinflow, _tree, _tune
from steinflow._progress import Bar
from steinflow._result import Result
from steinflow._signals import interruptible
from steinflow._target import Target

DEFAULT_PARTICLES = 100
DEFAULT_STEPS = 1000


@dataclass
class Run:
    """A run that can be started and gone on with."""

    target: Target
    init: np.ndarray
    settings: dict[str, Any]
    callbacks: Sequence[Callable[[Any], Any]]
    progress: bool
    save: Any = None

    def start(self, checkpoint: Any = None) -> Result:
        target, settings = self.target, self.settings
        bar = Bar(f"{settings['method']} on {target.name}")
        shown = bar if self.progress and bar.visible else None
        try:
            with interruptible() as interrupt:
                outcome = _steinflow.run(
                    target.built_in or target,
                    self.init,
                    settings,
                    interrupt=interrupt,
                    progress=shown,
                    callback=self._callback() if self.callbacks else None,
                    checkpoint=checkpoint,
                    save=self.save,
                )
        finally:
            if shown is not None:
                bar.close()
        return Result(self, outcome)

    def resume(self, checkpoint: Any, sizes: Sequence[float | None], **changes: Any) -> Result:
        """Goes on from a checkpoint with `steps` more than the run had."""
        settings = dict(self.settings)
        steps = _settings.whole("steps", changes["steps"] or 0)
        # What was chosen for the length of the first run stays as it was.
        total = sum(phase[1] for phase in settings["phases"])
        method = {m[0]: m[2] for m in _steinflow.methods()}.get(settings["method"], [])
        if "adapt" in method:
            settings["parameters"] = {"adapt": max(total // 10, 1), **settings["parameters"]}
        phases = [
            (name, count, size if size is not None else _settings.text(chosen))
            for (name, count, size), chosen in zip(settings["phases"], sizes, strict=True)
        ]
        name, count, size = phases[-1]
        if sizes[-1] is not None:
            phases[-1] = (name, count + steps, size)
        elif steps:
            raise ValueError(
                "the last phase has a schedule, which says nothing about further steps: pass "
                "phases with all the steps, or a constant step size"
            )
        settings["phases"] = phases
        if changes["budget"] is not None:
            settings["budget"] = changes["budget"]
        run = replace(
            self,
            settings=settings,
            callbacks=self.callbacks
            if changes["callbacks"] is None
            else _functions(changes["callbacks"]),
            progress=changes["progress"],
        )
        return run.start(checkpoint)

    def _callback(self) -> Callable[[dict[str, Any]], bool]:
        callbacks, target = list(self.callbacks), self.target

        def call(values: dict[str, Any]) -> bool:
            values["particles"] = target.layout.split(values["state"][:, : target.dim])
            step = SimpleNamespace(**values)
            # Every callback sees the step, whatever the others say.
            return any([bool(callback(step)) for callback in callbacks])

        return call


def sample(
    target: Any = None,
    init: Any = None,
    *,
    method: str = "sghmc-stein",
    particles: int | None = None,
    steps: int = DEFAULT_STEPS,
    step_size: float | str | None = None,
    integrator: str | None = None,
    phases: Iterable[tuple[str | None, int, float | str | None]] | None = None,
    seed: int = 0,
    loglikelihood_fn: Callable[..., Any] | None = None,
    logprior_fn: Callable[..., Any] | None = None,
    data: Any = None,
    batch_size: int | None = None,
    shapes: int | Mapping[str, Any] | None = None,
    backend: str | None = None,
    model_args: Sequence[Any] = (),
    model_kwargs: Mapping[str, Any] | None = None,
    dtype: Any = None,
    kernel: str | None = None,
    kernel_on: str | None = None,
    bandwidth: float | str | Sequence[float] | None = None,
    dynamics: Any = None,
    resample_every: int | None = None,
    collect_from: int | None = None,
    collect_every: int | None = None,
    precondition: str | None = None,
    precondition_hold: int | None = None,
    non_finite: str = "stop",
    budget: float | None = None,
    tolerance: float | None = None,
    window: Sequence[tuple[float, float]] | None = None,
    trace_every: int | None = None,
    callbacks: Iterable[Callable[[Any], Any]] = (),
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    tune: bool = False,
    **parameters: Any,
) -> Result:
    """Draws particles from a density known up to a constant.

    >>> import numpy as np, steinflow
    >>> def logdensity_and_gradient(theta):  # all particles at once, (100, 2)
    ...     return -0.5 * np.sum(theta**2, axis=1), -theta
    >>> result = steinflow.sample(logdensity_and_gradient, shapes=2, method="svgd", progress=False)
    >>> bool(np.all(np.abs(result.particles.mean(axis=0)) < 0.1))
    True

    Parameters
    ----------
    target
        A JAX or PyTorch log density of the parameters of one particle (vectorised, compiled and
        differentiated for you); a NumPy function of all particles that returns log densities and
        gradients; a NumPyro model (with `model_args`, `model_kwargs`); a PyMC model; a
        `bridgestan.StanModel`; the name of a model that ships, or one made with `steinflow.model`.
    init
        The particles to start from: an array `(particles, d)`, or a pytree whose arrays have a leading
        axis of particles; for models with constrained parameters on the unconstrained scale. Left
        out, functions start from a standard normal of the given `shapes`, NumPyro models around the
        medians of the prior and PyMC models around their initial point with a spread of 0.1, Stan
        models from a standard normal, all on the unconstrained scale; models that ship know theirs.
    method
        One of `steinflow.methods()`; with `dynamics` of your own the name of a field: `diffusion`,
        `stein`, `stein-alt`, `blob`, `blob-alt`, `gfsd`, `gfsf`, `sge`, `product` or `drift`.
    particles
        How many, 100 unless `init` says.
    steps, step_size, integrator
        How the particles move. A step size is a number or a schedule: `linear:0.1:0.01`,
        `cosine:0.1:0.01`, `polynomial:A:B:GAMMA`; left out, it comes from the method and the
        target's curvature at the start. Integrators: `euler`, `splitting`, `midpoint-splitting`,
        `adagrad`, `rmsprop`, `adam`.
    phases
        Several `(integrator, steps, step_size)` one after the other, in place of the above.
    seed
        Same settings, same seed: same particles, on any number of threads.
    loglikelihood_fn, logprior_fn, data, batch_size
        In place of `target`: log likelihood of one row of the data, `loglikelihood_fn(parameters,
        row)`, and log prior. `data` is a pytree of arrays with a leading axis of rows; with
        `batch_size`, steps look at so many of them. With NumPy both functions get all particles and
        return log densities and gradients, the likelihood summed over the rows it is given.
    shapes
        The parameters of a function without `init`: their number, or `{"mu": (), "theta": (8,)}`.
    backend
        `numpy`, `jax`, `torch` or `numpyro`, where it cannot be told from the function.
    dtype
        `float64` or `float32`; by default what JAX or PyTorch compute in, and `float64` elsewhere.
    kernel, kernel_on, bandwidth
        `se` or `imq`; `joint`, `product` or `theta`; `median-log`, `liu-wang`, `numpyro`, `median`, a
        number, or one for each block of a product kernel.
    dynamics
        A `steinflow.Dynamics` of your own.
    resample_every
        Draws fresh momenta after every so many steps.
    collect_from, collect_every
        Keeps the particles of these steps too, as `Result.draws`.
    precondition, precondition_hold
        `rms`: coordinates learnt from the gradients, until so many of them were seen.
    non_finite
        `stop`, `freeze` the particle, or `shrink` the step, when a score is not finite.
    budget, tolerance
        Ends the run after so many seconds, or when the particles move less than this.
    window
        `[(low, high), …]` that holds nearly all of the density, for `lawgd`; models that ship know it.
    trace_every
        Steps between rows of `Result.trace`; a thousand rows by default.
    callbacks
        Functions of a step (`step`, `total_steps`, `particles`, `state`, `log_density`,
        `velocity_norm`, `bandwidths`, `step_size`, `gradients`, `seconds`); a true answer ends the run.
    progress
        A bar on a terminal or in a notebook.
    checkpoint, checkpoint_seconds
        A file that the run is saved to every so many seconds and at its end; where it exists, the run
        goes on from it.
    tune
        Finds what `step_size` and the method's `friction`, `mu` and `gamma` leave open by short pilot
        runs first, as `steinflow.tune` does; `Result.tuning` has what was tried.
    **parameters
        What the method has: `friction`, `sigma`, `mu`, `gamma`, `sigma_u`, `metric_scale`, `adapt`, …

    Returns
    -------
    Result
        Also after Ctrl-C, with everything so far; a second Ctrl-C gives up at once.

    Raises
    ------
    ValueError, TypeError
        A request that cannot be met, with what to do about it.
    SamplingError
        A run that failed on the way. What your own function raises reaches you as it is, with a note
        that says at which step.
    """
    given = {name: value for name, value in locals().items() if name != "tune"}
    run = prepare(**given)
    tuning = None
    if tune:
        tuning = _tune.search(run)
        run.settings = tuning.applied_to(run.settings)
    result = run.start(_checkpoint(run, checkpoint, checkpoint_seconds))
    result.tuning = tuning
    return result


def prepare(
    target: Any,
    init: Any,
    *,
    method: str,
    particles: int | None,
    steps: int,
    step_size: float | str | None,
    integrator: str | None,
    phases: Iterable[tuple[str | None, int, float | str | None]] | None,
    seed: int,
    loglikelihood_fn: Callable[..., Any] | None,
    logprior_fn: Callable[..., Any] | None,
    data: Any,
    batch_size: int | None,
    shapes: int | Mapping[str, Any] | None,
    backend: str | None,
    model_args: Sequence[Any],
    model_kwargs: Mapping[str, Any] | None,
    dtype: Any,
    kernel: str | None,
    kernel_on: str | None,
    bandwidth: float | str | Sequence[float] | None,
    dynamics: Any,
    resample_every: int | None,
    collect_from: int | None,
    collect_every: int | None,
    precondition: str | None,
    precondition_hold: int | None,
    non_finite: str,
    budget: float | None,
    tolerance: float | None,
    window: Sequence[tuple[float, float]] | None,
    trace_every: int | None,
    callbacks: Iterable[Callable[[Any], Any]],
    progress: bool,
    parameters: dict[str, Any],
    **_: Any,
) -> Run:
    """The run that the arguments of `sample` ask for, checked and ready to start."""
    wanted = _precision(dtype)
    made, start = _make_target(
        target,
        init,
        loglikelihood_fn=loglikelihood_fn,
        logprior_fn=logprior_fn,
        data=data,
        shapes=shapes,
        backend=backend,
        model_args=model_args,
        model_kwargs=model_kwargs or {},
        dtype=wanted,
    )
    count = _count(particles, start)
    if start is None:
        draw = made.start or (lambda n, s: _steinflow.standard_normal(n, made.dim, s))
        start = draw(count, seed)
    if phases is None:
        all_phases = [(integrator, steps, _settings.text(step_size))]
    else:
        if step_size is not None or integrator is not None:
            raise ValueError(
                "phases and step_size or integrator were given: a phase states integrator, steps and "
                "step size; drop one of the two"
            )
        all_phases = [_phase(phase) for phase in phases]
    all_phases = [(name, _settings.whole("steps", n), size) for name, n, size in all_phases]
    total = sum(number for _, number, _ in all_phases)
    if collect_every is not None and collect_from is None:
        raise ValueError("collect_every was given without collect_from: say from which step on")
    settings = _settings.make(
        method,
        "theta" if made.posterior else "joint",
        dynamics=dynamics,
        kernel=kernel,
        kernel_on=kernel_on,
        bandwidth=bandwidth,
        window=getattr(made.built_in, "window", None) if window is None else window,
        phases=all_phases,
        seed=seed,
        batch_size=batch_size,
        non_finite=non_finite,
        budget=budget,
        tolerance=tolerance,
        resample_every=resample_every,
        precondition=precondition,
        precondition_hold=precondition_hold,
        trace_every=trace_every or max(total // 1000, 1),
        collect_from=collect_from,
        collect_every=collect_every or resample_every or 1,
        **_settings.split_parameters(parameters),
    )
    start = _checked_start(start, made, settings)
    return Run(made, start, settings, _functions(callbacks), progress)


def _phase(phase: Any) -> tuple[Any, Any, str | None]:
    if not isinstance(phase, (tuple, list)) or len(phase) != 3:
        raise ValueError(f"a phase is {phase!r}: give (integrator, steps, step_size)")
    name, steps, size = phase
    return name, steps, _settings.text(size)


def _functions(callbacks: Any) -> list[Callable[[Any], Any]]:
    found = [callbacks] if callable(callbacks) else list(callbacks)
    for one in found:
        if not callable(one):
            raise TypeError(f"callbacks has {one!r}: give functions of a step")
    return found


def _precision(dtype: Any) -> np.dtype | None:
    if dtype is None:
        return None
    named = str(dtype).removeprefix("torch.")
    try:
        found = np.dtype(named if named in ("float32", "float64") else dtype)
    except TypeError:
        found = None
    if found not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(f"dtype is {dtype!r}: take float64 or float32")
    return found


def _make_target(
    target: Any, init: Any, *, dtype: np.dtype | None, **how: Any
) -> tuple[Target, np.ndarray | None]:
    """The target through its adapter, and the particles of `init`, one a row."""
    with_data = how["loglikelihood_fn"] is not None or how["logprior_fn"] is not None
    if with_data and (how["loglikelihood_fn"] is None or how["logprior_fn"] is None):
        raise ValueError("loglikelihood_fn and logprior_fn go together: pass both")
    if with_data and (target is not None or how["data"] is None):
        raise ValueError("loglikelihood_fn and logprior_fn take the place of target, and need data")
    if not with_data and how["data"] is not None:
        raise ValueError(
            "data goes with loglikelihood_fn and logprior_fn; a model that ships gets its file from "
            'steinflow.model("linear-regression", data=...)'
        )
    if target is None and not with_data:
        raise ValueError("nothing to sample: pass a log density, a model, or the name of one")
    if isinstance(target, (str, _steinflow.BuiltIn)):
        from steinflow.adapters import built_in

        return _with_flat_init(built_in.target(target, dtype), init)
    package = type(target).__module__.partition(".")[0]
    if package == "pymc":
        from steinflow.adapters import pymc

        return _with_flat_init(pymc.target(target, dtype), init)
    if package == "bridgestan":
        from steinflow.adapters import bridgestan

        return _with_flat_init(bridgestan.target(target, dtype), init)
    function = how["loglikelihood_fn"] if with_data else target
    if not callable(function):
        raise TypeError(
            f"target is {type(target).__name__}: pass a log density, a NumPyro, PyMC or BridgeStan "
            "model, or the name of a model that ships"
        )
    backend = how["backend"] or _detect.backend_of(function, init)
    if backend not in _detect.BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; known: {', '.join(_detect.BACKENDS)}")
    if backend == "numpyro":
        from steinflow.adapters import numpyro

        made = numpyro.target(function, how["model_args"], how["model_kwargs"], dtype)
        return _with_flat_init(made, init)
    return _function_target(backend, target, init, dtype, how)


def _function_target(
    backend: str, target: Any, init: Any, dtype: np.dtype | None, how: dict[str, Any]
) -> tuple[Target, np.ndarray | None]:
    if how["model_args"] or how["model_kwargs"]:
        raise ValueError(
            "model_args and model_kwargs are for NumPyro models, and this function is written with "
            f'{backend}: pass backend="numpyro", or bind the arguments with functools.partial'
        )
    adapter = importlib.import_module(f"steinflow.adapters.{backend}")
    flatten = adapter.flatten if backend == "jax" else _tree.flatten
    if init is not None:
        start, layout = _tree.particles_of(init, flatten)
    elif how["shapes"] is not None:
        start, layout = None, _tree.layout_of_shapes(how["shapes"])
    else:
        raise ValueError(
            "the number of parameters is not known: pass init, or shapes such as shapes=2 or "
            'shapes={"mu": (), "theta": (8,)}'
        )
    made = adapter.target(
        target, layout, dtype, how["loglikelihood_fn"], how["logprior_fn"], how["data"]
    )
    return made, start


def _with_flat_init(target: Target, init: Any) -> tuple[Target, np.ndarray | None]:
    if init is None:
        return target, None
    start, layout = _tree.particles_of(init)
    if isinstance(init, dict) and set(layout.names) != set(target.layout.names):
        raise ValueError(
            f"init has {sorted(layout.names)}, but the model's unconstrained parameters are "
            f"{sorted(target.layout.names)}"
        )
    if isinstance(init, dict) and layout.names != target.layout.names:
        # The model's own order.
        parts = [np.asarray(init[name]).reshape(len(start), -1) for name in target.layout.names]
        start = np.concatenate(parts, axis=1)
    return target, start


def _count(particles: int | None, start: np.ndarray | None) -> int:
    if particles is not None and (not isinstance(particles, (int, np.integer)) or particles < 1):
        raise ValueError(f"particles is {particles!r}: give a whole number, 2 or more")
    if start is None:
        return particles or DEFAULT_PARTICLES
    if particles is not None and particles != len(start):
        raise ValueError(f"particles is {particles} but init has {len(start)}: drop one of the two")
    return len(start)


def _checked_start(start: np.ndarray, target: Target, settings: dict[str, Any]) -> np.ndarray:
    start = np.ascontiguousarray(start, target.dtype)
    if start.shape[1] != target.dim:
        raise ValueError(
            f"init has {start.shape[1]} numbers for each particle, expected {target.dim}, the "
            f"dimension of the {target.name}"
        )
    bad = np.flatnonzero(~np.isfinite(start).all(axis=1))
    if len(bad):
        raise ValueError(f"init has a number that is not finite at particle {bad[0]}")
    deterministic = {m[0]: m[4] for m in _steinflow.methods()}.get(settings["method"], False)
    if deterministic and len(start) > 1 and (start == start[0]).all():
        raise ValueError(
            f"init holds {len(start)} identical particles, which would move as one: spread them, "
            "such as init + 0.1 * rng.standard_normal(init.shape)"
        )
    return start


def _checkpoint(run: Run, path: Any, seconds: float) -> Any:
    """Sets the file that the run is saved to; what is in it, if it is there."""
    if path is None:
        return None
    file = Path(fspath(path))
    if file.is_dir() or not file.absolute().parent.is_dir():
        what = "a folder" if file.is_dir() else "in a folder that does not exist"
        raise ValueError(f"checkpoint is {str(file)!r}, which is {what}: name a file")
    own = {name: value for name, value in run.settings.items() if name != "dynamics"}
    # A longer run may go on from the file of a shorter one.
    own["phases"] = [(name, size) for name, _, size in own["phases"]]
    config = json.dumps(
        {**own, "target": run.target.name, "dim": run.target.dim, "particles": len(run.init)},
        sort_keys=True,
        default=str,
    )
    run.save = SimpleNamespace(path=str(file), seconds=float(seconds), config=config)
    if not file.exists():
        return None
    found = _steinflow.Checkpoint.read(str(file), run.init.dtype.name)
    if found.config != config:
        raise ValueError(
            f"{file} is the checkpoint of a run with other settings: use the settings it was made "
            "with, or another file"
        )
    return found
