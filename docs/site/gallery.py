"""Makes the pictures of the gallery again, each by the command under it.

`python docs/site/gallery.py [STEINFLOW]`, with the path of the command if it is not installed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
PICTURE = re.compile(r"!\[[^]]*\]\(([\w/-]+\.png)\)\n\n```sh\n(steinflow [^\n#]*--out (\S+))")


def main() -> None:
    command = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "steinflow")
    if command is None:
        sys.exit("there is no such command: give the path of `steinflow` as the argument")
    found = PICTURE.findall((DOCS / "gallery.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for picture, line, out in found:
            subprocess.run([Path(command).resolve(), *line.split()[1:]], cwd=folder, check=True)
            run = Path(folder) / out
            names = ["predictions.png", "particles.png"]
            made = next(run / name for name in names if (run / name).exists())
            shutil.copyfile(made, DOCS / picture)


if __name__ == "__main__":
    main()
