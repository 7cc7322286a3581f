"""Ctrl-C during a run: the first ends it after the step it is in, the second at once."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from steinflow._steinflow import Interrupt


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """An interrupt that Ctrl-C raises while the block runs; other threads get no signals."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: Any) -> None:
        if interrupt.raise_flag():
            raise KeyboardInterrupt
        print("stopping after this step; again to give up at once", file=sys.stderr)

    earlier = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        # A handler that was not set from Python cannot be set again.
        signal.signal(signal.SIGINT, signal.default_int_handler if earlier is None else earlier)
