"""One description of a run: the same settings give the same run from the shell and from Python."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import steinflow
from steinflow import _settings, _steinflow

ROOT = Path(__file__).resolve().parents[3]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug" / "steinflow"
NETWORK = {"hidden": [5], "test_fraction": 0.2}


def flags(settings):
    for name, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"--{name.replace('_', '-')}={text}"


def check_that_both_agree(folder, model, options, settings):
    words = [
        COMMAND,
        "sample",
        model,
        *flags(options),
        *flags(settings),
        "--out",
        folder,
        "--quiet",
    ]
    subprocess.run(words, check=True, capture_output=True)
    target = steinflow.model(model, **options)
    result = steinflow.sample(target, progress=False, **settings)
    assert result.config == (folder / "config.toml").read_text(), (model, settings)
    summary = json.loads((folder / "summary.json").read_text())
    # One after the other, as the command adds them up.
    total = sum(float(value) for value in result.log_density)
    assert summary["mean_log_density"] == total / len(result.log_density)
    assert summary["gradients"] == result.diagnostics["gradients"]


@pytest.mark.parametrize("method", [method.name for method in steinflow.methods()])
def test_every_method_is_the_same_from_the_shell_and_from_python(tmp_path, method):
    settings = {"method": method, "seed": 3}
    if method in ("auto", "hmc", "mala", "ghmc"):
        settings |= {"effective": 100}
    else:
        settings |= {"steps": 4, "particles": 12}
    check_that_both_agree(tmp_path / "run", "gaussian", {}, settings)


# A Stan program is the user's own.
@pytest.mark.parametrize(
    "model", [model.name for model in steinflow.models() if model.name != "stan"]
)
def test_every_model_is_the_same_from_the_shell_and_from_python(tmp_path, model):
    settings = {"seed": 1}
    if model == "bnn":
        options, settings = NETWORK, settings | {"steps": 4}
    else:
        options = {"data": "penguins"} if model.endswith("regression") else {}
        settings |= {"gradients": 50}
    if model in (
        "logistic-regression",
        "multinomial-regression",
        "ordinal-regression",
        "gaussian-process",
    ):
        table = tmp_path / "table.csv"
        table.write_text("x,y\n" + "".join(f"{k},{int(k % 3 > 0)}\n" for k in range(20)))
        options = {"data": str(table)}
    check_that_both_agree(tmp_path / "run", model, options, settings)


def test_what_editors_read_is_what_there_is():
    written = (Path(_settings.__file__).parent / "_typed.py").read_text()
    assert written == _settings.typed(), "make it again: python -m steinflow._settings > _typed.py"


def test_every_setting_is_in_the_help():
    for name, _, help in _steinflow.settings():
        assert f"\n    {name}\n" in steinflow.sample.__doc__ and help
    for name, _, _ in _steinflow.model_options():
        assert f"\n    {name}\n" in steinflow.model.__doc__
