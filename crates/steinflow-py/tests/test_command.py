"""The command that the package installs: its script, and `python -m steinflow`."""

import subprocess
import sys
from pathlib import Path

import pytest
import steinflow

# Windows has a program in its place, which only pip writes: `wheel_test.py` runs that.
SCRIPT = Path(sys.executable).with_name("steinflow")


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "steinflow"]])
def test_the_package_has_the_command(command, tmp_path):
    if command == [SCRIPT] and not SCRIPT.exists():
        pytest.skip(f"there is no {SCRIPT}")

    def run(*arguments):
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    assert run("--version").stdout.strip() == f"steinflow {steinflow.__version__}"
    done = run(
        "sample", "gaussian", "--method", "svgd", "--steps", "20", "--out", str(tmp_path / "run")
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "particles.parquet").exists()
    refused = run("sample", "nonsense")
    assert refused.returncode == 2 and "no model `nonsense`" in refused.stderr
