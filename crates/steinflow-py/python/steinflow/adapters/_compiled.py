"""Programs of JAX that are compiled once, however often a function is given.

Every call of `sample` wraps the user's function anew, and JAX would compile it anew, for seconds where
it is large. Tracing is quick: a function that traces to a program that is known runs that one, with
the arrays that it has closed over passed in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MOST = 32
"""Programs that are kept; the one that was used longest ago goes first."""

_known: OrderedDict[Any, Callable[..., Any]] = OrderedDict()


def compiled(jax: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit(fn)` for a function that returns a tuple of arrays."""
    ready: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def call(*arguments: Any) -> Any:
        leaves, structure = jax.tree_util.tree_flatten(arguments)
        shapes = (
            structure,
            *((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves),
        )
        if shapes not in ready:
            traced = jax.make_jaxpr(fn)(*arguments)
            ready[shapes] = _program(jax, traced), list(traced.consts)
        program, constants = ready[shapes]
        return tuple(program(constants, leaves))

    return call


def _program(jax: Any, traced: Any) -> Callable[..., Any]:
    # What is not in the text exactly: numbers, and the addresses of functions, which live as long as
    # the program is kept.
    exact = tuple(_numbers(traced.jaxpr))
    key = (
        str(traced.jaxpr),
        exact,
        jax.config.jax_enable_x64,
        jax.config.jax_default_matmul_precision,
    )
    if key in _known:
        _known.move_to_end(key)
        return _known[key]
    evaluate = jax.core.eval_jaxpr
    program = jax.jit(lambda constants, leaves: evaluate(traced.jaxpr, constants, *leaves))
    _known[key] = program
    if len(_known) > MOST:
        _known.popitem(last=False)
    return program


def _numbers(thing: Any) -> Iterator[bytes]:
    """The numbers that stand in a program and in those that it calls, bit by bit."""
    if isinstance(thing, (tuple, list)):
        for part in thing:
            yield from _numbers(part)
    elif hasattr(thing, "consts"):
        yield from (np.asarray(constant).tobytes() for constant in thing.consts)
        yield from _numbers(thing.jaxpr)
    elif hasattr(thing, "eqns"):
        for equation in thing.eqns:
            for variable in equation.invars:
                if hasattr(variable, "val"):
                    yield np.asarray(variable.val).tobytes()
            yield from _numbers(tuple(equation.params.values()))
