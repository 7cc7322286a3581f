"""Estimators that scikit-learn takes for its own."""

import numpy as np
import pytest
import steinflow

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install scikit-learn")
from sklearn.utils.estimator_checks import check_estimator


@pytest.mark.parametrize("name", ["BayesianNetworkRegressor", "BayesianNetworkClassifier"])
def test_scikit_learns_own_checks(name):
    check_estimator(getattr(steinflow.sklearn, name)(), on_skip=None)


def test_gradients_are_those_of_differences(rng):
    for model, y in [
        (steinflow.sklearn.BayesianNetworkRegressor(hidden=3), rng.standard_normal(7)),
        (steinflow.sklearn.BayesianNetworkClassifier(hidden=3), np.arange(7) % 2),
    ]:
        shapes = {"hidden": (2, 3), "bias": (3,), "out": (3, 2), "shift": (2,), "log_sd": ()}
        if "Regressor" in type(model).__name__:
            shapes |= {"out": (3, 1), "shift": (1,)}
        w = {name: rng.standard_normal((1, *shape)) for name, shape in shapes.items()}
        x = rng.standard_normal((7, 2))
        _, gradient = model._log_posterior(w, x, y, 3.0)
        for name, leaf in w.items():
            for place in np.ndindex(leaf.shape):
                moved = [leaf.copy(), leaf.copy()]
                moved[0][place] += 1e-5
                moved[1][place] -= 1e-5
                high, low = (model._log_posterior({**w, name: m}, x, y, 3.0)[0][0] for m in moved)
                assert gradient[name][place] == pytest.approx((high - low) / 2e-5, abs=1e-4)


def test_intervals_hold_what_they_promise(rng):
    x = rng.uniform(-2, 2, (300, 1))
    y = 5 + 10 * np.sin(2 * x[:, 0]) + 2 * rng.standard_normal(300)
    model = steinflow.sklearn.BayesianNetworkRegressor(random_state=0).fit(x[:200], y[:200])
    mean, sd = model.predict(x[200:], return_std=True)
    # The noise alone is 2; the networks' own doubt is added.
    assert np.sqrt(np.mean((mean - y[200:]) ** 2)) < 3 and 1.5 < sd.mean() < 3.5
    low, high = model.predict_interval(x[200:], 0.9)
    inside = np.mean((low < y[200:]) & (y[200:] < high))
    # 90 ± 9, which is three standard errors of a hundred draws.
    assert 0.81 <= inside <= 0.99


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames(package, rng):
    frames = pytest.importorskip(package)
    table = frames.DataFrame({"a": rng.standard_normal(60), "b": rng.standard_normal(60)})
    labels = np.where(np.asarray(table["a"]) > 0, "yes", "no")
    model = steinflow.sklearn.BayesianNetworkClassifier(random_state=0).fit(table, labels)
    assert model.score(table, labels) > 0.9
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.predict_proba(table).shape == (60, 2)


def test_settings_that_mean_nothing(rng):
    x = rng.standard_normal((30, 1))
    for name in ("hidden", "steps", "batch_size", "prior_sd"):
        model = steinflow.sklearn.BayesianNetworkRegressor(**{name: 0})
        with pytest.raises(ValueError, match=f"{name} is 0: give a number above zero"):
            model.fit(x, x[:, 0])
    model = steinflow.sklearn.BayesianNetworkRegressor(steps=5).fit(x, x[:, 0])
    with pytest.raises(ValueError, match="level is 90: give a probability between 0 and 1"):
        model.predict_interval(x, 90)
