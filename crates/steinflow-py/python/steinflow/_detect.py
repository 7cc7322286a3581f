"""Which adapter a target is for."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable
from typing import Any

BACKENDS = ("numpy", "jax", "torch", "numpyro")
# A NumPyro model uses JAX, and functions for JAX or PyTorch may well use NumPy.
PRIORITY = ("numpyro", "torch", "jax", "numpy")


def backend_of(fn: Callable[..., Any], init: Any) -> str:
    """The library that a function is written with: the one whose names it uses.

    Looks at what the function refers to, and what its helpers refer to; nothing is called. Where that
    says nothing, the kind of arrays in `init` decides.

    >>> import numpy as np
    >>> backend_of(lambda theta: (-0.5 * np.sum(theta**2, axis=1), -theta), None)
    'numpy'
    """
    found: set[str] = set()
    _collect(fn, found, set())
    for backend in PRIORITY:
        if backend in found:
            return backend
    kinds = {type(leaf).__module__.partition(".")[0] for leaf in _leaves(init)}
    for kind, backend in (("jaxlib", "jax"), ("jax", "jax"), ("torch", "torch")):
        if kind in kinds:
            return backend
    if "numpy" in kinds:
        return "numpy"
    raise ValueError(
        "it cannot be told whether your function is written with NumPy, JAX, PyTorch or NumPyro: pass "
        'backend="numpy", "jax", "torch" or "numpyro"'
    )


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
