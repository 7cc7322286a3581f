"""Installs the newest wheel of `target/wheels` into an empty environment, and tries what it promises."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from environment import ROOT, pip_install, program

ENVIRONMENT = ROOT / "target" / "wheel"
USE = """
import sys, steinflow
result = steinflow.sample("banana", method="svgd", steps=50, progress=False)
assert result.particles.shape == (100, 2), result.particles.shape
print("imported", sorted({"jax", "torch", "scipy", "pandas"} & set(sys.modules)) or "nothing else")
assert not {"jax", "torch"} & set(sys.modules)
"""


def contents(wheel: Path) -> None:
    """What has to be in it, what must not, and what glibc it asks for."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (module,) = [name for name in names if re.search(r"_steinflow\.(abi3\.so|pyd)$", name)]
        library = archive.read(module)
    for wanted in (
        "steinflow/py.typed",
        "steinflow/_steinflow.pyi",
        "LICENSE-MIT",
        "entry_points.txt",
    ):
        assert any(name.endswith(wanted) for name in names), (
            f"{wanted} is missing from {wheel.name}"
        )
    assert not [name for name in names if "tests/" in name or "__pycache__" in name], names
    versions = {tuple(map(int, pair)) for pair in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    promised = re.search(r"manylinux_(\d+)_(\d+)", wheel.name)
    if versions:
        needs = max(versions)
        print(f"{wheel.name}: {len(library) >> 20} MiB, needs glibc {needs[0]}.{needs[1]}")
        if promised:
            assert needs <= tuple(map(int, promised.groups())), "newer than its name says"


def main() -> int:
    wheels = sorted(
        (ROOT / "target" / "wheels").glob("*.whl"), key=lambda path: path.stat().st_mtime
    )
    if not wheels:
        sys.exit("there is no wheel: `cargo xtask wheel` builds one")
    contents(wheels[-1])
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    if not pip_install(ENVIRONMENT, [str(wheels[-1])]):
        sys.exit(f"{wheels[-1].name} cannot be installed here")
    for command in (
        ["python", "-I", "-c", USE],
        ["steinflow", "--version"],
        ["steinflow", "sample", "banana", "--method", "svgd", "--steps", "50", "--out", "run"],
    ):
        subprocess.run(
            [program(ENVIRONMENT, command[0]), *command[1:]], cwd=ENVIRONMENT, check=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
