"""Sampling from NumPy functions and models that ship; callbacks, interrupts, exceptions, threads."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import steinflow
from conftest import standard_normal

sample = functools.partial(steinflow.sample, method="sghmc-stein", warm_up=False, progress=False)


def test_particles_of_a_normal_have_its_moments():
    result = sample(standard_normal, shapes=2, method="svgd", steps=1000)
    assert np.allclose(result.particles.mean(axis=0), 0.0, atol=0.02)
    # SVGD comes to rest a little below the full variance.
    assert np.allclose(result.particles.var(axis=0), 0.93, atol=0.08)
    value, gradient = standard_normal(result.particles)
    assert np.allclose(result.log_density, value)
    assert result.ended == "finished" and result.steps == 1000
    assert result.ksd() == pytest.approx(steinflow.ksd(result.particles, gradient))


def test_a_function_of_a_pytree_gives_and_gets_pytrees(rng):
    scales = {"a": np.float64(2.0), "b": np.array([1.0, 0.5])}

    def density(p):
        value = -0.5 * (p["a"] / scales["a"]) ** 2 - 0.5 * np.sum((p["b"] / scales["b"]) ** 2, 1)
        return value, {"a": -p["a"] / scales["a"] ** 2, "b": -p["b"] / scales["b"] ** 2}

    init = {"b": rng.standard_normal((50, 2)), "a": rng.standard_normal(50)}
    tree = sample(density, init, method="svgd", steps=50, step_size=0.1)
    assert {name: value.shape for name, value in tree.particles.items()} == {
        "a": (50,),
        "b": (50, 2),
    }

    precision = np.array([0.25, 1.0, 4.0])
    rows = np.column_stack([init["a"], init["b"]])
    flat = sample(
        lambda x: (-0.5 * np.sum(x * x * precision, 1), -x * precision),
        rows,
        backend="numpy",
        method="svgd",
        steps=50,
        step_size=0.1,
    )
    assert np.allclose(tree.particles["b"], flat.particles[:, 1:], rtol=0, atol=1e-12)


def test_same_seed_same_bits_and_another_seed_other_particles():
    runs = [sample("banana", method="sghmc", steps=50, seed=seed).state for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_python_and_rust_evaluate_the_same_density_to_the_same_particles():
    model = steinflow.model("gaussian", dim=3)
    init = model.start(40, 0)
    rust = sample(model, init, steps=100, seed=3)
    python = sample(lambda x: model.evaluate(x), init, backend="numpy", steps=100, seed=3)
    assert np.array_equal(rust.state, python.state)
    assert rust.diagnostics["step_size"] == python.diagnostics["step_size"]


@pytest.mark.parametrize(
    "method", [m.name for m in steinflow.methods() if "effective" not in m.parameters]
)
def test_every_method_runs(method):
    result = sample("standard-normal", method=method, particles=20, steps=5)
    assert result.steps == 5 and np.isfinite(result.state).all()


def test_single_precision_stays_single():
    result = sample(standard_normal, shapes=2, dtype="float32", steps=5)
    assert result.state.dtype == np.float32 and result.log_density.dtype == np.float32


def test_minibatches_of_a_numpy_likelihood(rng):
    data = rng.normal(2.0, 1.0, 400)

    def loglikelihood(theta, rows):
        difference = rows[None, :] - theta
        return -0.5 * np.sum(difference**2, 1), difference.sum(1, keepdims=True)

    seen = set()

    def counting(theta, rows):
        seen.add(len(rows))
        return loglikelihood(theta, rows)

    result = sample(
        loglikelihood_fn=counting,
        logprior_fn=lambda theta: (-0.5 * theta[:, 0] ** 2 / 100, -theta / 100),
        data=data,
        batch_size=50,
        shapes=1,
        backend="numpy",
        method="svgd",
        steps=300,
        step_size=1e-3,
    )
    assert seen == {50, 400}
    # Half-way between no noise and the noise of a minibatch of 50: 1/√400 is the posterior's sd.
    assert abs(result.particles.mean() - data.mean()) < 0.1


def test_callbacks_see_every_step_and_may_end_the_run():
    steps, shapes = [], set()

    def watch(at):
        steps.append(at.step)
        shapes.add(at.particles.shape)
        return at.step == 7

    result = sample(standard_normal, shapes=3, particles=10, steps=100, callbacks=[watch])
    assert steps == list(range(8)) and shapes == {(10, 3)}
    assert result.ended == "interrupted" and result.steps == 7


def test_ctrl_c_keeps_everything_so_far_and_gives_the_signal_back(capsys):
    before = signal.getsignal(signal.SIGINT)

    def interrupt(at):
        if at.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    result = sample(standard_normal, shapes=2, steps=10_000, callbacks=[interrupt])
    assert result.ended == "interrupted" and 3 <= result.steps < 10_000
    assert "stopping after this step" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_reaches_a_run_without_any_python():
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    # The budget is for the case that the signal is lost, so that the test fails and does not hang.
    result = sample("gaussian", steps=10**9, trace_every=10**9, budget=60)
    assert result.ended == "interrupted"


def test_a_second_ctrl_c_gives_up_at_once():
    def twice(at):
        if at.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    with pytest.raises(KeyboardInterrupt):
        sample(standard_normal, shapes=2, steps=100, callbacks=[twice])


def test_other_threads_run_while_rust_works():
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.perf_counter()
    sample(steinflow.model("gaussian", dim=20), particles=300, steps=10**9, budget=0.5)
    ended = time.perf_counter()
    done.set()
    thread.join()
    # With the interpreter held there would be none between beginning and end.
    assert sum(begun + 0.1 < at < ended - 0.1 for at in ticks) > 5


def test_an_exception_of_the_function_arrives_unchanged_with_its_step():
    calls = []

    class OwnError(Exception):
        pass

    def density(theta):
        calls.append(1)
        if len(calls) == 4:
            raise OwnError("at the fourth evaluation")
        return standard_normal(theta)

    plain = {"backend": "numpy", "check_gradient": False}
    with pytest.raises(OwnError, match="at the fourth evaluation") as caught:
        sample(density, shapes=2, method="svgd", step_size=0.1, steps=100, **plain)
    # The first evaluation is at the start.
    assert caught.value.__notes__ == ["steinflow: raised after 2 steps"]
    with pytest.raises(OwnError) as caught:
        calls[:] = [1, 1, 1]
        sample(density, shapes=2, step_size=0.1, **plain)
    assert "at the start" in caught.value.__notes__[0]


def test_an_exception_of_a_callback_arrives_unchanged():
    def fail(at):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sample("banana", callbacks=[fail])


def test_runs_in_other_threads(rng):
    found = []
    thread = threading.Thread(target=lambda: found.append(sample("banana", steps=20)))
    thread.start()
    thread.join()
    assert found[0].steps == 20


def test_functions_are_called_on_the_callers_thread():
    threads = set()

    def density(theta):
        threads.add(threading.get_ident())
        return standard_normal(theta)

    def watch(at):
        threads.add(threading.get_ident())

    sample(density, shapes=2, backend="numpy", particles=200, steps=5, callbacks=[watch])
    assert threads == {threading.get_ident()}


def test_phases_follow_one_another():
    result = sample(
        "gaussian",
        method="sghmc-stein",
        phases=[("euler", 10, 0.2), ("splitting", 5, "cosine:0.1:0.01")],
    )
    assert result.steps == 15
    assert result.trace["step_size"][9] == 0.2
    assert result.trace["step_size"][-1] == pytest.approx(0.01)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lawgd_on_a_function_takes_a_window(dtype):
    def density(theta):
        return tuple(array.astype(dtype) for array in standard_normal(theta))

    result = sample(
        density, shapes=2, method="lawgd", window=[(-5, 5), (-5, 5)], steps=100, dtype=dtype
    )
    assert np.allclose(result.particles.mean(axis=0), 0, atol=0.1)


FORK = """
import os, signal
import numpy as np
import steinflow

def density(theta):
    return -0.5 * np.sum(theta**2, axis=1), -theta

def run():
    # Enough particles for the work to be shared out.
    settings = dict(method="sghmc-stein", warm_up=False, particles=600, steps=3, progress=False)
    return steinflow.sample(density, shapes=2, **settings).state

before = run()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends it if it waits for ever
    os._exit(0 if np.array_equal(run(), before) else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_was_forked_computes_too():
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_a_seed_of_none_is_drawn_and_recorded():
    first, second = (sample("banana", method="ld", steps=5, seed=None) for _ in range(2))
    assert not np.array_equal(first.state, second.state)
    seed = int(first.config.split("seed = ")[1].split("\n")[0])
    assert np.array_equal(sample("banana", method="ld", steps=5, seed=seed).state, first.state)


def test_a_lambda_without_names_is_tried(rng):
    init = rng.standard_normal((20, 2))
    by_name = sample(standard_normal, init, method="svgd", steps=5)
    found = sample(lambda x: (-0.5 * (x**2).sum(1), -x), init, method="svgd", steps=5)
    assert np.array_equal(found.state, by_name.state)
    found = sample(lambda x: (-0.5 * (x**2).sum(1), -x), shapes=2, method="svgd", steps=5)
    assert found.particles.shape[1] == 2
    with pytest.raises(ValueError, match="it cannot be told"):
        sample(lambda x: x["mu"], shapes=2, method="svgd", steps=5)


def test_nested_shapes():
    def density(p):
        w, b = p["layer"]["w"], p["layer"]["b"]
        value = -0.5 * np.sum(w**2, axis=(1, 2)) - 0.5 * b[:, 0] ** 2 - 0.5 * p["scale"] ** 2
        return value, {"layer": {"w": -w, "b": -b}, "scale": -p["scale"]}

    shapes = {"layer": {"w": (3, 2), "b": 1}, "scale": ()}
    result = sample(density, shapes=shapes, method="svgd", steps=20, backend="numpy")
    assert result.particles["layer"]["w"].shape[1:] == (3, 2)
    assert result.particles["scale"].ndim == 1
