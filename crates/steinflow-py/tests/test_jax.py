"""JAX log densities: pytrees, precision, minibatches, scans, and the swap with BlackJAX."""

import functools

import numpy as np
import pytest
import steinflow
from steinflow import _detect

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
sample = functools.partial(
    steinflow.sample, method="sghmc-stein", warm_up=False, progress=False, backend="jax"
)


def banana(p):
    return -0.5 * (p["x"] ** 2 / 4 + (p["y"] + 0.5 * (p["x"] ** 2 - 4)) ** 2)


def test_a_pytree_density_gives_the_particles_of_the_librarys_own(rng):
    init = rng.standard_normal((50, 2))
    with jax.enable_x64(True):
        ours = sample(banana, {"x": init[:, 0], "y": init[:, 1]}, method="svgd", steps=200)
    theirs = steinflow.sample("banana", init, method="svgd", steps=200)
    assert ours.particles["x"].dtype == np.float64
    assert isinstance(ours.particles["x"], np.ndarray)
    found = np.column_stack([ours.particles["x"], ours.particles["y"]])
    assert np.allclose(found, theirs.particles, atol=1e-8)
    assert ours.diagnostics["step_size"] == theirs.diagnostics["step_size"]


def test_the_default_precision_is_that_of_jax():
    for wide, expected in [(False, np.float32), (True, np.float64)]:
        with jax.enable_x64(wide):
            result = sample(banana, shapes={"x": (), "y": ()}, steps=5)
        assert result.state.dtype == expected
    with jax.enable_x64(False), pytest.raises(TypeError, match="JAX computes in float32"):
        sample(banana, shapes={"x": (), "y": ()}, dtype="float64")


T = jnp.float32


def test_an_attribute_is_not_what_a_global_of_its_name_is():
    assert _detect.backend_of(lambda theta: (np.sum(theta.T, axis=0), theta), None) == "numpy"
    assert _detect.backend_of(lambda theta: (T(0), np.sum(theta)), None) == "jax"


def test_a_density_that_is_no_scalar():
    with pytest.raises(TypeError, match=r"shape \(2,\) for one particle, expected a scalar"):
        sample(lambda x: -0.5 * jnp.square(x), shapes=2)

    with pytest.raises(TypeError, match=r"shape \(1,\) for one particle"):
        sample(lambda x: -0.5 * jnp.sum(x**2, keepdims=True), shapes=2)
    with pytest.raises(TypeError, match=r"shape \(2,\) for one row of the data"):
        sample(
            loglikelihood_fn=lambda x, row: -0.5 * (row - x) ** 2,
            logprior_fn=lambda x: -0.5 * jnp.sum(x**2),
            data=np.zeros((5, 2)),
            shapes=2,
        )


def test_an_exception_comes_with_what_the_function_was_given():
    with pytest.raises(ValueError, match="axis 1 is out of bounds") as caught:
        sample(lambda x: -0.5 * jnp.sum(x**2, axis=1), shapes=2)
    assert "steinflow: your function got the parameters of one particle: theta (2,)" in (
        caught.value.__notes__
    )


def test_a_nan_names_the_particle():
    with pytest.raises(steinflow.SamplingError, match=r"of particle .* is NaN"):
        sample(lambda x: jnp.log(-jnp.sum(x**2)), shapes=2, step_size=0.1)


def test_minibatches_of_rows(rng):
    features = rng.standard_normal((300, 2)).astype(np.float32)
    labels = (rng.random(300) < 1 / (1 + np.exp(-features @ [2.0, -1.0]))).astype(np.float32)

    def loglikelihood(w, row):
        logit = row["x"] @ w
        return row["y"] * logit - jnp.logaddexp(0.0, logit)

    def logprior(w):
        return -0.5 * jnp.sum(w**2) / 100

    run = functools.partial(
        sample,
        loglikelihood_fn=loglikelihood,
        logprior_fn=logprior,
        data={"x": features, "y": labels},
        shapes=2,
        method="svgd",
        steps=400,
        step_size=0.02,
    )
    full, batches = run(), run(batch_size=100)
    assert full.log_density.shape == (100,)
    assert np.allclose(full.particles.mean(0), batches.particles.mean(0), atol=0.25)
    # The last log density is on all rows, whatever the steps looked at.
    logits = batches.particles @ features.T
    value = (labels * logits - np.logaddexp(0, logits)).sum(1) - (batches.particles**2).sum(1) / 200
    assert np.allclose(batches.log_density, value, rtol=1e-4)


def test_velocity_in_a_scan_is_the_run(rng):
    init = rng.standard_normal((30, 2))

    def score(x):
        return -x

    @jax.jit
    def loop(particles):
        def step(x, _):
            return x + 0.1 * steinflow.jax_velocity(x, score(x), method="svgd"), None

        return jax.lax.scan(step, particles, None, length=40)[0]

    with jax.enable_x64(True):
        found = np.asarray(loop(jnp.asarray(init)))
    expected = steinflow.sample("standard-normal", init, method="svgd", steps=40, step_size=0.1)
    assert np.allclose(found, expected.particles, atol=1e-10)


def test_blackjax_svgd_can_be_swapped(rng):
    """The same kernel, bandwidth rule and plain gradient step: the same particles."""
    blackjax = pytest.importorskip("blackjax", reason="BlackJAX is not installed")
    optax = pytest.importorskip("optax", reason="optax is not installed")
    from blackjax.vi.svgd import update_median_heuristic

    init = {"x": rng.standard_normal(50), "y": rng.standard_normal(50)}
    with jax.enable_x64(True):
        init = jax.tree.map(jnp.asarray, init)
        svgd = blackjax.svgd(jax.grad(banana), optax.sgd(0.1))
        state = update_median_heuristic(svgd.init(init, {"length_scale": 1.0}))
        step = jax.jit(svgd.step)
        for _ in range(100):
            state = step(state)
        ours = sample(banana, init, method="svgd", steps=100, step_size=0.1)
    for name in ("x", "y"):
        assert np.allclose(ours.particles[name], state.particles[name], atol=1e-5)
        # Far enough from the start for the agreement to mean something.
        assert np.abs(ours.particles[name] - init[name]).max() > 0.5


def test_a_program_is_compiled_once_and_knows_its_numbers(rng):
    from steinflow.adapters import _compiled

    def density_of(data, power):
        return lambda x: -0.5 * jnp.sum(jnp.abs(x - jnp.mean(data)) ** power)

    init = rng.standard_normal((20, 2)).astype(np.float32)
    run = dict(method="svgd", steps=30, step_size=0.1, backend="jax", diagnose=False)
    data = rng.standard_normal(50).astype(np.float32)
    _compiled._known.clear()
    first = sample(density_of(data, 2.0), init, **run)
    programs = len(_compiled._known)
    again = sample(density_of(data, 2.0), init, **run)
    elsewhere = sample(density_of(data + 3, 2.0), init, **run)
    assert len(_compiled._known) == programs
    assert np.array_equal(first.state, again.state)
    # The same program on other data, and another one whose numbers differ in the last digits.
    assert elsewhere.particles.mean() > first.particles.mean() + 1
    nearly = sample(density_of(data, np.float32(2.000001)), init, **run)
    assert len(_compiled._known) > programs and nearly.steps == 30


def test_particles_that_travel_to_a_gpu_do_so_with_a_word(monkeypatch, rng):
    init = jnp.asarray(rng.standard_normal((5, 2)))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.warns(RuntimeWarning, match="they travel there and back at every step"):
        sampler = steinflow.sampler("svgd", lambda x: -jnp.sum(x**2), step_size=0.1)
        state = sampler.step(sampler.init(init))
    # What comes back is where particles are moved, so that it can be given to the next call.
    assert {device.platform for device in state.particles.devices()} == {"cpu"}
    assert state.particles.committed
    with pytest.warns(RuntimeWarning, match="they travel there and back at every step"):
        steinflow.jax_velocity(init, -init)
    with pytest.warns(RuntimeWarning, match="they travel there and back at every step"):
        sample(lambda x: -jnp.sum(x**2), shapes=2, steps=2)
