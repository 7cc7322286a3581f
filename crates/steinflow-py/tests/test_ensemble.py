"""Ensembles of networks in JAX and PyTorch: fit, predictions, weights in and out."""

import pickle

import numpy as np
import pytest
import steinflow


@pytest.fixture
def clouds(rng):
    """Two classes that a line separates."""
    labels = np.arange(120) % 2
    x = rng.standard_normal((120, 2)) + 2.5 * labels[:, None]
    return x.astype(np.float32), labels


def test_a_jax_network(clouds):
    jax = pytest.importorskip("jax")
    x, y = clouds

    def apply(w, x):
        return jax.nn.tanh(x @ w["hidden"]) @ w["out"] + w["bias"]

    def start(key):
        one, two = jax.random.split(key)
        hidden, out = jax.random.normal(one, (2, 8)), jax.random.normal(two, (8, 2))
        return {"hidden": hidden, "out": out, "bias": jax.numpy.zeros(2)}

    ensemble = steinflow.jax.Ensemble(apply, start, "categorical", particles=10, seed=0)
    batches = [(x[k::3], y[k::3]) for k in range(3)]
    ensemble.fit(batches, epochs=60, rows=len(x), keep_from=50)
    assert ensemble.outputs(x).shape == (100, 120, 2)
    found = ensemble.predict(x)
    assert np.mean(found.mean.argmax(axis=1) == y) > 0.9
    assert np.allclose(found.mean.sum(axis=1), 1)
    # The draws disagree more where there was no data, between the classes.
    far, near = (
        ensemble.predict(np.float32([[6, -6], [-6, 6]])),
        ensemble.predict(np.float32([[4, 4]])),
    )
    assert far.sd.mean() > 2 * near.sd.mean()
    # From a state that was kept, the same steps.
    state = pickle.loads(pickle.dumps(ensemble.state))
    ensemble.step(*batches[0], rows=120)
    first, ensemble.state = ensemble.state.array, state
    ensemble.step(*batches[0], rows=120)
    assert np.array_equal(ensemble.state.array, first)
    with pytest.raises(ValueError, match="rows is not known"):
        ensemble.fit(batches)
    with pytest.raises(ValueError, match="likelihood is 'gauss'"):
        steinflow.jax.Ensemble(apply, start, "gauss")


def test_what_would_go_wrong_without_a_word(rng):
    jax = pytest.importorskip("jax")
    x = rng.standard_normal((20, 2)).astype(np.float32)

    def ensemble(likelihood="normal", **settings):
        start = lambda key: jax.random.normal(key, (2,))  # noqa: E731
        return steinflow.jax.Ensemble(lambda w, x: x @ w, start, likelihood, seed=0, **settings)

    generator = ((x[k::2], x[k::2, 0]) for k in range(2))
    with pytest.raises(ValueError, match="no batches in epoch 1: give a list"):
        ensemble().fit(generator, epochs=2, rows=20)
    for sd in ("prior_sd", "noise_sd"):
        with pytest.raises(ValueError, match=f"{sd} is 0: give a number above zero"):
            ensemble(**{sd: 0})
    mean = ensemble(lambda outputs, y: -0.5 * ((outputs - y) ** 2).mean())
    with pytest.raises(ValueError, match=r"shape \(\) for 20 rows.*neither a sum nor a mean"):
        mean.step(x, x[:, 0], rows=20)


def test_several_outputs_of_a_row_belong_together():
    pytest.importorskip("jax")
    start = np.eye(2, dtype=np.float32)
    ensemble = steinflow.jax.Ensemble(lambda w, x: x * w, start, "normal", noise_sd=0.5, seed=0)
    of_rows = ensemble._by_row("normal", 0.5)(np.zeros((3, 2)), np.ones((3, 2)))
    assert np.allclose(of_rows, [2 * (-0.5 / 0.25 - np.log(0.5))] * 3)
    x = np.ones((4, 2), np.float32)
    ensemble.step(x, x, rows=4)
    assert ensemble.outputs(x).shape == (2, 4, 2)


def test_a_torch_module(clouds):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    x, y = torch.from_numpy(clouds[0]), torch.from_numpy(clouds[1])
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=40, shuffle=True
    )
    torch.manual_seed(0)
    ensemble = steinflow.torch.Ensemble(module, "categorical", particles=8, seed=0)
    ensemble.fit(loader, epochs=60)
    found = ensemble.predict(x)
    assert np.mean(found.mean.argmax(axis=1) == clouds[1]) > 0.9
    # Every set of weights is one of the module's own.
    states = ensemble.state_dicts()
    assert len(states) == 8
    module.load_state_dict(states[3])
    assert np.allclose(module(x).detach().numpy(), ensemble.outputs(x)[3], atol=1e-5)
    ensemble.load_state_dicts(states[2:5])
    assert len(ensemble.outputs(x)) == 3
    assert np.allclose(ensemble.outputs(x)[1], module(x).detach().numpy(), atol=1e-5)
