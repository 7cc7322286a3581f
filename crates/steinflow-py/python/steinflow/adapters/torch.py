"""A PyTorch log density of one pytree of parameters, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow._target import Target, missing
from steinflow._tree import Layout, flatten, rows_of_data


def import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise missing("PyTorch", "a PyTorch function", "torch") from error
    return torch


def target(
    fn: Callable[..., Any] | None,
    layout: Layout,
    dtype: np.dtype | None,
    loglikelihood_fn: Any = None,
    logprior_fn: Any = None,
    data: Any = None,
) -> Target:
    """`fn(parameters)`, or `logprior_fn(parameters)` and `loglikelihood_fn(parameters, row)` of one
    row of the data; vectorised and differentiated with `torch.func`."""
    torch = import_torch()
    own = str(torch.get_default_dtype()).removeprefix("torch.")
    if dtype is None and own not in ("float32", "float64"):
        raise TypeError(f'PyTorch computes in {own} by default: pass dtype="float32" or "float64"')
    dtype = dtype or np.dtype(own)
    vmap, grad_and_value = torch.func.vmap, torch.func.grad_and_value

    def scalar(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.ndim != 0:
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise TypeError(
                f"your log density returned {shape} for one particle, expected a scalar tensor; it "
                "gets the parameters of one particle, not a batch: the batch is made for you"
            )
        return value

    def numbers(found: tuple[Any, Any]) -> tuple[Any, Any]:
        gradient, value = found
        return value.detach().numpy(), gradient.detach().numpy()

    if fn is not None:
        batched = vmap(grad_and_value(lambda flat: scalar(fn(layout.split(flat)))))

        def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
            # The tensor shares the array's memory.
            return numbers(batched(torch.from_numpy(theta)))

        return Target("PyTorch function", function, layout, dtype)

    leaves, rebuild = flatten(data)
    tensors = [
        leaf if isinstance(leaf, torch.Tensor) else torch.from_numpy(np.array(leaf))
        for _, leaf in leaves
    ]
    count = rows_of_data(tensors)

    def logdensity(flat: Any, batch: list[Any], scale: float) -> Any:
        parameters = layout.split(flat)
        by_row = vmap(lambda *row: scalar(loglikelihood_fn(parameters, rebuild(row))))(*batch)
        return scalar(logprior_fn(parameters)) + scale * by_row.sum()

    gradients = vmap(grad_and_value(logdensity), in_dims=(0, None, None))

    def with_data(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        batch = tensors if rows is None else [t[torch.from_numpy(rows)] for t in tensors]
        return numbers(gradients(torch.from_numpy(theta), batch, scale))

    return Target(
        "PyTorch likelihood and prior",
        with_data,
        layout,
        dtype,
        data_rows=count,
        posterior=True,
    )
