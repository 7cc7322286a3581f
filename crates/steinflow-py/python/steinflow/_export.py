"""A result in the formats of others."""

from __future__ import annotations

from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from steinflow import _steinflow
from steinflow._target import missing
from steinflow._tree import flatten

if TYPE_CHECKING:
    from steinflow._result import Result


def columns(result: Result, constrained: bool = True) -> dict[str, np.ndarray]:
    """A column for every number of a particle."""
    tree = result.particles if constrained else result.unconstrained_particles
    built_in = result._run.target.built_in
    own: dict[str, np.ndarray] = {}
    for name, leaf in flatten(tree)[0]:
        rows = np.reshape(leaf, (len(result.state), -1))
        names = None if built_in is None else built_in.parameter_names
        for place, index in enumerate(np.ndindex(*np.shape(leaf)[1:])):
            suffix = "[" + ",".join(map(str, index)) + "]" if index else ""
            own[names[place] if names else (name or "theta") + suffix] = rows[:, place]
    return own


def to_parquet(result: Result, path: str | PathLike[str]) -> None:
    own = columns(result)
    own["log_density"] = result.log_density
    kept = {name: np.ascontiguousarray(column) for name, column in own.items()}
    _steinflow.write_parquet(path, list(kept), kept)


def _variables(tree: Any, leading: tuple[int, int]) -> dict[str, tuple[list[str], np.ndarray]]:
    """Named variables with dimensions, as the ArviZ schema names them."""
    found = {}
    for name, leaf in flatten(tree)[0]:
        name = name or "theta"
        value = np.asarray(leaf).reshape(*leading, *np.shape(leaf)[_leading_axes(leaf, leading) :])
        more = [f"{name}_dim_{k}" for k in range(value.ndim - 2)]
        found[name] = (["chain", "draw", *more], value)
    return found


def _leading_axes(leaf: Any, leading: tuple[int, int]) -> int:
    return 2 if np.shape(leaf)[:2] == leading and leading[0] != 1 else 1


def groups(result: Result) -> dict[str, Any]:
    """The groups of the schema as xarray datasets."""
    try:
        import xarray
    except ImportError as error:
        raise missing("xarray", "to_arviz, to_zarr and to_netcdf", "arviz xarray") from error
    attributes = {
        "created_at": datetime.now(UTC).isoformat(),
        "inference_library": "steinflow",
        "inference_library_version": _steinflow.__version__,
        "sampling_time": result.diagnostics["seconds"],
        "method": result.method,
    }
    count = len(result.state)
    stats: dict[str, tuple[list[str], np.ndarray]]
    if result.draw_steps is not None and len(result.draw_steps):
        leading = (count, len(result.draw_steps))
        tree, unconstrained = result.draws, result.unconstrained_draws
        stats = {"step": (["chain", "draw"], np.broadcast_to(result.draw_steps, leading).copy())}
    else:
        leading = (1, count)
        tree, unconstrained = result.particles, result.unconstrained_particles
        stats = {"lp": (["chain", "draw"], result.log_density[None])}
    coordinates = {"chain": np.arange(leading[0]), "draw": np.arange(leading[1])}

    def dataset(variables: Any) -> Any:
        return xarray.Dataset(variables, coordinates, attributes)

    own = {"posterior": dataset(_variables(tree, leading)), "sample_stats": dataset(stats)}
    if result._run.target.constrain is not None:
        own["unconstrained_posterior"] = dataset(_variables(unconstrained, leading))
    return own


def to_tree(result: Result) -> Any:
    own = groups(result)
    import xarray

    return xarray.DataTree.from_dict(own)


def to_arviz(result: Result) -> Any:
    try:
        import arviz
    except ImportError as error:
        raise missing("ArviZ", "to_arviz", "arviz") from error
    # From 1.0 on, InferenceData is another name for xarray's DataTree, or gone.
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return to_tree(result)
    return arviz.InferenceData(**groups(result))
