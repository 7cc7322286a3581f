"""What the tests share."""

import os

# Figures are drawn to memory, JAX says nothing about devices it does not find, and small problems on
# few cores are quicker with one thread for each library.
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def standard_normal(theta):
    """log density and gradient of N(0, I), all particles at once."""
    return -0.5 * np.sum(theta**2, axis=1), -theta
