"""The `steinflow` command: `python -m steinflow`, or the script of the package."""

import signal
import sys

from steinflow._steinflow import command


def main() -> None:
    # Ctrl-C is the command's own affair.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(["steinflow", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
