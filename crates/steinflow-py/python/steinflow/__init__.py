"""Samples from a density known up to a constant, with deterministic interacting particles.

>>> import steinflow
>>> result = steinflow.sample("banana", progress=False)
>>> result.ensemble["done"], result.draws.shape[0]
(True, 64)

`sample` takes a JAX, PyTorch or NumPy log density, a NumPyro or PyMC model, a Stan model or the name
of a model that ships. `methods()` and `models()` list what has a name. `Result.diagnosis`,
`diagnose`, `ksd_test` and `distances` say whether to believe particles. `sampler` has the steps of a
method for a loop of your own, and `velocity`, `kernel_sums`, `ksd`, `Dynamics` and `Kernel` are its
pieces; `testing` has the laws that your own have to obey.
"""

import importlib

from steinflow import testing
from steinflow._catalogue import MethodInfo, ModelInfo, methods, model, models
from steinflow._diagnosis import (
    Diagnosis,
    Distances,
    Evidence,
    KsdTest,
    diagnose,
    distances,
    ksd_test,
)
from steinflow._dynamics import Coefficient, Dynamics
from steinflow._field import Instant, Kernel
from steinflow._low_level import bandwidth, jax_velocity, kernel_sums, ksd, velocity
from steinflow._result import Result
from steinflow._sample import sample
from steinflow._sampler import Sampler, State, sampler
from steinflow._steinflow import LawBroken, SamplingError, __version__


def __getattr__(name: str) -> object:
    """The parts that need another package are imported when they are asked for."""
    if name in ("jax", "sklearn", "torch"):
        return importlib.import_module(f"steinflow.{name}")
    raise AttributeError(f"module 'steinflow' has no attribute {name!r}")


__all__ = [
    "Coefficient",
    "Diagnosis",
    "Distances",
    "Dynamics",
    "Evidence",
    "Instant",
    "Kernel",
    "KsdTest",
    "LawBroken",
    "MethodInfo",
    "ModelInfo",
    "Result",
    "Sampler",
    "SamplingError",
    "State",
    "__version__",
    "bandwidth",
    "diagnose",
    "distances",
    "jax_velocity",
    "kernel_sums",
    "ksd",
    "ksd_test",
    "methods",
    "model",
    "models",
    "sample",
    "sampler",
    "testing",
    "velocity",
]
