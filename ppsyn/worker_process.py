"""What every process does first that was started to work for another."""

import ctypes
import signal
import sys

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def prepare() -> None:
    """Leave Ctrl-C to the parent, and end with it should it be killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
