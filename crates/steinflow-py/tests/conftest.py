"""What the tests share."""

import os

# Figures are drawn to memory, JAX says nothing about devices it does not find, and small problems on
# few cores are quicker with one thread for each library.
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def standard_normal(theta):
    """log density and gradient of N(0, I), all particles at once."""
    return -0.5 * np.sum(theta**2, axis=1), -theta


def pytest_sessionfinish(session):
    """In a strict run (`cargo xtask test --strict`), a test that is skipped for anything but what is
    excused is a failure."""
    excused = os.environ.get("STEINFLOW_EXCUSED")
    if excused is None:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", [])}
    missing = [why for why in reasons if not any(name in why for name in excused.split(", "))]
    if missing:
        reporter.line("")
        for reason in sorted(missing):
            reporter.line(f"skipped in a strict run: {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
