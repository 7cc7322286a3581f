"""A model that ships, by name or made with `steinflow.model`."""

from __future__ import annotations

from typing import Any

import numpy as np

from steinflow import _steinflow
from steinflow._target import Target
from steinflow._tree import Layout


def target(model: str | _steinflow.BuiltIn, dtype: np.dtype | None) -> Target:
    """The compiled model; Python is not asked for a single number."""
    if isinstance(model, str):
        model = _steinflow.BuiltIn(model)
    names = tuple(model.parameter_names)

    def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        return model.evaluate(theta)

    has_units = model.show(np.zeros((0, model.dim))) is not None

    def shown(rows: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(rows, np.float64)
        return model.show(rows) if has_units else rows

    def constrain(rows: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(names, shown(rows).T, strict=True))

    return Target(
        name=model.name,
        function=function,
        layout=Layout.flat(model.dim),
        dtype=dtype or np.dtype("float64"),
        data_rows=model.data_rows,
        posterior=model.data_rows > 0,
        constrain=constrain if has_units else None,
        built_in=model,
        coordinate_names=tuple(model.coordinate_names),
        log_likelihood=lambda rows: model.log_likelihood(shown(rows)),
        predict=lambda rows: model.predict(shown(rows)),
        observed=model.observed,
    )
