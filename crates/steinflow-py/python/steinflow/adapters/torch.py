"""A PyTorch log density of one pytree of parameters, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow._target import Target, missing, not_a_scalar, of_data
from steinflow._tree import Layout, flatten, numbers, rebuild, rows_of_data


def import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise missing("PyTorch", "a PyTorch function", "torch") from error
    return torch


def scalar(value: Any) -> Any:
    """The value, if it is one number."""
    torch = import_torch()
    if not isinstance(value, torch.Tensor) or value.ndim != 0:
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise not_a_scalar(str(shape), "a scalar tensor")
    return value


def of_all(of_one: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Values and gradients for all rows of the first argument, of a function of one row."""
    torch = import_torch()

    def batched(theta: np.ndarray, *more: Any) -> tuple[Any, Any]:
        axes = (0, *(None for _ in more))
        gradients = torch.func.vmap(torch.func.grad_and_value(of_one), in_dims=axes)
        try:
            # The tensor shares the array's memory.
            gradient, value = gradients(torch.from_numpy(theta), *more)
        except RuntimeError as error:
            if "device" not in str(error):
                raise
            raise TypeError(
                "your function got parameters on the CPU, where steinflow moves particles, and used "
                "them with tensors that are elsewhere: move its data and modules there too, by "
                "x.cpu() and module.cpu()"
            ) from error
        return numbers(value), numbers(gradient)

    return batched


def evaluator(fn: Callable[..., Any], layout: Layout) -> Callable[..., tuple[Any, Any]]:
    """`fn(parameters, *batch)` of one particle, as a function of all rows and a batch."""
    return of_all(lambda flat, *batch: scalar(fn(layout.split(flat), *batch)))


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
    if fn is not None:
        batched = evaluator(fn, layout)

        def function(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
            return batched(theta)

        return Target("PyTorch function", function, layout, dtype)

    leaves, skeleton = flatten(data)
    tensors = [
        leaf if isinstance(leaf, torch.Tensor) else torch.from_numpy(np.array(leaf))
        for _, leaf in leaves
    ]
    count = rows_of_data(tensors)

    def by_row(flat: Any, batch: list[Any]) -> Any:
        parameters = layout.split(flat)
        return torch.func.vmap(
            lambda *row: scalar(loglikelihood_fn(parameters, rebuild(skeleton, row)))
        )(*batch)

    def logdensity(flat: Any, batch: list[Any], scale: float) -> Any:
        return scalar(logprior_fn(layout.split(flat))) + scale * by_row(flat, batch).sum()

    gradients = of_all(logdensity)

    def with_data(theta: np.ndarray, rows: Any, scale: float) -> tuple[Any, Any]:
        batch = tensors if rows is None else [t[torch.from_numpy(rows)] for t in tensors]
        return gradients(theta, batch, scale)

    of_draws = torch.func.vmap(by_row, in_dims=(0, None))

    def log_likelihood(draws: np.ndarray) -> np.ndarray:
        return of_draws(torch.from_numpy(draws), tensors).detach().numpy()

    return of_data("PyTorch", with_data, layout, dtype, count, log_likelihood)
