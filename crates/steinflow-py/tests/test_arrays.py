"""Arrays cross without copies where their layout allows it, and rightly where it does not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import steinflow
from conftest import standard_normal
from steinflow import _low_level, _tree
from steinflow.adapters import jax as jax_adapter
from steinflow.adapters import torch as torch_adapter

PRECISIONS = ["float32", "float64"]
NETWORKS = Path(__file__).parents[1] / "benches" / "networks.py"


def seen_particles(dtype, shape, steps=5):
    """The arrays that a function was given in a run, and copies made at the time."""
    kept = []

    def function(theta):
        kept.append((theta, theta.copy()))
        return standard_normal(theta)

    init = np.random.default_rng(0).standard_normal(shape)
    steinflow.sample(
        function,
        init,
        method="sghmc-stein",
        dtype=dtype,
        steps=steps,
        step_size=0.1,
        progress=False,
        check_gradient=False,  # looks at other points than the particles, and so does the verdict
        diagnose=False,
    )
    return kept


def test_particles_are_read_where_they_are(rng):
    """The only array of a tree; and `sample` keeps a copy of what the user may write to."""
    rows = rng.standard_normal((6, 4))
    assert np.shares_memory(_tree.particles_of(rows)[0], rows)
    assert np.shares_memory(_tree.particles_of({"w": rows.reshape(6, 2, 2)})[0], rows)
    unaligned = np.frombuffer(b"\0" + rows.tobytes(), "u1")[1:].view("f8").reshape(6, 4)
    assert not unaligned.flags.aligned
    assert np.array_equal(steinflow.sampler("svgd", step_size=0.1).init(unaligned).particles, rows)
    run = dict(method="svgd", step_size=0.1, progress=False, diagnose=False)
    given = rows.copy()
    result = steinflow.sample(standard_normal, given, steps=5, **run)
    given[:] = 7.0
    expected = steinflow.sample(standard_normal, rows, steps=10, **run)
    assert np.array_equal(result.resume(steps=5, progress=False).state, expected.state)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such account of memory")
@pytest.mark.parametrize("method, blocks", [("svgd", 1), ("sghmc-stein", 2), ("sgnht-stein", 3)])
def test_a_large_network_takes_few_copies(method, blocks):
    """Scores and the sampler's own, and states before and after; beginning takes a copy more."""
    command = [sys.executable, NETWORKS, "--peak-of", method]
    command += ["--particles", "10", "--weights", "1000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 2 < float(done.stdout) < 3 + 2 * blocks


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("shape", [(7, 3), (100, 10), (2, 1)])
def test_particles_are_aligned_for_jax_and_the_functions_to_keep(dtype, shape):
    kept = seen_particles(dtype, shape)
    for theta, then in kept:
        assert theta.ctypes.data % 64 == 0
        assert theta.flags.c_contiguous and theta.dtype == dtype and theta.shape == shape
        assert np.array_equal(theta, then)
    assert not np.shares_memory(kept[0][0], kept[-1][0])


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_jax_reads_particles_in_place_and_its_answers_are_read_in_place(dtype):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    theta = seen_particles(dtype, (7, 3))[0][0]
    with jax.enable_x64(dtype == "float64"):
        assert jax.device_put(theta).unsafe_buffer_pointer() == theta.ctypes.data
        layout = _tree.Layout.flat(3)
        target = jax_adapter.target(lambda x: -0.5 * (x**2).sum(), layout, np.dtype(dtype))
        value, gradient = target.function(theta, None, 1.0)
        points = jax.numpy.asarray(theta)
    assert _low_level._rows(points, "points").ctypes.data == points.unsafe_buffer_pointer()
    for array in (value, gradient):
        assert type(array) is np.ndarray and array.dtype == dtype
        assert not array.flags.owndata and array.flags.c_contiguous


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_torch_reads_particles_in_place_and_its_answers_are_read_in_place(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    seen = []

    def function(x):
        seen.append(torch._C._functorch.get_unwrapped(torch._C._functorch.get_unwrapped(x)))
        return -0.5 * (x**2).sum()

    theta = seen_particles(dtype, (7, 3))[0][0]
    target = torch_adapter.target(function, _tree.Layout.flat(3), np.dtype(dtype))
    value, gradient = target.function(theta, None, 1.0)
    assert seen[0].data_ptr() == theta.ctypes.data
    points = torch.from_numpy(theta)
    assert _low_level._rows(points, "points").ctypes.data == points.data_ptr()
    for array in (value, gradient):
        assert type(array) is np.ndarray and array.dtype == dtype
        assert not array.flags.owndata and array.flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_gradient_in_either_order_of_memory(order):
    """A function that stacks columns returns its gradient in column order."""
    scale = np.array([1.0, 10.0, 100.0])

    def function(theta):
        gradient = np.array(-theta / scale, order=order)
        return 0.5 * np.sum(theta * gradient, axis=1), gradient

    init = np.random.default_rng(0).standard_normal((5, 3))
    langevin = steinflow.Dynamics(diffusion={"theta": 1.0})
    settings = dict(method="drift", dynamics=langevin, steps=1, step_size=0.1, progress=False)
    result = steinflow.sample(function, init, **settings)
    assert np.allclose(result.particles, init - 0.1 * init / scale)


# Peak memory while arrays of 64 MB are read; in a process of its own, whose peak is its own.
PEAK = """
import resource, sys
import numpy as np
import steinflow

MB = 2**20
x, y = np.ones((2, 2, 4 * MB), {dtype!r})
x[1] = 2
small = np.ones((2, 1), {dtype!r})
steinflow.kernel_sums(small, small), steinflow.bandwidth(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{call}
kilobyte = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * kilobyte / x.nbytes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read as Unix has it")
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    "call, arrays",
    [
        # Only what is returned is new.
        ("steinflow.kernel_sums(x, small)", 0),
        ("steinflow.kernel_sums(x, y)", 1),
        ("steinflow.bandwidth(x)", 0),
    ],
)
def test_large_arrays_are_read_in_place(dtype, call, arrays):
    code = PEAK.format(dtype=dtype, call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < arrays + 0.5


def test_arrays_on_a_gpu_are_refused_with_a_way_out(rng):
    from types import SimpleNamespace

    for device in (SimpleNamespace(type="cuda"), SimpleNamespace(platform="gpu")):
        tensor = SimpleNamespace(device=device)
        with pytest.raises(TypeError, match=r"moves particles on the CPU.*x\.cpu\(\)"):
            steinflow.velocity(tensor, tensor)
    # CuPy's device has no such name, but it says to DLPack where it is. Pinned memory is the host's.
    cuda = SimpleNamespace(device=0, __dlpack_device__=lambda: (2, 0))
    with pytest.raises(TypeError, match=r"moves particles on the CPU.*x\.cpu\(\)"):
        steinflow.velocity(cuda, cuda)
    assert _tree._is_on_the_cpu(SimpleNamespace(__dlpack_device__=lambda: (3, 0)))
    # NumPy's own arrays have a device too.
    assert steinflow.velocity(rng.standard_normal((3, 2)), np.zeros((3, 2))).shape == (3, 2)
