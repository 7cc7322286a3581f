"""Which adapter a target is for."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from steinflow._tree import Layout

BACKENDS = ("numpy", "jax", "torch", "numpyro")
# A NumPyro model uses JAX, and functions for JAX or PyTorch may well use NumPy.
PRIORITY = ("numpyro", "torch", "jax", "numpy")


def backend_of(fn: Callable[..., Any], init: Any, layout: Layout | None = None) -> str | None:
    """The library that a function is written with: the one whose names it uses.

    Looks at what the function refers to, and what its helpers refer to. Where that says nothing, the
    kind of arrays in `init` decides, and then, where the layout of a particle is known, a trial: a NumPy
    function gets two particles and returns a pair. None if it cannot be told.

    >>> import numpy as np
    >>> backend_of(lambda theta: (-0.5 * np.sum(theta**2, axis=1), -theta), None)
    'numpy'
    >>> backend_of(lambda theta: (-0.5 * (theta**2).sum(axis=1), -theta), None, Layout.flat(3))
    'numpy'
    """
    found: set[str] = set()
    _collect(fn, found, set())
    for backend in PRIORITY:
        if backend in found:
            return backend
    kind = kind_of(init)
    if kind in ("jax", "torch"):
        return kind
    return (None if layout is None else _tried(fn, layout)) or kind


def cannot_tell() -> ValueError:
    return ValueError(
        "it cannot be told whether your function is written with NumPy, JAX, PyTorch or NumPyro: pass "
        'backend="numpy", "jax", "torch" or "numpyro"'
    )


def _tried(fn: Callable[..., Any], layout: Layout) -> str | None:
    """What a function without names does with two particles of zeros."""
    try:
        with np.errstate(all="ignore"):
            answer = fn(layout.split(np.zeros((2, layout.dim))))
    except Exception:
        return None
    if isinstance(answer, tuple) and len(answer) == 2 and np.shape(answer[0]) == (2,):
        return "numpy"
    # Operators alone are anybody's: a log density of one particle, which JAX or PyTorch differentiates.
    loaded = [package for package in ("torch", "jax") if package in sys.modules]
    return loaded[0] if len(loaded) == 1 and np.ndim(answer) == 0 else None


def kind_of(tree: Any) -> str | None:
    """The library whose arrays a pytree holds, if it holds any."""
    kinds = {type(leaf).__module__.partition(".")[0] for leaf in _leaves(tree)}
    for package, kind in (
        ("jaxlib", "jax"),
        ("jax", "jax"),
        ("torch", "torch"),
        ("numpy", "numpy"),
    ):
        if package in kinds:
            return kind
    return None


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for child in tree.values() for leaf in _leaves(child)]
    if isinstance(tree, (list, tuple)):
        return [leaf for child in tree for leaf in _leaves(child)]
    return [tree]


def _collect(thing: Any, found: set[str], seen: set[int]) -> None:
    if id(thing) in seen or len(seen) > 1000:
        return
    seen.add(id(thing))
    if isinstance(thing, types.ModuleType):
        package = thing.__name__.partition(".")[0]
    else:
        module = getattr(type(thing), "__module__", "") or ""
        own = getattr(thing, "__module__", None)
        package = (own if isinstance(own, str) else module).partition(".")[0]
    if package in PRIORITY:
        found.add(package)
    if package in ("jaxlib",):
        found.add("jax")
    inner = getattr(thing, "__wrapped__", None)
    if inner is not None:
        _collect(inner, found, seen)
    if isinstance(thing, functools.partial):
        _collect(thing.func, found, seen)
    if isinstance(thing, types.MethodType):
        _collect(thing.__func__, found, seen)
    call = getattr(type(thing), "__call__", None)  # noqa: B004 (its code is wanted)
    if isinstance(call, types.FunctionType) and not isinstance(thing, type):
        _collect(call, found, seen)
    if isinstance(thing, types.FunctionType) and package not in PRIORITY:
        for code in _codes(thing.__code__):
            for step in dis.get_instructions(code):
                # Attributes have names too, which are not those of anything global.
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    _collect(thing.__globals__.get(step.argval), found, seen)
                elif step.opname == "IMPORT_NAME" and step.argval.partition(".")[0] in PRIORITY:
                    found.add(step.argval.partition(".")[0])
        for cell in thing.__closure__ or ():
            try:
                _collect(cell.cell_contents, found, seen)
            except ValueError:  # An empty cell refers to nothing yet.
                continue


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """The code of a function and of those it defines."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [code] + [deeper for own in inner for deeper in _codes(own)]
