"""The command that the package installs."""

import subprocess
import sys

import steinflow


def run(*arguments):
    command = [sys.executable, "-m", "steinflow", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_has_the_command(tmp_path):
    assert run("--version").stdout.strip() == f"steinflow {steinflow.__version__}"
    done = run(
        "sample", "gaussian", "--method", "svgd", "--steps", "20", "--out", str(tmp_path / "run")
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "particles.parquet").exists()
    refused = run("sample", "nonsense")
    assert refused.returncode == 2 and "no model `nonsense`" in refused.stderr
