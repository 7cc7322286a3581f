"""PyTorch log densities."""

import functools

import numpy as np
import pytest
import steinflow

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
sample = functools.partial(steinflow.sample, method="sghmc-stein", warm_up=False, progress=False)


def banana(p):
    return -0.5 * (p["x"] ** 2 / 4 + (p["y"] + 0.5 * (p["x"] ** 2 - 4)) ** 2)


def test_a_density_gives_the_particles_of_the_librarys_own(rng):
    init = rng.standard_normal((50, 2))
    tensors = {"x": torch.from_numpy(init[:, 0]), "y": torch.from_numpy(init[:, 1])}
    ours = sample(banana, tensors, backend="torch", dtype="float64", method="svgd", steps=100)
    theirs = sample("banana", init, method="svgd", steps=100)
    found = np.column_stack([ours.particles["x"], ours.particles["y"]])
    assert np.allclose(found, theirs.particles, atol=1e-8)


def test_the_default_precision_is_that_of_torch():
    result = sample(lambda x: -0.5 * torch.sum(x**2), shapes=2, steps=5)
    assert result.state.dtype == np.float32


def test_a_density_that_is_no_scalar():
    with pytest.raises(TypeError, match="expected a scalar tensor"):
        sample(lambda x: -0.5 * torch.square(x), shapes=2)


def test_minibatches_of_rows(rng):
    data = torch.from_numpy(rng.normal(1.5, 1.0, 200).astype(np.float32))
    result = sample(
        loglikelihood_fn=lambda mean, row: -0.5 * torch.sum((row - mean) ** 2),
        logprior_fn=lambda mean: -0.5 * torch.sum(mean**2) / 100,
        data=data,
        batch_size=50,
        shapes=1,
        method="svgd",
        steps=1000,
        step_size="linear:2e-3:2e-5",
    )
    assert abs(result.particles.mean() - data.numpy().mean()) < 0.1


def test_tensors_that_are_part_of_a_graph(rng):
    init = torch.from_numpy(rng.standard_normal((10, 2))).requires_grad_()
    result = sample(lambda x: -0.5 * torch.sum(x**2), init, steps=2)
    assert steinflow.velocity(init, -init).shape == (10, 2)

    def function(theta):
        theta = torch.from_numpy(theta).requires_grad_()
        return -0.5 * torch.sum(theta**2, dim=1), -theta

    same = sample(function, init, steps=2, backend="numpy", dtype="float32")
    assert np.allclose(result.state, same.state, atol=1e-5)


def test_a_default_precision_that_particles_cannot_have():
    torch.set_default_dtype(torch.bfloat16)
    try:
        with pytest.raises(TypeError, match='bfloat16 by default: pass dtype="float32"'):
            sample(lambda x: -0.5 * torch.sum(x**2), shapes=2)
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_elsewhere_is_told_how_to_come_here():
    """PyTorch has a device without memory that every machine has."""
    there = torch.ones(2, device="meta")
    way_out = r"tensors that are elsewhere.*x\.cpu\(\) and module\.cpu\(\)"
    with pytest.raises(TypeError, match=way_out):
        sample(lambda x: -torch.sum((x - there) ** 2), shapes=2)
    with pytest.raises(TypeError, match=r"an array is on meta.*x\.cpu\(\)"):
        steinflow.velocity(there[None], there[None])
    module = torch.nn.Linear(2, 1)
    with pytest.raises(TypeError, match=r"an array is on meta.*module\.cpu\(\)"):
        steinflow.torch.Ensemble(module.to("meta"), "normal")
    ensemble = steinflow.torch.Ensemble(torch.nn.Linear(2, 1), "normal", particles=3)
    with pytest.raises(TypeError, match=way_out):
        ensemble.step(torch.ones(4, 2, device="meta"), torch.ones(4, device="meta"), rows=4)
