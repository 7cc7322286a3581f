"""Makes the virtual environment that the Python package is tested in: `target/python`.

It is made again when the requirements or the Python have changed, and reused otherwise. The extension
module that cargo has built is put into the package, and the package on the environment's path.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = HERE / "python" / "steinflow"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
ENVIRONMENT = ROOT / "target" / "python"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")


def pip_install(packages: list[str]) -> bool:
    """Whether all of them could be installed."""
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    command = [PROGRAMS / "python", "-m", "pip", "install", *options, *packages]
    return subprocess.run(command, check=False).returncode == 0


def requirements(name: str) -> list[str]:
    lines = (HERE / "tests" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def make_environment() -> None:
    needed, wanted = requirements("requirements.txt"), requirements("peers.txt")
    stamp = ENVIRONMENT / "steinflow-stamp"
    fingerprint = hashlib.sha256(repr((sys.version, needed, wanted)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    print(f"making {ENVIRONMENT}", flush=True)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    if not pip_install(needed):
        sys.exit(f"pip could not install what the tests need: {' '.join(needed)}")
    # Together when all is well; else one by one, and the tests of those that fail are skipped.
    if not pip_install(wanted):
        missing = [package for package in wanted if not pip_install([package])]
        print(f"not installed, so their tests are skipped: {' '.join(missing)}", flush=True)
    package_path = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    found = subprocess.run(
        [PROGRAMS / "python", "-c", package_path], check=True, capture_output=True, text=True
    )
    (Path(found.stdout.strip()) / "steinflow.pth").write_text(
        f"{PACKAGE.parent}\n", encoding="utf-8"
    )
    stamp.write_text(fingerprint)


def put_extension_in_place() -> None:
    names = {"win32": ("_steinflow.dll", "_steinflow.pyd")}
    ending = "dylib" if sys.platform == "darwin" else "so"
    built, placed = names.get(sys.platform, (f"lib_steinflow.{ending}", "_steinflow.abi3.so"))
    # Under another name first: a library that is loaded somewhere must not change under it.
    fresh = PACKAGE / f"{placed}.new"
    shutil.copyfile(TARGET / "debug" / built, fresh)
    fresh.replace(PACKAGE / placed)


if __name__ == "__main__":
    make_environment()
    if "--tools-only" not in sys.argv[1:]:
        put_extension_in_place()
