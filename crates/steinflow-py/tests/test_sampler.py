"""A loop of one's own takes the steps of `sample`, to the last bit."""

import copy
import pickle
import tomllib
from collections import namedtuple

import numpy as np
import pytest
import steinflow

WITH_A_LOOP_OF_THEIR_OWN = ("auto", "hmc", "mala", "ghmc")
STEPS = 7


def curved(theta):
    """A log density whose score is not linear, with its gradient."""
    return -0.25 * np.sum(theta**4 + theta**2, axis=1), -(theta**3) - 0.5 * theta


def whole(init, method, **settings):
    given = {"steps": STEPS, "step_size": 0.05, "seed": 3, **settings}
    if "phases" in settings:
        del given["steps"], given["step_size"]
    return steinflow.sample(curved, init, method=method, progress=False, diagnose=False, **given)


def sampler_of(method, *function, **settings):
    given = {"steps": STEPS, "step_size": 0.05, **settings}
    if "phases" in settings:
        del given["steps"], given["step_size"]
    return steinflow.sampler(method, *function, **given)


def agrees(init, method, **settings):
    """Takes the steps by hand, and compares them with those of `sample`."""
    expected = whole(init, method, **settings)
    sampler = sampler_of(method, **settings)
    state = sampler.init(init, seed=3)
    for _ in range(STEPS):
        state = sampler.step(state, *curved(state.particles))
    assert state.step == STEPS
    assert np.array_equal(state.particles, expected.particles)
    finished = sampler.finish(state, *curved(state.particles))
    assert np.array_equal(finished.array, expected.state)


def stepped():
    return [m.name for m in steinflow.methods() if m.name not in WITH_A_LOOP_OF_THEIR_OWN]


@pytest.mark.parametrize("method", stepped())
def test_every_method_takes_the_steps_of_sample(method, rng):
    if method.endswith("lawgd"):
        with pytest.raises(ValueError, match="has a loop of its own"):
            sampler_of(method)
        return
    agrees(rng.standard_normal((12, 3)), method)


@pytest.mark.parametrize(
    "method, settings",
    [
        ("svgd", {"integrator": "adam"}),
        ("svgd", {"integrator": "adagrad", "precondition": "rms"}),
        ("sghmc", {"integrator": "euler", "resample_every": 3}),
        ("sghmc", {"precondition": "rms", "precondition_hold": 4}),
        ("sghmc-stein", {"step_size": "cosine:0.1:0.01", "resample_time": 0.1}),
        ("sghmc-stein", {"phases": [("euler", 3, 0.1), ("splitting", 4, "linear:0.1:0.02")]}),
        ("sghmc-stein", {"integrator": "midpoint-splitting", "kernel_on": "theta"}),
        ("sghmc-product", {"adapt": 3, "bandwidth": "median"}),
        ("third-order-stein", {"precondition": "rms", "resample_every": 2}),
    ],
)
def test_schedules_scales_and_fresh_momenta(method, settings, rng):
    agrees(rng.standard_normal((12, 3)), method, **settings)


def kernel_of(result):
    """What the kernel sees: of a target that is known to describe data, the parameters alone."""
    found = tomllib.loads(result.config).get("kernel-on")
    return {} if found is None else {"kernel_on": found}


@pytest.mark.parametrize("method", [m for m in stepped() if not m.endswith("lawgd")])
def test_minibatches_are_those_of_sample(method, rng):
    x, y = rng.standard_normal((90, 3)), rng.standard_normal(90)

    def likelihood(theta, rows):
        left = (rows["y"] - theta @ rows["x"].T) / 25
        return -12.5 * np.sum(left**2, axis=1), left @ rows["x"]

    def prior(theta):
        return -0.5 * np.sum(theta**2, axis=1), -theta

    def posterior(theta, rows, scale):
        (value, slope), (first, pull) = likelihood(theta, rows), prior(theta)
        return first + scale * value, pull + scale * slope

    init = rng.standard_normal((12, 3))
    expected = steinflow.sample(
        None,
        init,
        loglikelihood_fn=likelihood,
        logprior_fn=prior,
        data={"x": x, "y": y},
        backend="numpy",
        method=method,
        batch_size=20,
        steps=STEPS,
        step_size=0.02,
        seed=3,
        progress=False,
        diagnose=False,
    )
    sampler = sampler_of(method, posterior, backend="numpy", step_size=0.02, **kernel_of(expected))
    state = sampler.init(init, seed=3)

    def batch():
        rows, scale = state.minibatch(len(x), 20)
        return {"x": x[rows], "y": y[rows]}, scale

    for _ in range(STEPS):
        state = sampler.step(state, *batch())
    assert np.array_equal(sampler.finish(state, *batch()).array, expected.state)


def test_a_minibatch_is_of_a_state(rng):
    sampler = steinflow.sampler("svgd", step_size=0.1)
    state = sampler.init(rng.standard_normal((5, 2)), seed=7)
    rows, scale = state.minibatch(100, 30)
    assert len(set(rows)) == 30 and rows.min() >= 0 and rows.max() < 100 and scale == 100 / 30
    assert np.array_equal(pickle.loads(pickle.dumps(state)).minibatch(100, 30)[0], rows)
    after = sampler.step(state, np.zeros(5), np.zeros((5, 2)))
    assert not np.array_equal(after.minibatch(100, 30)[0], rows)
    for size in (0, 101):
        with pytest.raises(ValueError, match=f"batch_size is {size}: give 1 to 100"):
            state.minibatch(100, size)


@pytest.mark.parametrize("method", ["svgd", "sghmc-stein", "sgnht"])
def test_jax_takes_the_steps_of_sample(method, rng):
    jax = pytest.importorskip("jax")
    # Whatever an example that other tests import has set for the process.
    with jax.enable_x64(False):
        bits_agree(method, rng, jax.numpy.asarray, jax.vmap, jax.numpy.square, "jax")


@pytest.mark.parametrize("method", ["svgd", "sghmc-stein", "sgnht"])
def test_torch_takes_the_steps_of_sample(method, rng):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    bits_agree(method, rng, torch.from_numpy, torch.func.vmap, torch.square, "torch")


def bits_agree(method, rng, array, vmap, square, backend):
    """A function alone, and one of minibatches of rows: by hand and by `sample`."""

    def quartic(p):
        return -0.25 * (square(square(p["a"])).sum() + square(p["b"] - 1).sum())

    init = {
        "a": array(rng.standard_normal((12, 3)).astype(np.float32)),
        "b": array(rng.standard_normal(12).astype(np.float32)),
    }
    how = dict(method=method, steps=STEPS, step_size=0.02, seed=3, progress=False, diagnose=False)
    expected = steinflow.sample(quartic, init, backend=backend, **how)
    sampler = sampler_of(method, quartic, backend=backend, step_size=0.02)
    state = sampler.init(init, seed=3)
    for _ in range(STEPS):
        state = sampler.step(state)
    assert np.array_equal(sampler.finish(state).array, expected.state)
    x = array(rng.standard_normal((60, 3)).astype(np.float32))

    def likelihood(p, row):
        return -0.5 * square(row @ p["a"] - p["b"])

    def prior(p):
        return -0.5 * (square(p["a"]).sum() + square(p["b"]))

    def posterior(p, batch, scale):
        return prior(p) + scale * vmap(lambda row: likelihood(p, row))(batch).sum()

    how |= dict(loglikelihood_fn=likelihood, logprior_fn=prior, data=x, batch_size=16)
    expected = steinflow.sample(None, init, backend=backend, **how)
    sampler = sampler_of(method, posterior, backend=backend, step_size=0.02, **kernel_of(expected))
    state = sampler.init(init, seed=3)
    for last in [False] * STEPS + [True]:
        rows, scale = state.minibatch(60, 16)
        move = sampler.finish if last else sampler.step
        state = move(state, x[rows], scale)
    assert np.array_equal(state.array, expected.state)


def test_a_state_is_a_value(rng):
    init = rng.standard_normal((10, 2))
    settings = {"precondition": "rms", "resample_time": 0.2, "step_size": 0.1}
    sampler = steinflow.sampler("sghmc-product", curved, **settings)
    states = [sampler.init(init, seed=1)]
    for _ in range(6):
        states.append(sampler.step(states[-1]))
    # From a copy, by another sampler, out of order.
    other = steinflow.sampler("sghmc-product", curved, **settings)
    for index in (4, 0, 2, 3):
        for twin in (pickle.loads(pickle.dumps(states[index])), copy.deepcopy(states[index])):
            assert np.array_equal(other.step(twin).array, states[index + 1].array), index
    # What is read from it is the reader's.
    states[6].particles[:] = 0.0
    assert np.array_equal(sampler.step(states[5]).array, states[6].array)
    assert states[6].momenta.shape == (10, 2) and list(states[6].blocks) == ["theta", "r"]


def test_a_seed_that_is_not_given_is_drawn_and_kept(rng):
    sampler = steinflow.sampler("sghmc", step_size=0.1)
    init = rng.standard_normal((5, 2))
    first, second = sampler.init(init), sampler.init(init)
    assert first.seed != second.seed and not np.array_equal(first.momenta, second.momenta)
    assert np.array_equal(sampler.init(init, seed=first.seed).momenta, first.momenta)


Weights = namedtuple("Weights", ["bias", "slope"])


def test_pytrees_batches_and_velocity(rng):
    x = rng.standard_normal(40)
    y = 1.0 + 2.0 * x + 0.1 * rng.standard_normal(40)

    def log_density(p, batch):
        rows, values = batch
        left = values - p.bias[:, None] - p.slope[:, :1] * rows
        slope = np.stack([(left * rows).sum(1), np.zeros(len(left))], axis=1)
        value = -0.5 * np.sum(left**2, axis=1) - 0.5 * np.sum(p.slope**2, axis=1)
        return value, Weights(left.sum(axis=1), slope - p.slope)

    init = Weights(rng.standard_normal(20), rng.standard_normal((20, 2)))
    with_function = steinflow.sampler("sghmc-stein", log_density, step_size=0.02)
    given = steinflow.sampler("sghmc-stein", step_size=0.02)
    state, twin = with_function.init(init, seed=0), given.init(init, seed=0)
    for k in range(200):
        batch = (x[k % 4 :: 4], y[k % 4 :: 4])
        state = with_function.step(state, batch)
        twin = given.step(twin, *log_density(twin.particles, batch))
    assert np.array_equal(state.array, twin.array)
    assert abs(state.particles.bias.mean() - 1) < 0.2
    assert abs(state.particles.slope[:, 0].mean() - 2) < 0.4
    velocity = given.velocity(twin, *log_density(twin.particles, batch))
    assert set(velocity) == {"theta", "r"} and velocity["r"].slope.shape == (20, 2)
    with pytest.raises(ValueError, match=r"scores\['slope'\] has shape \(20, 3\)"):
        given.step(twin, np.zeros(20), Weights(np.zeros(20), np.zeros((20, 3))))
    finished = given.finish(twin, *log_density(twin.particles, batch))
    rows = np.column_stack([*log_density(twin.particles, batch)[1]])
    expected = steinflow.velocity(finished.array, rows, method="sghmc-stein")
    found = np.column_stack([velocity["theta"].bias, velocity["theta"].slope])
    assert np.allclose(found, expected[:, :3], rtol=1e-12, atol=0)


def test_an_integrator_that_asks_for_more_than_one_gradient(rng):
    init = rng.standard_normal((8, 2))
    settings = {"integrator": "midpoint-splitting"}
    sampler = sampler_of("sgrhmc-stein", **settings)
    with pytest.raises(ValueError, match=r"more than one gradient.*give the sampler the function"):
        sampler.step(sampler.init(init, seed=3), *curved(init))
    sampler = sampler_of("sgrhmc-stein", curved, **settings)
    state = sampler.init(init, seed=3)
    for _ in range(STEPS):
        state = sampler.step(state)
    assert np.array_equal(
        sampler.finish(state).array, whole(init, "sgrhmc-stein", **settings).state
    )


def test_requests_that_cannot_be_met(rng):
    with pytest.raises(ValueError, match="step_size is missing"):
        steinflow.sampler("svgd")
    with pytest.raises(ValueError, match="name a method such as svgd"):
        steinflow.sampler("auto", step_size=0.1)
    with pytest.raises(TypeError, match="the loop is yours"):
        steinflow.sampler("svgd", step_size=0.1, budget=3.0)
    with pytest.raises(ValueError, match=r"no method `svdg`.*svgd"):
        steinflow.sampler("svdg", step_size=0.1)
    sampler = steinflow.sampler("svgd", step_size=0.1)
    state = sampler.init(rng.standard_normal((5, 2)))
    with pytest.raises(TypeError, match="got 1 of the last two"):
        sampler.step(state, np.zeros(5))
    with pytest.raises(ValueError, match=r"scores has shape \(5, 3\)"):
        sampler.step(state, np.zeros(5), np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"log_density has shape \(4,\) for 5 particles"):
        sampler.step(state, np.zeros(4), np.zeros((5, 2)))
    with pytest.raises(TypeError, match="scores is in float32, but the particles are float64"):
        sampler.step(state, np.zeros(5), np.zeros((5, 2), np.float32))
    with pytest.raises(TypeError, match="state is ndarray: give what `init`"):
        sampler.step(np.zeros((5, 2)), np.zeros(5), np.zeros((5, 2)))
    with pytest.raises(TypeError, match="no setting learning_rate: here it is step_size"):
        steinflow.sampler("svgd", learning_rate=0.1)
    for init, seed, what in [
        (np.zeros((5, 2)), 0, "5 identical particles"),
        (np.full((5, 2), np.nan), 0, "not finite at particle 0"),
        (rng.standard_normal((5, 2)), -1, "seed is -1: give a whole number"),
    ]:
        with pytest.raises(ValueError, match=what):
            sampler.init(init, seed=seed)
    with pytest.raises(steinflow.SamplingError, match="score of particle 2 is NaN"):
        scores = np.zeros((5, 2))
        scores[2] = np.nan
        sampler.step(state, np.zeros(5), scores)
    # The state is as good as before.
    assert sampler.step(state, np.zeros(5), np.zeros((5, 2))).step == 1


def test_jax_pytrees():
    jax = pytest.importorskip("jax")
    data = jax.numpy.linspace(-1.0, 1.0, 30)

    def log_density(p, batch):
        residual = 3.0 * batch - p["slope"] * batch - p["bias"]
        return -0.5 * jax.numpy.sum(residual**2) - 0.5 * p["slope"] ** 2

    key = jax.random.PRNGKey(0)
    init = {"bias": jax.random.normal(key, (16,)), "slope": jax.random.normal(key, (16,)) + 1}
    sampler = steinflow.sampler("svgd", log_density, step_size=0.05)
    state = sampler.init(init)
    assert isinstance(state.particles["bias"], jax.Array)
    for _ in range(200):
        state = sampler.step(state, data)
    assert state.particles["slope"].dtype == init["slope"].dtype
    # N(3 s/(1 + s), …) with s = Σ x².
    total = float(jax.numpy.sum(data**2))
    assert abs(float(state.particles["slope"].mean()) - 3 * total / (1 + total)) < 0.05


def test_stacks_of_torch_modules():
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    torch.manual_seed(0)
    modules = [torch.nn.Linear(2, 1) for _ in range(8)]
    x = torch.randn(64, 2)
    y = x @ torch.tensor([1.0, -2.0])

    def log_density(p, batch):
        out = torch.func.functional_call(modules[0], p, (batch[0],))
        return -0.5 * torch.sum((out[:, 0] - batch[1]) ** 2)

    sampler = steinflow.sampler("svgd", log_density, step_size=0.02)
    state = sampler.init(modules, seed=0)
    parameters, _ = torch.func.stack_module_state(modules)
    assert np.array_equal(state.array, sampler.init(parameters, seed=0).array)
    assert np.array_equal(sampler.init(torch.nn.ModuleList(modules)).array, state.array)
    with pytest.raises(TypeError, match="give a list of modules, one for each particle"):
        sampler.init(modules[0])
    with pytest.raises(ValueError, match="the modules have different parameters"):
        sampler.init([modules[0], torch.nn.Linear(2, 1, bias=False)])
    for _ in range(100):
        state = sampler.step(state, (x, y))
    found = state.particles["weight"].mean(dim=0)
    assert isinstance(found, torch.Tensor) and torch.allclose(
        found, torch.tensor([[1.0, -2.0]]), atol=0.1
    )
