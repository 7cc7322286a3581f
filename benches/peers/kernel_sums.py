"""K·R by KeOps and by NumPy, and the matrix product that sets the pace."""

import numpy as np
from pykeops.numpy import LazyTensor

from contender import Contender

# NumPy works in bands of rows, so that K never takes more than this many numbers.
BAND_NUMBERS = 2**24


def contenders(inputs, given):
    points, values, rate = inputs["points"], inputs["values"], np.float32(1.0 / given["bandwidth"])

    def keops():
        x, y = LazyTensor(points[:, None, :]), LazyTensor(points[None, :, :])
        return ((-((x - y) ** 2).sum(-1) * rate).exp() @ values)

    def numpy():
        norms = np.sum(points**2, axis=1)
        band = max(1, BAND_NUMBERS // len(points))
        out = np.empty_like(values)
        for start in range(0, len(points), band):
            own = slice(start, start + band)
            kernel = points[own] @ points.T
            kernel *= 2 * rate
            kernel -= rate * norms[own, None]
            kernel -= rate * norms[None, :]
            np.exp(kernel, out=kernel)
            out[own] = kernel @ values
        return out

    def product():
        # The two products of the same size, in the same bands, and nothing else.
        band = max(1, BAND_NUMBERS // len(points))
        for start in range(0, len(points), band):
            (points[start : start + band] @ points.T) @ values

    # Where KeOps takes many minutes, its time follows from that of fewer points: it grows as N².
    small_enough = len(points) ** 2 * points.shape[1] < 3e11
    return {
        **({"KeOps": Contender(keops, keops)} if small_enough else {}),
        "NumPy, OpenBLAS": Contender(numpy, numpy),
        "the two products alone, OpenBLAS": Contender(product, lambda: None),
    }
