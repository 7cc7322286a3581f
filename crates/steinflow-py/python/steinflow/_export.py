"""A result in the formats of others."""

from __future__ import annotations

from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from steinflow import _steinflow
from steinflow._target import missing

if TYPE_CHECKING:
    from steinflow._result import Result


def named(result: Result, rows: np.ndarray, constrained: bool = True) -> dict[str, np.ndarray]:
    """Arrays by name, with one leading axis, from rows of unconstrained numbers."""
    target = result._run.target
    if constrained and target.constrain is not None:
        return target.constrain(rows)
    return target.layout.named(rows)


def columns(result: Result, constrained: bool = True) -> dict[str, np.ndarray]:
    """A column for every number of a particle."""
    target = result._run.target
    built_in = target.built_in
    if built_in is not None and (target.constrain is None or not constrained):
        return dict(zip(built_in.parameter_names, result.theta.T, strict=True))
    own: dict[str, np.ndarray] = {}
    for name, value in named(result, result.theta, constrained).items():
        for index in np.ndindex(*value.shape[1:]):
            suffix = "[" + ",".join(map(str, index)) + "]" if index else ""
            own[name + suffix] = value[(slice(None), *index)]
    return own


def to_parquet(result: Result, path: str | PathLike[str]) -> None:
    own = columns(result)
    own["log_density"] = result.log_density
    kept = {name: np.ascontiguousarray(column) for name, column in own.items()}
    _steinflow.write_parquet(path, list(kept), kept)


def _variables(
    values: dict[str, np.ndarray], leading: tuple[int, int]
) -> dict[str, tuple[list[str], np.ndarray]]:
    """Variables with dimensions as the ArviZ schema names them, from one leading axis."""
    found = {}
    for name, value in values.items():
        more = [f"{name}_dim_{k}" for k in range(value.ndim - 1)]
        found[name] = (["chain", "draw", *more], value.reshape(*leading, *value.shape[1:]))
    return found


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
        rows = result._draw_rows().reshape(-1, result._run.target.dim)
        stats = {"step": (["chain", "draw"], np.broadcast_to(result.draw_steps, leading).copy())}
    else:
        leading = (1, count)
        rows = result.theta
        stats = {"lp": (["chain", "draw"], result.log_density[None])}
    coordinates = {"chain": np.arange(leading[0]), "draw": np.arange(leading[1])}

    def dataset(variables: Any) -> Any:
        return xarray.Dataset(variables, coordinates, attributes)

    posterior = dataset(_variables(named(result, rows), leading))
    own = {"posterior": posterior, "sample_stats": dataset(stats)}
    if result._run.target.constrain is not None:
        unconstrained = _variables(named(result, rows, constrained=False), leading)
        own["unconstrained_posterior"] = dataset(unconstrained)
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
