"""Makes the virtual environments that the Python package is tested in: `target/python`, `target/torch`.

One is made again when its requirements or the Python have changed, and reused otherwise. The extension
module that cargo has built is put into the package, and the package on the environment's path.

PyTorch has an environment of its own: its wheel for Linux brings 5 GB of libraries for GPUs, which take
about two minutes to install.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = HERE / "python" / "steinflow"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def program(environment: Path, name: str = "python") -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


def pip_install(environment: Path, packages: list[str]) -> bool:
    """Whether all of them could be installed."""
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    command = [program(environment), "-m", "pip", "install", *options, *packages]
    return subprocess.run(command, check=False).returncode == 0


def requirements(name: str) -> list[str]:
    lines = (HERE / "tests" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def make_environment(environment: Path, needed: list[str], wanted: list[str]) -> None:
    """Installs what is needed, or ends; and what is wanted, where it can be had."""
    stamp = environment / "steinflow-stamp"
    fingerprint = hashlib.sha256(repr((sys.version, needed, wanted)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    print(f"making {environment}", flush=True)
    venv.create(environment, clear=True, with_pip=True)
    if not pip_install(environment, needed):
        sys.exit(f"pip could not install what the tests need: {' '.join(needed)}")
    # Together when all is well; else one by one, and the tests of those that fail are skipped.
    if wanted and not pip_install(environment, wanted):
        missing = [package for package in wanted if not pip_install(environment, [package])]
        print(f"not installed, so their tests are skipped: {' '.join(missing)}", flush=True)
    package_path = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    found = subprocess.run(
        [program(environment), "-c", package_path], check=True, capture_output=True, text=True
    )
    (Path(found.stdout.strip()) / "steinflow.pth").write_text(
        f"{PACKAGE.parent}\n", encoding="utf-8"
    )
    stamp.write_text(fingerprint)


def write_scripts(environment: Path) -> None:
    """The scripts of the package, as pip writes them."""
    if os.name == "nt":
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, entry in project["scripts"].items():
        module, function = entry.split(":")
        script = program(environment, name)
        lines = ("import sys", f"from {module} import {function}", f"sys.exit({function}())")
        script.write_text("\n".join((f"#!{program(environment)}", *lines, "")), encoding="utf-8")
        script.chmod(0o755)


def put_extension_in_place() -> None:
    names = {"win32": ("_steinflow.dll", "_steinflow.pyd")}
    ending = "dylib" if sys.platform == "darwin" else "so"
    built, placed = names.get(sys.platform, (f"lib_steinflow.{ending}", "_steinflow.abi3.so"))
    # Under another name first: a library that is loaded somewhere must not change under it.
    fresh = PACKAGE / f"{placed}.new"
    shutil.copyfile(TARGET / "debug" / built, fresh)
    fresh.replace(PACKAGE / placed)


def test_with_torch(installs: bool) -> int:
    """Runs the tests that need PyTorch, where it is or is to be installed."""
    environment = ROOT / "target" / "torch"
    if not installs and not (environment / "steinflow-stamp").exists():
        print("torch is not installed, so its tests are skipped; `cargo xtask torch` installs it")
        return 0
    packages = requirements("torch.txt")
    torch = [package for package in packages if package.startswith("torch")]
    make_environment(environment, [each for each in packages if each not in torch], torch)
    names = ("arrays", "documents", "ensemble", "sampler", "torch")
    command = [program(environment), "-m", "pytest", "-q", "-rs", "-k", "torch"]
    command += [HERE / "tests" / f"test_{name}.py" for name in names]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: list[str]) -> int:
    if arguments in (["--torch"], ["--torch-where-it-is"]):
        # A strict run lacks nothing that can be installed.
        return test_with_torch("--torch" in arguments or "STEINFLOW_EXCUSED" in os.environ)
    needed, wanted = requirements("requirements.txt"), requirements("peers.txt")
    make_environment(ROOT / "target" / "python", needed, wanted)
    if "--tools-only" not in arguments:
        put_extension_in_place()
        write_scripts(ROOT / "target" / "python")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
