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


def columns(result: Result, constrained: bool = True, draws: bool = False) -> dict[str, np.ndarray]:
    """A column for every number of a particle, or of a draw where any were collected."""
    target, drawn = result._run.target, result._draw_rows()
    if draws and drawn is not None:
        what, rows = "draws", drawn.reshape(-1, target.dim)
    else:
        what, rows = "particles", result.theta
    is_shown = constrained and result._is_constrained
    if target.coordinate_names is not None and not is_shown:
        return dict(zip(target.coordinate_names, rows.T, strict=True))
    own: dict[str, np.ndarray] = {}
    shown = result._constrained(what, rows) if is_shown else target.layout.named(rows)
    for name, value in shown.items():
        for index in np.ndindex(*value.shape[1:]):
            suffix = "[" + ",".join(map(str, index)) + "]" if index else ""
            own[name + suffix] = value[(slice(None), *index)]
    return own


def to_dataframe(result: Result) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise missing("pandas", "to_dataframe") from error
    drawn = result._draw_rows()
    if drawn is None:
        return pandas.DataFrame({**columns(result), "log_density": result.log_density})
    chains, draws = drawn.shape[:2]
    places = {
        "chain": np.repeat(np.arange(chains), draws),
        "draw": np.tile(np.arange(draws), chains),
    }
    return pandas.DataFrame({**places, **columns(result, draws=True)})


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
    count, target = len(result.state), result._run.target
    stats: dict[str, tuple[list[str], np.ndarray]]
    if result.draw_steps is not None and len(result.draw_steps):
        leading = (count, len(result.draw_steps))
        what, rows = "draws", result._draw_rows().reshape(-1, target.dim)
        stats = {"step": (["chain", "draw"], np.broadcast_to(result.draw_steps, leading).copy())}
    else:
        leading = (1, count)
        what, rows = "particles", result.theta
        stats = {"lp": (["chain", "draw"], result.log_density[None])}
    coordinates = {"chain": np.arange(leading[0]), "draw": np.arange(leading[1])}

    def dataset(variables: Any) -> Any:
        return xarray.Dataset(variables, coordinates, attributes)

    named = target.layout.named(rows)
    shown = result._constrained(what, rows) if result._is_constrained else named
    own = {"posterior": dataset(_variables(shown, leading)), "sample_stats": dataset(stats)}
    if result._is_constrained:
        own["unconstrained_posterior"] = dataset(_variables(named, leading))
    for name, of in (
        ("log_likelihood", target.log_likelihood),
        ("posterior_predictive", target.predict),
    ):
        found = {} if of is None else of(rows)
        if found:
            own[name] = dataset(_variables(found, leading))
    observed = {} if target.observed is None else target.observed()
    if observed:
        data = {
            name: ([f"{name}_dim_{k}" for k in range(np.ndim(value))], np.asarray(value))
            for name, value in observed.items()
        }
        own["observed_data"] = xarray.Dataset(data, attrs=attributes)
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
