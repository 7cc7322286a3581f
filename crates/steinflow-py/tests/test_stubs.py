"""The types of the compiled half are those that it has."""

import subprocess
import sys

import pytest


def test_stubs_are_true(tmp_path):
    pytest.importorskip("mypy.stubtest", reason="mypy is not installed: pip install mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "steinflow._steinflow"]
    # Away from the sources: it leaves a cache where it runs.
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
