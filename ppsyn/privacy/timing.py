"""How long a draw takes, as others may see it: a whole number of beats, whose length is public."""

import math
import time

_BEAT, _BEAT_OF_ONE = 0.002, 0.00002
"""Seconds, for any question and for each number in it: about what a draw of so many takes at most, most of the time."""


def beat(numbers: int) -> float:
    """Seconds of a beat for a draw over so many counts, figures or candidates, which the question tells."""
    return _BEAT + _BEAT_OF_ONE * numbers


def wait(began: float, numbers: int) -> None:
    """Return at the next whole number of beats after `began`, a reading of `time.monotonic`.

    Privacy:
        Samplers by rejection take as long as the noise and the scores have it (L4). Who
        sees when an answer comes learns how many beats it took, and in most draws one.
    """
    length = beat(numbers)
    due = began + length * math.ceil((time.monotonic() - began) / length)
    while (left := due - time.monotonic()) > 0:
        time.sleep(left)
