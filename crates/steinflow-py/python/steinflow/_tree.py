"""Pytrees: nested dictionaries, lists and tuples of arrays, and the rows of numbers they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Flatten = Callable[[Any], tuple[list[tuple[str, Any]], Any]]


def flatten(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The leaves with their names, and the tree with the leaves' places where they were.

    Dictionaries are walked in the order of their keys, as JAX does.

    >>> leaves, skeleton = flatten({"b": 1, "a": (2, 3)})
    >>> leaves
    [('a.0', 2), ('a.1', 3), ('b', 1)]
    >>> rebuild(skeleton, [5, 6, 7])
    {'a': (5, 6), 'b': 7}
    """
    leaves: list[tuple[str, Any]] = []

    def walk(tree: Any, path: str) -> Any:
        def below(name: Any) -> str:
            return f"{path}.{name}" if path else str(name)

        if isinstance(tree, dict):
            return {key: walk(tree[key], below(key)) for key in sorted(tree)}
        if isinstance(tree, (list, tuple)):
            names = getattr(tree, "_fields", range(len(tree)))
            built = [walk(child, below(name)) for name, child in zip(names, tree, strict=True)]
            return type(tree)(*built) if hasattr(tree, "_fields") else type(tree)(built)
        leaves.append((path, tree))
        return len(leaves) - 1

    skeleton = walk(tree, "")
    return leaves, skeleton


def rebuild(skeleton: Any, leaves: Sequence[Any]) -> Any:
    """Puts leaves back into the tree."""
    if isinstance(skeleton, int):
        return leaves[skeleton]
    if type(skeleton) is dict:
        return {key: rebuild(child, leaves) for key, child in skeleton.items()}
    if isinstance(skeleton, (list, tuple)):
        built = [rebuild(child, leaves) for child in skeleton]
        is_named = hasattr(skeleton, "_fields")
        return type(skeleton)(*built) if is_named else type(skeleton)(built)
    # A node that only JAX knows.
    from jax.tree_util import tree_map

    return tree_map(lambda place: leaves[place], skeleton)


@dataclass(frozen=True)
class Layout:
    """How a row of numbers is cut into the leaves of a pytree."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    skeleton: Any
    """The tree with the leaves' places where they were."""

    @staticmethod
    def flat(dim: int) -> Layout:
        """One array, which the row itself is."""
        return Layout(("",), ((dim,),), 0)

    @staticmethod
    def of_names(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> Layout:
        """A dictionary of arrays."""
        places = {name: place for place, name in enumerate(names)}
        return Layout(tuple(names), tuple(shapes), places)

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
        return rebuild(self.skeleton, self.leaves(flat))

    def named(self, flat: Any) -> dict[str, Any]:
        """Cuts the last axis into leaves, by name.

        >>> list(Layout.of_names(["mu", "theta"], [(), (2,)]).named(np.zeros((5, 3))))
        ['mu', 'theta']
        """
        names = [name or "theta" for name in self.names]
        return dict(zip(names, self.leaves(flat), strict=True))

    def coordinate_names(self) -> tuple[str, ...]:
        """A name for every number of a row.

        >>> Layout.of_names(["mu", "w"], [(), (2, 1)]).coordinate_names()
        ('mu', 'w[0, 0]', 'w[1, 0]')
        """
        leaves = zip(self.names, self.shapes, strict=True)
        numbers = (
            (name or "theta", index) for name, shape in leaves for index in np.ndindex(shape)
        )
        return tuple(name + (str(list(index)) if index else "") for name, index in numbers)


def layout_of_shapes(shapes: Any) -> Layout:
    """The layout of `shapes=`: a number of coordinates, or a pytree of shapes.

    >>> layout_of_shapes({"mu": (), "theta": (8,)}).dim
    9
    >>> layout_of_shapes({"layers": [{"w": (3, 2), "b": 3}, {"w": (1, 3), "b": 1}]}).names
    ('layers.0.b', 'layers.0.w', 'layers.1.b', 'layers.1.w')
    """
    if _is_length(shapes):
        return Layout.flat(int(shapes))
    names: list[str] = []
    sizes: list[tuple[int, ...]] = []

    def walk(node: Any, path: str) -> Any:
        if _is_length(node) or (isinstance(node, tuple) and all(_is_length(n) for n in node)):
            names.append(path)
            sizes.append(node if isinstance(node, tuple) else (node,))
            return len(sizes) - 1
        children = node.items() if isinstance(node, dict) else enumerate(node)
        below = {key: f"{path}.{key}" if path else str(key) for key, _ in children}
        found = {key: walk(node[key], below[key]) for key in sorted(below)}
        return found if isinstance(node, dict) else list(found.values())

    if isinstance(shapes, dict) and shapes:
        try:
            skeleton = walk(shapes, "")
            return Layout(tuple(names), tuple(sizes), skeleton)
        except TypeError:  # What is neither a shape nor holds any.
            pass
    raise ValueError(
        f"shapes is {shapes!r}: give the number of coordinates, or a dictionary from names to shapes "
        'such as {"mu": (), "theta": (8,)}'
    )


def _is_length(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value > 0


def numbers(array: Any) -> np.ndarray:
    """The array as NumPy sees it: in its own memory. One that is on a GPU is refused."""
    if not _is_on_the_cpu(array):
        device = getattr(array, "device", "a GPU")
        raise TypeError(
            f"an array is on {device}, and steinflow moves particles on the CPU here: pass x.cpu() or "
            'module.cpu() in PyTorch, in JAX jax.device_put(x, jax.devices("cpu")[0]); models that ship '
            'run on a GPU with device="cuda"'
        )
    # A tensor that is part of a graph gives its numbers only without it.
    return np.asarray(array.detach() if hasattr(array, "detach") else array)


def _is_on_the_cpu(array: Any) -> bool:
    """By the name of its device, or else by DLPack, which all of these libraries speak."""
    device = getattr(array, "device", None)
    place = getattr(device, "type", None) or getattr(device, "platform", None)
    if isinstance(place, str):
        return place == "cpu"
    if not hasattr(array, "__dlpack_device__"):
        return True
    kind, _ = array.__dlpack_device__()
    # Memory of the host: its own, or pinned for CUDA or ROCm.
    return int(kind) in (1, 3, 11)


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
    """Particles, one a row, from a pytree whose leaves have a leading axis of particles.

    The only array of a tree is read where it is, so that what is to outlive the call has to be copied.
    """
    leaves, skeleton = flatten(_as_array(tree))
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
        tuple(name for name, _ in arrays), tuple(array.shape[1:] for _, array in arrays), skeleton
    )
    return joined([array.reshape(count, -1) for _, array in arrays]), layout


def joined(leaves: Sequence[np.ndarray]) -> np.ndarray:
    """Rows that stand beside each other as one array: a single one is not copied."""
    return np.require(leaves[0], None, "A") if len(leaves) == 1 else np.concatenate(leaves, axis=1)


def check_start(start: np.ndarray, is_deterministic: bool) -> None:
    """Refuses particles that cannot move."""
    bad = np.flatnonzero(~np.isfinite(start).all(axis=1))
    if len(bad):
        raise ValueError(f"init has a number that is not finite at particle {bad[0]}")
    if is_deterministic and len(start) > 1 and (start == start[0]).all():
        raise ValueError(
            f"init holds {len(start)} identical particles, which would move as one: spread them, "
            "such as init + 0.1 * rng.standard_normal(init.shape)"
        )
