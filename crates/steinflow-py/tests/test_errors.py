"""Wrong requests: one line, in the user's own terms."""

import functools
import warnings

import numpy as np
import pytest
import steinflow
from conftest import standard_normal

sample = functools.partial(
    steinflow.sample, method="sghmc-stein", warm_up=False, progress=False, backend="numpy"
)
INIT = np.random.default_rng(1).standard_normal((10, 2))


def refused(kind, *words):
    """Expects an exception whose message is one line and has these words."""

    class Check:
        def __enter__(self):
            self.raises = pytest.raises(kind)
            self.caught = self.raises.__enter__()
            return self

        def __exit__(self, *exception):
            answer = self.raises.__exit__(*exception)
            message = str(self.caught.value)
            assert "\n" not in message
            for word in words:
                assert word in message, message
            return answer

    return Check()


def test_shapes_that_do_not_fit():
    with refused(ValueError, "gradient of shape (10,), expected (10, 2) for 10 particles"):
        sample(lambda x: (x[:, 0], x[:, 0]), INIT)
    with refused(ValueError, "log density of shape (2,), expected (10,)"):
        sample(lambda x: (x.sum(axis=0), x), INIT)
    with refused(ValueError, "init has shape (3,), which is a single particle"):
        sample(standard_normal, np.zeros(3))
    with refused(ValueError, "disagree about the number of particles (a: 3, b: 4)"):
        sample(standard_normal, {"a": np.zeros(3), "b": np.zeros(4)})
    with refused(ValueError, "init has 5 numbers for each particle, expected 2", "banana"):
        sample("banana", np.zeros((10, 5)))
    with refused(ValueError, "number of parameters is not known", "shapes=2"):
        sample(standard_normal)
    with refused(ValueError, "shapes is 'two'"):
        sample(standard_normal, shapes="two")


def test_a_scalar_where_a_batch_is_meant():
    with refused(ValueError, "a single log density for 10 particles", "shape (10,)"):
        sample(lambda x: (-0.5 * np.sum(x**2), -x), INIT)
    with refused(TypeError, "your function returned", "expected a pair", "gradients"):
        sample(lambda x: -0.5 * np.sum(x**2, axis=1), INIT)


def test_single_precision_from_a_function_of_double_particles():
    with refused(TypeError, "float32, but the particles are float64", 'dtype="float32"'):
        sample(lambda x: tuple(a.astype(np.float32) for a in standard_normal(x)), INIT)
    with refused(ValueError, "dtype is 'float16': take float64 or float32"):
        sample(standard_normal, INIT, dtype="float16")


def test_numbers_that_are_not_finite():
    with refused(
        steinflow.SamplingError, "log density of particle 0 is NaN at step 0", "smaller step"
    ):
        sample(lambda x: (np.full(len(x), np.nan), -x), INIT, step_size=0.1)
    bad = INIT.copy()
    bad[4, 1] = np.inf
    with refused(ValueError, "not finite at particle 4"):
        sample(standard_normal, bad)
    with refused(steinflow.SamplingError, "score of particle"):
        sample(
            lambda x: (x.sum(axis=1), np.where(x > 0.5, x, np.inf)), -np.abs(INIT), step_size=1.0
        )


@pytest.mark.parametrize(
    "word, ours",
    [
        ("random_seed", "seed"),
        ("rng_key", "seed"),
        ("num_samples", "effective"),
        ("draws", "effective"),
        ("chains", "particles"),
        ("tune", "warm_up"),
        ("warmup", "warm_up"),
        ("learning_rate", "step_size"),
    ],
)
def test_words_of_other_packages(word, ours):
    with refused(TypeError, f"no setting {word}: here it is", ours):
        sample("banana", **{word: 100})


def test_names_that_are_misspelt():
    with refused(ValueError, "no method `sghmc-stien`, did you mean `sghmc-stein`?"):
        sample(standard_normal, INIT, method="sghmc-stien")
    with refused(ValueError, "no model `bananna`, did you mean `banana`?"):
        sample("bananna")
    with refused(TypeError, "no setting `frictoin`, did you mean `friction`?"):
        sample("banana", frictoin=1.0)
    with refused(TypeError, "no setting `stepsize`, did you mean `step_size`?"):
        sample("banana", stepsize=1.0)
    with refused(ValueError, "friction does not fit the method `svgd`", "time_unit"):
        sample("banana", method="svgd", friction=1.0)
    with refused(ValueError, "kernel does not fit the method `ld`", "no kernel"):
        sample("banana", method="ld", kernel="se")
    with refused(ValueError, "there is no integrator `eulr`, did you mean `euler`?"):
        sample("banana", integrator="eulr")
    with refused(ValueError, "there is no bandwidth rule `medain`"):
        sample("banana", bandwidth="medain")
    with refused(ValueError, "there is no backend 'tensorflow'"):
        steinflow.sample(standard_normal, INIT, backend="tensorflow")


def test_starts_that_cannot_move():
    with refused(ValueError, "number of particles is 1", "2 or more"):
        sample(standard_normal, INIT[:1])
    with refused(ValueError, "10 identical particles", "spread them"):
        sample(standard_normal, np.ones((10, 2)), method="svgd")
    # A diffusion has noise of its own.
    assert sample(standard_normal, np.ones((10, 2)), method="ld", steps=5).steps == 5
    with refused(ValueError, "particles is 0"):
        sample("banana", particles=0)
    with refused(ValueError, "particles is 5 but init has 10"):
        sample(standard_normal, INIT, particles=5)


def test_settings_out_of_range():
    with refused(ValueError, "step size is -1", "positive"):
        sample(standard_normal, INIT, step_size=-1)
    with refused(ValueError, "steps is 2.5: give a whole number"):
        sample(standard_normal, INIT, steps=2.5)
    with refused(ValueError, "friction is -1", "zero or positive"):
        sample(standard_normal, INIT, friction=-1)
    with refused(ValueError, "batch size is 5", "no data"):
        sample(standard_normal, INIT, batch_size=5)
    with refused(ValueError, "budget is -1"):
        sample(standard_normal, INIT, budget=-1)
    with refused(ValueError, "say from which step on with collect_from"):
        sample(standard_normal, INIT, collect_every=2)
    with refused(ValueError, "step_size does not fit phase"):
        sample(standard_normal, INIT, phases=[("euler", 1, 0.1)], step_size=1.0)
    with refused(ValueError, "say over which window of the target"):
        sample(standard_normal, INIT, method="lawgd", steps=1)


def test_targets_that_are_none():
    with refused(TypeError, "target is int"):
        sample(3)
    with refused(ValueError, "nothing to sample"):
        sample()
    with refused(ValueError, "go together"):
        sample(loglikelihood_fn=standard_normal, data=INIT)
    with refused(ValueError, "take the place of target, and need data"):
        sample(loglikelihood_fn=standard_normal, logprior_fn=standard_normal)
    with refused(ValueError, "cannot be told", "backend="):
        steinflow.sample(lambda theta: theta, shapes=2)
    with refused(ValueError, "model_args and model_kwargs are for NumPyro"):
        sample(standard_normal, INIT, model_args=(1,))


def test_starts_that_are_no_numbers():
    rows = [[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]]
    assert sample(standard_normal, rows, steps=2).particles.shape == (3, 2)
    assert sample(standard_normal, np.array(rows, dtype=int), steps=2).state.dtype == np.float64
    with refused(ValueError, "init has rows of different lengths"):
        sample(standard_normal, [[1.0, 2.0], [3.0]])
    with refused(TypeError, "init has dtype complex128"):
        sample(standard_normal, INIT + 1j)
    with refused(ValueError, "init has shape (0, 2): there is nothing in it to move"):
        sample(standard_normal, INIT[:0])
    for shapes in (0, -1, True, {"x": (0,)}):
        with refused(ValueError, "shapes is", "the number of coordinates"):
            sample(standard_normal, shapes=shapes)
    assert sample(standard_normal, shapes=np.int64(2), steps=2).particles.shape == (100, 2)
    with refused(MemoryError, "particles in 2 dimensions do not fit into memory"):
        sample("banana", particles=10**15)
    with refused(MemoryError, "do not fit into memory"):
        sample(standard_normal, shapes=2, particles=2**62)


def test_numbers_that_are_not_real():
    with refused(TypeError, "a log density of type complex128, expected real numbers"):
        sample(lambda x: (x.sum(axis=1) + 0j, -x), INIT)
    with refused(TypeError, "a gradient that is not an array of numbers"):
        sample(lambda x: (x.sum(axis=1), [[1.0] * (i % 2) for i in range(len(x))]), INIT)
    for wrong, name in [("a", "<U1"), ("1.0", "<U3"), (np.datetime64("2020"), "datetime64[Y]")]:
        with refused(TypeError, f"a log density of type {name}, expected real numbers"):
            sample(lambda x, wrong=wrong: (np.full(len(x), wrong), -x), INIT)
    days = np.full(INIT.shape, 1, "timedelta64[D]")
    with refused(TypeError, "a gradient of type timedelta64[D], expected real numbers"):
        sample(lambda x: (x.sum(axis=1), days), INIT)


def test_masked_arrays():
    def masked(theta, mask):
        value, gradient = standard_normal(theta)
        return np.ma.array(value), np.ma.array(gradient, mask=mask)

    with refused(ValueError, "a gradient with masked entries", "fill them"):
        sample(lambda x: masked(x, x > 0), INIT)
    with refused(ValueError, "init has masked entries", "fill them"):
        sample(standard_normal, np.ma.array(INIT, mask=INIT > 0))
    # Without masked entries it is an array like any other.
    steps = dict(steps=3, step_size=0.1)
    plain = sample(standard_normal, INIT, **steps)
    assert np.array_equal(sample(lambda x: masked(x, False), INIT, **steps).state, plain.state)


def test_numbers_of_another_layout():

    def unaligned(theta):
        value, gradient = standard_normal(theta)
        odd = np.frombuffer(b"." + gradient.tobytes(), np.uint8)[1:].view(float)
        return value, odd.reshape(theta.shape)

    steps = dict(steps=3, step_size=0.1)
    found = sample(unaligned, INIT, **steps).state
    assert np.array_equal(found, sample(standard_normal, INIT, **steps).state)


def test_settings_of_the_wrong_kind():
    for name in ("seed", "batch_size", "collect_from", "trace_every", "resample_every"):
        for value in (-1, 1.5, "a"):
            with refused(ValueError, f"{name} is {value!r}: give a whole number"):
                sample(standard_normal, INIT, **{name: value})
    with refused(ValueError, "steps is", "give a number below 2^63"):
        sample(standard_normal, INIT, steps=2**70)
    with refused(ValueError, "budget is '1m': give a number"):
        sample(standard_normal, INIT, budget="1m")
    with refused(ValueError, "friction is 'much': give a number"):
        sample(standard_normal, INIT, friction="much")
    with refused(ValueError, "method is 3: give a word"):
        sample(standard_normal, INIT, method=3)
    with refused(ValueError, "phases is", "a phase is (integrator, steps, step_size)"):
        sample(standard_normal, INIT, phases=[("euler", 5)])
    with refused(ValueError, "step_size is [1]: give one number, or a word"):
        sample(standard_normal, INIT, step_size=[1])
    with refused(ValueError, "bandwidth is []: give one or more"):
        sample(standard_normal, INIT, bandwidth=[])
    for beyond in (2**63, 2**64, 2**200):
        with refused(ValueError, "seed is", "give a number below 2^63"):
            sample(standard_normal, INIT, seed=beyond)
    with refused(ValueError, "steps is [0, 1, 2", "…: give a whole number"):
        sample(standard_normal, INIT, steps=list(range(10_000)))
    with refused(ValueError, "phases is []: give one or more"):
        sample(standard_normal, INIT, phases=[])
    with refused(ValueError, "window is 3: give (low, high) for each coordinate"):
        sample(standard_normal, INIT, method="lawgd", window=3)
    with refused(TypeError, "dynamics is int: give a steinflow.Dynamics"):
        sample(standard_normal, INIT, dynamics=3)
    with refused(TypeError, "callbacks has 3: give functions of a step"):
        sample(standard_normal, INIT, callbacks=[3])
    assert sample(standard_normal, INIT, callbacks=lambda step: step.step == 2).steps == 2
    with refused(ValueError, "checkpoint is", "in a folder that does not exist"):
        sample(standard_normal, INIT, checkpoint="no/such/folder/run")
    with refused(ValueError, "steps is 'x': give a whole number"):
        sample(standard_normal, INIT, steps=1).resume("x")


def test_data_that_are_no_rows():
    run = functools.partial(
        sample,
        loglikelihood_fn=lambda x, rows: standard_normal(x),
        logprior_fn=standard_normal,
        shapes=2,
        steps=2,
    )
    with refused(ValueError, "data has no rows"):
        run(data=3.0)
    with refused(ValueError, "data has no rows"):
        run(data=INIT[:0])
    with refused(ValueError, "disagree about the number of rows: [5, 6]"):
        run(data={"x": np.zeros(5), "y": np.zeros(6)})
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    assert run(data=pandas.DataFrame(INIT)).steps == 2
    assert sample(standard_normal, pandas.DataFrame(INIT), steps=2).steps == 2


@pytest.mark.parametrize("package", ["jax", "torch", "numpyro"])
def test_a_missing_package_is_named_with_how_to_install_it(package, monkeypatch):
    import sys

    for name in ("jax", "torch", "numpyro"):
        monkeypatch.setitem(sys.modules, name, None)
    with refused(ImportError, "pip install"):
        steinflow.sample(lambda theta: theta, shapes=2, backend=package)


def test_a_gpu_that_is_not_there_is_one_clear_error(rng):
    """Where there is one, real or emulated, a warning says what the run could be spared."""
    init = rng.standard_normal((20, 2))
    run = dict(method="svgd", steps=3, step_size=0.1, device="cuda", progress=False, diagnose=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            steinflow.sample(standard_normal, init, **run)
        except ValueError as error:
            assert "device is cuda" in str(error) and "device cpu" in str(error)
            assert not caught
            return
    said = [str(one.message) for one in caught if one.category is RuntimeWarning]
    assert [text.partition(":")[0] for text in said] == [
        "this target is evaluated by the processor",
        "sums in double precision",
    ]
    assert caught[0].filename == __file__
