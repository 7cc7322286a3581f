"""Pytrees: nested dictionaries, lists and tuples of arrays, and the rows of numbers they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Flatten = Callable[[Any], tuple[list[tuple[str, Any]], Callable[[Sequence[Any]], Any]]]


def flatten(tree: Any) -> tuple[list[tuple[str, Any]], Callable[[Sequence[Any]], Any]]:
    """The leaves with their names, and the function that puts leaves back into the tree.

    Dictionaries are walked in the order of their keys, as JAX does.

    >>> leaves, rebuild = flatten({"b": 1, "a": (2, 3)})
    >>> leaves
    [('a.0', 2), ('a.1', 3), ('b', 1)]
    >>> rebuild([5, 6, 7])
    {'a': (5, 6), 'b': 7}
    """
    if isinstance(tree, dict):
        keys = sorted(tree)
        children = [(str(key), tree[key]) for key in keys]
    elif isinstance(tree, (list, tuple)):
        own_names = getattr(tree, "_fields", range(len(tree)))
        children = [(str(name), child) for name, child in zip(own_names, tree, strict=True)]
    else:
        return [("", tree)], lambda leaves: leaves[0]
    leaves: list[tuple[str, Any]] = []
    parts: list[tuple[int, Callable[[Sequence[Any]], Any]]] = []
    for name, child in children:
        own, rebuild = flatten(child)
        leaves += [(f"{name}.{path}" if path else name, leaf) for path, leaf in own]
        parts.append((len(own), rebuild))

    def rebuild_all(values: Sequence[Any]) -> Any:
        rest, built = list(values), []
        for count, rebuild in parts:
            built.append(rebuild(rest[:count]))
            rest = rest[count:]
        if isinstance(tree, dict):
            return dict(zip(keys, built, strict=True))
        if hasattr(tree, "_fields"):
            return type(tree)(*built)
        return type(tree)(built)

    return leaves, rebuild_all


@dataclass(frozen=True)
class Layout:
    """How a row of numbers is cut into the leaves of a pytree."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    rebuild: Callable[[Sequence[Any]], Any]

    @staticmethod
    def flat(dim: int) -> Layout:
        """One array, which the row itself is."""
        return Layout(("",), ((dim,),), lambda leaves: leaves[0])

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes]

    @property
    def dim(self) -> int:
        return sum(self.sizes)

    def leaves(self, flat: Any) -> list[Any]:
        """Cuts the last axis into leaves; works for any kind of array that slices and reshapes."""
        leaves, start = [], 0
        for size, shape in zip(self.sizes, self.shapes, strict=True):
            part = flat[..., start : start + size]
            leaves.append(part.reshape((*flat.shape[:-1], *shape)))
            start += size
        return leaves

    def split(self, flat: Any) -> Any:
        """Cuts the last axis into the pytree."""
        return self.rebuild(self.leaves(flat))

    def named(self, flat: Any) -> dict[str, Any]:
        """Cuts the last axis into leaves, by name.

        >>> list(Layout(("mu", "theta"), ((), (2,)), tuple).named(np.zeros((5, 3))))
        ['mu', 'theta']
        """
        names = [name or "theta" for name in self.names]
        return dict(zip(names, self.leaves(flat), strict=True))


def layout_of_shapes(shapes: Any) -> Layout:
    """The layout of `shapes=`: a number of coordinates, or names with shapes.

    >>> layout_of_shapes({"mu": (), "theta": (8,)}).dim
    9
    """
    if _is_length(shapes):
        return Layout.flat(int(shapes))
    if isinstance(shapes, dict) and all(
        _is_length(shape) or (isinstance(shape, tuple) and all(_is_length(n) for n in shape))
        for shape in shapes.values()
    ):
        names = tuple(sorted(shapes))
        sizes = tuple(s if isinstance(s, tuple) else (s,) for s in (shapes[name] for name in names))
        return Layout(names, sizes, lambda leaves: dict(zip(names, leaves, strict=True)))
    raise ValueError(
        f"shapes is {shapes!r}: give the number of coordinates, or a dictionary from names to shapes "
        'such as {"mu": (), "theta": (8,)}'
    )


def _is_length(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value > 0


def numbers(array: Any) -> np.ndarray:
    """The array as NumPy sees it: in its own memory if it is on the CPU."""
    # A tensor that is part of a graph gives its numbers only without it.
    return np.asarray(array.detach() if hasattr(array, "detach") else array)


def has_masked(array: Any) -> bool:
    """Whether entries are masked, which NumPy would take for the numbers under the mask.

    >>> has_masked(np.ma.array([1.0, 2.0], mask=[False, True])), has_masked(np.ma.array([1.0]))
    (True, False)
    """
    return isinstance(array, np.ma.MaskedArray) and bool(np.ma.is_masked(array))


def rows_of_data(leaves: Sequence[Any]) -> int:
    """The number of rows that all arrays of the data have."""
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(counts) != 1:
        raise ValueError(f"the arrays of data disagree about the number of rows: {sorted(counts)}")
    count = counts.pop()
    if count == 0:
        raise ValueError("data has no rows: give arrays with a leading axis of rows")
    return count


def _as_array(tree: Any) -> Any:
    """Rows that are written as lists of numbers, as an array; anything else as it is."""
    rows = tree if isinstance(tree, (list, tuple)) else ()
    plain = [isinstance(row, (list, tuple)) and all(np.isscalar(x) for x in row) for row in rows]
    if not plain or not all(plain):
        return tree
    if len({len(row) for row in rows}) > 1:
        raise ValueError("init has rows of different lengths: give the same for each particle")
    return np.asarray(tree)


def particles_of(tree: Any, flatten: Flatten = flatten) -> tuple[np.ndarray, Layout]:
    """Particles, one a row, from a pytree whose leaves have a leading axis of particles."""
    leaves, rebuild = flatten(_as_array(tree))
    if any(has_masked(leaf) for _, leaf in leaves):
        raise ValueError("init has masked entries, which have no value: fill them")
    arrays = [(name, numbers(leaf)) for name, leaf in leaves]
    if not arrays:
        raise ValueError("init holds no arrays: give one row for each particle")
    for name, array in arrays:
        what = f"init[{name!r}]" if name else "init"
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{what} has dtype {array.dtype}: give an array of numbers")
        if array.ndim == 0 or (not name and array.ndim == 1):
            raise ValueError(
                f"{what} has shape {array.shape}, which is a single particle: give one row for each "
                "particle, such as rng.standard_normal((100, ...))"
            )
    counts = {array.shape[0] for _, array in arrays}
    if len(counts) > 1:
        found = ", ".join(f"{name}: {array.shape[0]}" for name, array in arrays)
        raise ValueError(f"the arrays of init disagree about the number of particles ({found})")
    count = counts.pop()
    if any(array.size == 0 for _, array in arrays):
        shapes = " and ".join(str(array.shape) for _, array in arrays)
        raise ValueError(f"init has shape {shapes}: there is nothing in it to move")
    layout = Layout(
        tuple(name for name, _ in arrays), tuple(array.shape[1:] for _, array in arrays), rebuild
    )
    return np.concatenate([array.reshape(count, -1) for _, array in arrays], axis=1), layout
