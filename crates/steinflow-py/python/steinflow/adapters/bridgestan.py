"""A Stan program through BridgeStan."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from steinflow._target import Target
from steinflow._tree import Layout


def target(model: Any, dtype: np.dtype | None) -> Target:
    """The log density of a `bridgestan.StanModel` on its unconstrained scale."""
    names = tuple(model.param_unc_names())
    own = _groups(model.param_names(include_tp=True))
    dim = model.param_unc_num()

    # Without this, Stan's memory for derivatives is one for all threads.
    info = model.model_info() if hasattr(model, "model_info") else ""
    threads = (os.cpu_count() or 1) if "STAN_THREADS=true" in info else 1
    pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        points = np.ascontiguousarray(theta, np.float64)
        values = np.empty(len(theta), np.float64)
        gradients = np.empty((len(theta), dim), np.float64)

        def evaluate(part: range) -> None:
            for i in part:
                try:
                    values[i], _ = model.log_density_gradient(points[i], out=gradients[i])
                except RuntimeError as error:
                    # A statement that Stan refuses far out, as its own samplers meet it: no density
                    # there, and `non_finite` says what becomes of the particle.
                    warnings.warn(f"Stan: {error}", RuntimeWarning, stacklevel=2)
                    values[i], gradients[i] = np.nan, np.nan

        parts = [range(first, len(theta), threads) for first in range(threads)]
        if pool is None:
            evaluate(parts[0])
        else:
            list(pool.map(evaluate, parts))
        return values.astype(theta.dtype), gradients.astype(theta.dtype)

    def constrain(rows: np.ndarray) -> dict[str, np.ndarray]:
        rows = np.ascontiguousarray(rows, np.float64)
        flat = np.stack([model.param_constrain(row, include_tp=True) for row in rows])
        return {
            name: flat[:, first : first + size].reshape((len(rows), *shape), order="F")
            if len(shape) < 2
            else np.stack([row.reshape(shape, order="F") for row in flat[:, first : first + size]])
            for name, (first, size, shape) in own.items()
        }

    return Target(
        name="Stan model",
        function=function,
        layout=Layout.of_names(names, [()] * dim),
        dtype=dtype or np.dtype("float64"),
        posterior=True,
        constrain=constrain,
    )


def _groups(names: list[str]) -> dict[str, tuple[int, int, tuple[int, ...]]]:
    """First place, size and shape of every parameter, from Stan's names such as `theta.1.2`.

    >>> _groups(["mu", "theta.1", "theta.2", "L.1.1", "L.2.1"])
    {'mu': (0, 1, ()), 'theta': (1, 2, (2,)), 'L': (3, 2, (2, 1))}
    """
    groups: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for place, name in enumerate(names):
        base, *indices = name.split(".")
        groups.setdefault(base, []).append((place, tuple(int(index) for index in indices)))
    return {
        base: (
            entries[0][0],
            len(entries),
            tuple(max(column) for column in zip(*(indices for _, indices in entries), strict=True)),
        )
        for base, entries in groups.items()
    }
