"""Stan programs for the tests, where their toolchain is."""

import shutil

import pytest


def require_toolchain():
    """Skips the test where programs cannot be compiled."""
    pytest.importorskip("bridgestan", reason="BridgeStan is not installed: pip install bridgestan")
    from bridgestan.compile import get_bridgestan_path

    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("the Stan toolchain is absent: no make or g++")
    if not get_bridgestan_path(download=False):
        pytest.skip(
            "the Stan toolchain is absent: bridgestan.compile.get_bridgestan_path() downloads it"
        )


def compiled(code, data, folder):
    """The model of a program with its data; compiling takes a minute."""
    require_toolchain()
    import bridgestan

    program = folder / "program.stan"
    program.write_text(code)
    return bridgestan.StanModel(program, data)
