"""`steinflow.sample`: particles from a target."""

from __future__ import annotations

import importlib
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Unpack

import numpy as np

from steinflow import _detect, _field, _settings, _steinflow, _tree, testing
from steinflow._dynamics import Dynamics
from steinflow._progress import Bar
from steinflow._result import Result
from steinflow._signals import interruptible
from steinflow._target import Target
from steinflow._typed import RunSettings


@dataclass
class Run:
    """A run that can be started and gone on with."""

    target: Target
    init: np.ndarray | None
    config: _steinflow.Config
    callbacks: Sequence[Callable[[Any], Any]]
    progress: bool
    save: Any = None
    diagnose: bool = True

    def without_function(self) -> Run:
        """What is left of it in a file."""
        config = SimpleNamespace(toml=self.config.toml, method=self.config.method)
        return Run(self.target.without_function(), None, config, (), False)  # type: ignore[arg-type]

    def start(self, checkpoint: Any = None) -> Result:
        bar = Bar(f"{self.config.method} on {self.target.name}")
        shown = bar if self.progress and bar.visible else None
        try:
            with interruptible() as interrupt:
                outcome = _steinflow.run(
                    self.target.built_in or self.target,
                    self.config,
                    init=self.init,
                    interrupt=interrupt,
                    progress=shown,
                    callback=self._callback() if self.callbacks else None,
                    checkpoint=checkpoint,
                    save=self.save,
                )
        finally:
            if shown is not None:
                bar.close()
        result = Result(self, outcome)
        if self.diagnose and result.ended != "interrupted":
            self._judge(result)
        return result

    def _judge(self, result: Result) -> None:
        """Ends the run with its verdict. One that cannot be had is no reason to lose the run."""
        try:
            result.diagnosis = result.diagnose()
        except Exception as error:
            warnings.warn(f"there is no verdict: {error}", RuntimeWarning, stacklevel=4)
            return
        if self.progress:
            print(result.diagnosis.line, file=sys.stderr)

    def resume(self, checkpoint: Any, **changes: Any) -> Result:
        """Goes on from a checkpoint with `steps` more than the run had."""
        if checkpoint is None:
            self.target.evaluate(np.zeros((1, self.target.dim)))
        steps = changes["steps"] or 0
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise ValueError(f"steps is {steps!r}: give a whole number, zero or more")
        callbacks = changes["callbacks"]
        run = replace(
            self,
            config=self.config.longer(int(steps), changes["budget"]),
            callbacks=self.callbacks if callbacks is None else _functions(callbacks),
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


@_settings.documented(_steinflow.settings())
def sample(
    target: Any = None,
    init: Any = None,
    *,
    loglikelihood_fn: Callable[..., Any] | None = None,
    logprior_fn: Callable[..., Any] | None = None,
    data: Any = None,
    shapes: int | Mapping[str, Any] | None = None,
    backend: str | None = None,
    model_args: Sequence[Any] = (),
    model_kwargs: Mapping[str, Any] | None = None,
    dtype: Any = None,
    dynamics: Any = None,
    field: Any = None,
    window: Sequence[tuple[float, float]] | None = None,
    callbacks: Iterable[Callable[[Any], Any]] = (),
    progress: bool = True,
    diagnose: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    **settings: Unpack[RunSettings],
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
    loglikelihood_fn, logprior_fn, data
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
    dynamics
        A `steinflow.Dynamics` of your own. `method` is then the name of a field: `diffusion`, `stein`,
        `stein-alt`, `blob`, `blob-alt`, `gfsd`, `gfsf`, `sge`, `product` or `drift`.
    field
        What moves the particles of `method` in place of its own field: a `steinflow.Kernel` of your own,
        or a function of all particles at one instant (`Instant`) that returns their velocity.
    window
        `[(low, high), …]` that holds nearly all of the density, for `lawgd`; models that ship know it.
    callbacks
        Functions of a step (`step`, `total_steps`, `particles`, `state`, `log_density`,
        `velocity_norm`, `bandwidths`, `step_size`, `gradients`, `seconds`); a true answer ends the run.
    progress
        A bar on a terminal or in a notebook, and the verdict in a line at the end.
    diagnose
        Whether to judge the result: `result.diagnosis`. That takes at most a tenth of the run's
        evaluations, or 200 where that is more.
    checkpoint, checkpoint_seconds
        A file that the run is saved to every so many seconds and at its end; where it exists, the run
        goes on from it. The file has log densities and gradients, and no function: they are compared
        with what the target says now of the same particles (and rows of data). Another target is
        refused; rounding is not (relative: 1.5e-8 in float64, 3.5e-4 in float32), nor a target
        that is random, by ten times what two of its own answers differ by.
    {settings}

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
        dtype=_precision(dtype),
    )
    config = _resolve(made, start, settings, dynamics, field, window)
    if start is not None:
        start = _checked_start(start, made, config)
    run = Run(made, start, config, _functions(callbacks), progress, diagnose=diagnose)
    return run.start(_checkpoint(run, checkpoint, checkpoint_seconds))


def _resolve(
    made: Target,
    start: np.ndarray | None,
    settings: Mapping[str, Any],
    dynamics: Any,
    field: Any,
    window: Any,
) -> _steinflow.Config:
    """The description of the run, complete."""
    if not isinstance(dynamics, (Dynamics, type(None))):
        raise TypeError(f"dynamics is {type(dynamics).__name__}: give a steinflow.Dynamics")
    testing.check_before_use(dynamics, made.dim)
    particles = settings.get("particles")
    if start is not None and particles is not None and particles != len(start):
        raise ValueError(f"particles is {particles} but init has {len(start)}: drop one of the two")
    given = dict(settings)
    if "seed" in given and given["seed"] is None:
        given["seed"] = secrets.randbits(32)
    if made.built_in is None or made.dtype != np.dtype("float64"):
        given.setdefault("precision", "f32" if made.dtype == np.dtype("float32") else "f64")
    centre, spread = made.start or (None, 1.0)
    limits = getattr(made.built_in, "window", None) if window is None else _window(window)
    return _steinflow.Config.resolve(
        given,
        made.built_in or made,
        init=None if start is None else np.ascontiguousarray(start, made.dtype),
        centre=None if centre is None else np.asarray(centre, float).tolist(),
        sd=spread,
        posterior=made.posterior,
        dynamics=dynamics,
        field=_field.callback(field),
        window=limits,
    )


def _window(limits: Any) -> list[tuple[float, float]]:
    """Pairs of numbers, or an error that says so."""
    try:
        return [(float(low), float(high)) for low, high in limits]
    except (TypeError, ValueError):
        raise ValueError(
            f"window is {limits!r}: give (low, high) for each coordinate, such as [(-5, 5), (-5, 5)]"
        ) from None


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
    if backend not in (None, *_detect.BACKENDS):
        raise ValueError(f"there is no backend {backend!r}; known: {', '.join(_detect.BACKENDS)}")
    if backend == "numpyro":
        from steinflow.adapters import numpyro

        made = numpyro.target(function, how["model_args"], how["model_kwargs"], dtype)
        return _with_flat_init(made, init)
    return _function_target(backend, target, init, dtype, how)


def target_of(target: Any, dim: int, how: Mapping[str, Any]) -> Target:
    """What `sample` would make of a target whose draws are rows of so many numbers."""
    every = dict.fromkeys(("loglikelihood_fn", "logprior_fn", "data", "shapes", "backend"))
    every |= {"shapes": dim, "model_args": (), "model_kwargs": {}, "dtype": None}
    unknown = set(how) - set(every)
    if unknown:
        raise TypeError(f"diagnose takes no {sorted(unknown)[0]!r}; known: {', '.join(every)}")
    every |= how
    dtype = _precision(every.pop("dtype"))
    return _make_target(target, None, dtype=dtype, **every)[0]


def _function_target(
    backend: str | None, target: Any, init: Any, dtype: np.dtype | None, how: dict[str, Any]
) -> tuple[Target, np.ndarray | None]:
    if how["model_args"] or how["model_kwargs"]:
        raise ValueError(
            "model_args and model_kwargs are for NumPyro models, and this function is written with "
            f'{backend}: pass backend="numpyro", or bind the arguments with functools.partial'
        )
    if backend == "jax":
        from steinflow.adapters.jax import flatten
    else:
        from steinflow._tree import flatten
    if init is not None:
        start, layout = _tree.particles_of(init, flatten)
    elif how["shapes"] is not None:
        start, layout = None, _tree.layout_of_shapes(how["shapes"])
    else:
        raise ValueError(
            "the number of parameters is not known: pass init, or shapes such as shapes=2 or "
            'shapes={"mu": (), "theta": (8,)}'
        )
    if backend in (None, "numpy") and how["backend"] is None and target is not None:
        backend = _detect.backend_of(target, init, layout)
    if backend is None:
        raise _detect.cannot_tell()
    adapter = importlib.import_module(f"steinflow.adapters.{backend}")
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


def _checked_start(start: np.ndarray, target: Target, config: _steinflow.Config) -> np.ndarray:
    # A copy: the array may be the user's own, and the run is gone on with later.
    start = np.array(start, target.dtype, order="C")
    if start.shape[1] != target.dim:
        raise ValueError(
            f"init has {start.shape[1]} numbers for each particle, expected {target.dim}, the "
            f"dimension of the {target.name}"
        )
    _tree.check_start(start, config.is_deterministic)
    return start


def _checkpoint(run: Run, path: Any, seconds: float) -> Any:
    """Sets the file that the run is saved to; what is in it, if it is there."""
    if path is None:
        return None
    file = Path(fspath(path))
    if file.is_dir() or not file.absolute().parent.is_dir():
        what = "a folder" if file.is_dir() else "in a folder that does not exist"
        raise ValueError(f"checkpoint is {str(file)!r}, which is {what}: name a file")
    # A longer run may go on from the file of a shorter one.
    config = f"{run.config.identity}# {run.target.name}, {run.target.dim} coordinates"
    run.save = SimpleNamespace(path=str(file), seconds=float(seconds), config=config)
    if not file.exists():
        return None
    found = _steinflow.Checkpoint.read(str(file), run.target.dtype.name)
    if found.config != config:
        raise ValueError(
            f"{file} is the checkpoint of a run with other settings: use the settings it was made "
            "with, or another file"
        )
    return found
