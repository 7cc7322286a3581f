"""Results: resuming, files, ArviZ, pictures."""

import copy
import functools
import json
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
import steinflow
from conftest import standard_normal

sample = functools.partial(steinflow.sample, method="sghmc-stein", warm_up=False, progress=False)


@pytest.mark.parametrize("method", ["svgd", "sghmc", "svgd-product", "sgnht-stein"])
def test_resuming_gives_the_bits_of_one_long_run(method):
    run = (
        functools.partial(sample, "gaussian", method=method, adapt=4, seed=5)
        if (method == "svgd-product")
        else functools.partial(sample, "gaussian", method=method, seed=5)
    )
    long = run(steps=60, collect_from=10, collect_every=5)
    parts = run(steps=40, collect_from=10, collect_every=5).resume(steps=20, progress=False)
    assert parts.steps == 60 and np.array_equal(parts.state, long.state)
    assert np.array_equal(parts.draws, long.draws)
    assert np.array_equal(parts.trace["step"], long.trace["step"])
    assert np.array_equal(parts.trace["velocity_norm"], long.trace["velocity_norm"])


def test_an_interrupted_run_is_finished_by_resuming():
    long = sample(standard_normal, shapes=2, steps=50, seed=1)
    short = sample(
        standard_normal, shapes=2, steps=50, seed=1, callbacks=[lambda at: at.step == 20]
    )
    assert short.steps == 20
    rest = short.resume(callbacks=[], progress=False)
    assert rest.ended == "finished" and np.array_equal(rest.state, long.state)


def test_adam_goes_on_with_its_averages():
    run = functools.partial(sample, "gaussian", method="svgd", integrator="adam", step_size=0.05)
    resumed = run(steps=10).resume(steps=10, progress=False)
    assert np.array_equal(resumed.state, run(steps=20).state)
    scheduled = sample("gaussian", method="svgd", step_size="linear:0.1:0.01", steps=5)
    with pytest.raises(ValueError, match="the last phase has a schedule"):
        scheduled.resume(steps=5)


def test_a_checkpoint_file_is_gone_on_with(tmp_path):
    path = tmp_path / "run.checkpoint"
    run = functools.partial(sample, standard_normal, shapes=2, method="sghmc", checkpoint=path)
    stopped = run(steps=60, callbacks=[lambda at: at.step == 25], step_size=0.1)
    assert stopped.steps == 25 and path.exists()
    finished = run(steps=60, step_size=0.1)
    whole = sample(standard_normal, shapes=2, method="sghmc", steps=60, step_size=0.1)
    assert finished.steps == 60 and np.array_equal(finished.state, whole.state)
    with pytest.raises(ValueError, match="checkpoint of a run with other settings"):
        run(steps=60, step_size=0.2)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match=r"run\.checkpoint"):
        run(steps=60, step_size=0.1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "settings",
    [
        dict(method="sghmc", steps=30, step_size=0.1, warm_up=False),
        dict(method="svgd", steps=30, warm_up=True),
        dict(method="auto", effective=200),
        dict(method="hmc", effective=200),
    ],
    ids=lambda settings: settings["method"],
)
def test_a_checkpoint_knows_its_function(tmp_path, settings, dtype):
    path = tmp_path / "run.checkpoint"

    def density(theta, spread=1.0, slope=0.0):
        values = -0.5 * np.sum(theta**2, axis=1) / theta.dtype.type(spread)
        return values, -theta / theta.dtype.type(spread) + theta.dtype.type(slope)

    def noisy(theta):
        values, gradients = density(theta)
        return values + rng.normal(0, 0.1, len(values)).astype(theta.dtype), gradients

    rng = np.random.default_rng(1)
    run = functools.partial(
        steinflow.sample, shapes=2, dtype=dtype, checkpoint=path, progress=False, **settings
    )
    first = run(density)
    assert np.array_equal(run(density).state, first.state)
    for edited in (dict(spread=1.5), dict(slope=0.1)):
        with pytest.raises(ValueError, match=r"not the one that this run was saved with.*anew"):
            run(functools.partial(density, **edited))
    # What is random says something else every time, and is judged by that.
    assert np.array_equal(run(noisy).state, first.state)


def test_a_checkpoint_of_minibatches_knows_its_rows(tmp_path):
    def likelihood(theta, rows):
        return -0.5 * np.sum((theta - rows) ** 2, axis=1), (rows - theta).sum(axis=1, keepdims=True)

    def prior(theta):
        return -0.5 * np.sum(theta**2, axis=1), -theta

    rows = np.linspace(-1, 1, 40)
    run = functools.partial(
        sample, init=np.linspace(-1, 1, 10)[:, None], loglikelihood_fn=likelihood, logprior_fn=prior,
        backend="numpy", batch_size=5, method="sghmc", step_size=0.01, warm_up=False,
        checkpoint=tmp_path / "run.checkpoint",
    )  # fmt: skip
    part = run(data=rows, steps=20)
    assert run(data=rows, steps=30).steps == 30 and part.steps == 20
    with pytest.raises(ValueError, match="not the one that this run was saved with"):
        run(data=rows + 0.5, steps=40)


def test_parquet(tmp_path):
    result = sample("banana", steps=5)
    result.to_parquet(tmp_path / "particles.parquet")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(tmp_path / "particles.parquet")
    assert table.column_names == [*result.columns(), "log_density"]
    assert np.array_equal(table["x"].to_numpy(), result.particles[:, 0])
    with pytest.raises(OSError, match="nowhere"):
        result.to_parquet(tmp_path / "nowhere" / "particles.parquet")


def tree_result(**settings):
    def density(p):
        return -0.5 * (p["a"] ** 2 + np.sum(p["b"] ** 2, 1)), {"a": -p["a"], "b": -p["b"]}

    shapes = {"a": (), "b": (3,)}
    return sample(density, shapes=shapes, backend="numpy", particles=20, steps=12, **settings)


def group(data, name):
    """A group of either kind of ArviZ object."""
    found = data[name]
    return found.to_dataset() if hasattr(found, "to_dataset") else found


def test_arviz_has_the_names_of_the_schema():
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    result = tree_result()
    data = result.to_arviz()
    posterior = group(data, "posterior")
    assert dict(posterior.sizes) == {"chain": 1, "draw": 20, "b_dim_0": 3}
    assert np.array_equal(posterior["b"].values[0], result.particles["b"])
    assert posterior.attrs["inference_library"] == "steinflow"
    assert posterior.attrs["inference_library_version"] == steinflow.__version__
    assert np.array_equal(group(data, "sample_stats")["lp"].values[0], result.log_density)

    collected = tree_result(collect_from=4, collect_every=2)
    posterior = group(collected.to_arviz(), "posterior")
    assert dict(posterior.sizes) == {"chain": 20, "draw": 5, "b_dim_0": 3}
    assert np.array_equal(posterior["a"].values, collected.draws["a"])
    assert np.array_equal(posterior["b"].values[:, -1], collected.particles["b"])
    steps = group(collected.to_arviz(), "sample_stats")["step"].values
    assert steps[0].tolist() == [4, 6, 8, 10, 12]


def test_columns_have_the_names_of_a_tuples_fields():
    from typing import NamedTuple

    class Line(NamedTuple):
        slope: np.ndarray
        offsets: np.ndarray

    def density(p):
        value = -0.5 * (p.slope**2 + np.sum(p.offsets**2, 1))
        return value, Line(-p.slope, -p.offsets)

    init = Line(np.arange(5.0), np.arange(10.0).reshape(5, 2))
    result = sample(density, init, backend="numpy", steps=3)
    assert isinstance(result.particles, Line)
    columns = result.columns()
    assert list(columns) == ["slope", "offsets[0]", "offsets[1]"]
    assert np.array_equal(columns["offsets[1]"], result.particles.offsets[:, 1])


def test_arviz_keeps_the_unconstrained_beside_the_constrained():
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    from test_models import PretendStan

    for settings in ({}, {"collect_from": 2, "collect_every": 2}):
        result = sample(PretendStan(), particles=10, steps=8, **settings)
        data = result.to_arviz()
        inner = group(data, "unconstrained_posterior")["sigma"].values
        assert np.allclose(group(data, "posterior")["sigma"].values, np.exp(inner))
        assert group(data, "posterior")["m"].shape[-2:] == (2, 2)


def test_arviz_summarises_a_result():
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    result = sample("gaussian", method="ld", steps=300, collect_from=100, collect_every=10)
    summary = arviz.summary(result.to_arviz())
    assert len(summary) == 2 and np.allclose(summary["mean"], 0, atol=0.5)


@pytest.mark.parametrize("kind", ["zarr", "netcdf"])
def test_files_that_xarray_reads(tmp_path, kind):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip({"zarr": "zarr", "netcdf": "h5netcdf"}[kind], reason=f"no {kind} library")
    result = tree_result()
    path = tmp_path / f"run.{kind}"
    getattr(result, f"to_{kind}")(path)
    tree = xarray.open_datatree(path, engine={"zarr": "zarr", "netcdf": "h5netcdf"}[kind])
    assert np.array_equal(tree["posterior"]["b"].values[0], result.particles["b"])
    assert np.array_equal(tree["sample_stats"]["lp"].values[0], result.log_density)


def test_pictures_and_the_notebook():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = tree_result()
    figure = result.plot_particles()
    assert isinstance(figure, matplotlib.figure.Figure) and len(figure.axes) == 16
    (axes,) = sample("banana", steps=3).plot_particles().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
    assert len(axes.collections[0].get_offsets()) == 100
    labels = [axes.get_ylabel() for axes in result.plot_trace().axes]
    assert labels == ["mean log density", "velocity norm", "bandwidth"]
    line = result.plot_trace().axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), result.trace["mean_log_density"])
    with pytest.raises(ValueError, match="no parameter 'c'; known: a, b"):
        result.plot_particles(["c"])
    drawn = sample("banana", method="ld", steps=60, collect_from=20)
    (axes,) = drawn.plot_particles().axes
    assert len(axes.collections[0].get_offsets()) == 2000 and "2000 draws" in axes.get_title()
    assert f"<td>{drawn.draws[..., 0].mean():.4g}</td>" in drawn._repr_html_()
    page = result._repr_html_()
    assert "data:image/png;base64," in page and "<td>b[2]</td>" in page
    assert "20 particles in 4 dimensions" in repr(result)


def test_the_progress_bar_is_for_terminals(capsys, monkeypatch):
    import sys

    result = steinflow.sample("banana", method="svgd", steps=50)
    # The verdict alone, which is for everybody.
    assert capsys.readouterr().err == result.diagnosis.line + "\n"
    steinflow.sample("banana", method="svgd", steps=50, diagnose=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    steinflow.sample("banana", method="svgd", steps=50)
    shown = capsys.readouterr().err
    assert "svgd on banana: 50/50 steps, 100 %" in shown and shown.endswith("\n")


def test_the_progress_bar_in_a_notebook(monkeypatch):
    """With the parts of IPython that it uses."""
    import sys
    import types

    shown = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, markup):
            shown.append(markup)

    def display(markup, display_id):
        shown.append(markup)
        return Handle()

    modules = {
        "IPython": types.SimpleNamespace(get_ipython=ZMQInteractiveShell),
        "IPython.display": types.SimpleNamespace(HTML=str, display=display),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    steinflow.sample("banana", method="svgd", steps=50)
    assert shown[-1].startswith('<progress value="50" max="50">')


def test_a_result_is_an_ordinary_object(tmp_path):
    result = sample(standard_normal, shapes=3, steps=30, collect_from=10)
    twin = pickle.loads(pickle.dumps(result))
    for name in ("particles", "draws", "state", "log_density", "theta"):
        assert np.array_equal(getattr(twin, name), getattr(result, name)), name
    assert twin.config == result.config and twin.diagnosis == result.diagnosis
    assert twin.diagnostics == result.diagnostics and repr(twin) == repr(result)
    assert twin.to_dataframe().equals(result.to_dataframe())
    with pytest.raises(ValueError, match="saved without its function"):
        twin.resume(steps=5)
    with pytest.raises(ValueError, match="saved without its function"):
        twin.ksd()
    own = copy.deepcopy(result)
    own.state[:] = 0.0
    assert result.state.any()
    assert np.array_equal(
        copy.deepcopy(result).resume(steps=5, progress=False).state,
        result.resume(steps=5, progress=False).state,
    )
    np.save(tmp_path / "other.npy", np.zeros(3))
    with open(tmp_path / "other.pickle", "wb") as file:
        pickle.dump([1, 2], file)
    with pytest.raises(ValueError, match="holds a list"):
        steinflow.Result.load(tmp_path / "other.pickle")


def _run_in_a_process(seed):
    return sample("gaussian", method="svgd", steps=20, seed=seed)


def test_a_file_that_holds_no_result(tmp_path):
    (tmp_path / "other").write_text("x,y")
    with pytest.raises(ValueError, match="is no file that `save` has written"):
        steinflow.Result.load(tmp_path / "other")


def test_results_come_back_from_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(_run_in_a_process, [1, 2])
    assert [result.steps for result in found] == [20, 20]
    assert np.array_equal(found[1].state, _run_in_a_process(2).state)


def test_constrained_parameters_survive_a_file(tmp_path):
    rows = [f"{x},{2 * x + 0.1 * x**2}" for x in range(20)]
    (tmp_path / "table.csv").write_text("x,y\n" + "\n".join(rows))
    model = steinflow.model("linear-regression", data=tmp_path / "table.csv", target="y")
    result = sample(model, method="svgd", steps=20)
    result.save(tmp_path / "result.pickle")
    again = steinflow.Result.load(tmp_path / "result.pickle")
    assert set(again.particles) == set(result.particles)
    assert all(np.array_equal(again.particles[k], v) for k, v in result.particles.items())
    assert again.columns().keys() == result.columns().keys()


def test_frames():
    frame = sample("gaussian", method="svgd", steps=5).to_dataframe()
    assert list(frame.columns) == ["x", "y", "log_density"] and len(frame) == 100


def test_the_page_of_the_command(tmp_path):
    result = sample("gaussian", method="ld", steps=50, collect_from=10)
    result.report(tmp_path / "report.html", "a <b> run")
    page = (tmp_path / "report.html").read_text()
    assert "a &lt;b&gt; run" in page and "a <b> run" not in page
    assert result.diagnosis.headline[:20] in page and "method = " in page
    auto = sample("gaussian", method="auto", warm_up=None)
    auto.report(tmp_path / "auto.html")
    assert "auto on gaussian" in (tmp_path / "auto.html").read_text()


def test_the_page_of_a_regression_is_that_of_the_command(tmp_path, rng):
    x = rng.standard_normal(40)
    rows = [f"{a},{b}" for a, b in zip(x, 1 + 2 * x + rng.standard_normal(40), strict=True)]
    (tmp_path / "table.csv").write_text("x,y\n" + "\n".join(rows))
    model = steinflow.model("linear-regression", data=tmp_path / "table.csv", target="y")
    result = sample(model, method="ld", steps=300, collect_from=100, collect_every=20, seed=1)
    result.report(tmp_path / "report.html")
    (tmp_path / "config.toml").write_text(result.config)
    command = [sys.executable, "-m", "steinflow", "sample", "--config", "config.toml", "--report"]
    subprocess.run([*command, "--quiet", "--out", "run"], cwd=tmp_path, check=True)

    def numbers(page):
        text = page.read_text().split('<script type="application/json" id="data">')[1]
        return json.loads(text.split("</script>")[0])["runs"][0]

    ours, theirs = numbers(tmp_path / "report.html"), numbers(tmp_path / "run" / "report.html")
    assert len(ours["predictions"]["observed"]) == 40 and sum(ours["predictions"]["pit"]) == 40
    for part in ("predictions", "marginals", "density"):
        assert ours[part] == theirs[part], part
    # Draws stand in another order there.
    drawn = [sorted(zip(*page["points"]["columns"], strict=True)) for page in (ours, theirs)]
    assert len(drawn[0]) == 100 * 11 and drawn[0] == drawn[1]
    for words in ("Predictions for every row from all others", "log score"):
        assert words in (tmp_path / "report.html").read_text(), words


def test_arviz_has_what_its_statistics_need():
    numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    observed = np.random.default_rng(0).normal(1.0, 1.0, 30)

    def model(y):
        mean = numpyro.sample("mean", numpyro.distributions.Normal(0, 5))
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", numpyro.distributions.Normal(mean, 1), obs=y)

    result = sample(model, model_args=(observed,), method="auto", warm_up=None, effective=500)
    data = result.to_arviz()
    assert data.posterior_predictive["y"].shape[-1] == 30
    assert np.allclose(data.observed_data["y"], observed)
    likelihood = np.asarray(data.log_likelihood["y"])
    mean = np.asarray(data.posterior["mean"])[..., None]
    expected = -0.5 * (observed - mean) ** 2 - 0.5 * np.log(2 * np.pi)
    assert np.allclose(likelihood, expected, atol=1e-4)
    # One parameter is fitted.
    assert 0.3 < float(arviz.loo(data).p_loo) < 3
    assert "log_likelihood" not in pickle.loads(pickle.dumps(result)).to_arviz().groups()


def test_regressions_that_ship_have_what_arviz_needs(tmp_path):
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    y = 3 + 2 * x + 0.5 * rng.standard_normal(60)
    rows = "\n".join(f"{a},{b}" for a, b in zip(x, y, strict=True))
    (tmp_path / "table.csv").write_text(f"x,y\n{rows}\n")
    model = steinflow.model("linear-regression", data=tmp_path / "table.csv", target="y")
    result = sample(model, method="auto", warm_up=None, effective=500)
    data = result.to_arviz()
    assert np.allclose(data.observed_data["y"], y)
    line = result.draws["intercept"] + result.draws["x"] * x[:, None, None]
    sd = result.draws["noise"]
    expected = -0.5 * ((y[:, None, None] - line) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    assert np.allclose(np.moveaxis(np.asarray(data.log_likelihood["y"]), 2, 0), expected)
    # Intercept, slope and noise.
    assert 1.5 < float(arviz.loo(data).p_loo) < 5
    left = np.asarray(data.posterior_predictive["y"]) - np.moveaxis(line, 0, 2)
    assert abs(np.mean(left)) < 0.05 and abs(np.std(left) / np.sqrt(np.mean(sd**2)) - 1) < 0.03
    # Without data there is nothing to compare with.
    assert set(sample("gaussian", steps=5).to_arviz().groups()) == {"posterior", "sample_stats"}


@pytest.mark.parametrize("through", ["jax", "pymc"])
def test_pymc_models_have_what_arviz_needs(through, monkeypatch):
    pymc = pytest.importorskip("pymc", reason="PyMC is not installed")
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    if through == "pymc":
        from steinflow.adapters import pymc as adapter

        monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(40)
    y = 1 + 2 * x + 0.5 * rng.standard_normal(40)
    with pymc.Model() as model:
        slope = pymc.Normal("slope", 0, 5, shape=2)
        sigma = pymc.HalfNormal("sigma", 2)
        pymc.Normal("y", slope[0] + slope[1] * x, sigma, observed=y)
    result = sample(model, method="auto", warm_up=None, effective=300)
    data = result.to_arviz()
    assert np.allclose(data.observed_data["y"], y)
    slopes, sd = result.draws["slope"][..., None], result.draws["sigma"][..., None]
    line = slopes[:, :, 0] + slopes[:, :, 1] * x
    expected = -0.5 * ((y - line) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    assert np.allclose(data.log_likelihood["y"], expected)
    assert 1.5 < float(arviz.loo(data).p_loo) < 6
    left = np.asarray(data.posterior_predictive["y"]) - line
    assert abs(np.std(left) / np.sqrt(np.mean(sd**2)) - 1) < 0.05
