"""Signs of life of a run: whether some process goes on with it right now.

No clock is compared with another's: who looks waits to see whether the object changes. It decides who
steps back and never what is charged: two processes that go on with one run meet in its account.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from threading import Event, Thread
from uuid import uuid4

from ppsyn.errors import MissingError, PPSynError
from ppsyn.storage import Store

_BEAT_SECONDS = 5.0
_SILENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.5


@contextmanager
def beating(store: Store, run: str) -> Generator[None]:
    """Show that this process goes on with the run, until the block ends."""
    token, is_over = uuid4().hex, Event()
    thread = Thread(target=_beat, args=(store, run, token, is_over), name=f"pulse of {run}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_BEAT_SECONDS)
        with suppress(PPSynError):
            if (_seen(store, run) or "").startswith(token):  # not another's
                store.delete(_folder(run))


def is_beating(store: Store, run: str) -> bool:
    """Whether another process goes on with the run.

    Takes a minute if it was killed, and seconds otherwise.
    """
    first, give_up = _seen(store, run), time.monotonic() + _SILENCE_SECONDS
    while first is not None and time.monotonic() < give_up:
        time.sleep(_LOOK_SECONDS)
        now = _seen(store, run)
        if now != first:
            return now is not None
    return False


def was_heard(store: Store, run: str) -> bool:
    """Whether a process gave a sign within the last minute, by the clocks of the store and of this machine.

    For a person who looks. What decides anything waits, as `is_beating` does.
    """
    return _seen(store, run) is not None and not store.is_older(_folder(run), timedelta(seconds=_SILENCE_SECONDS))


def _beat(store: Store, run: str, token: str, is_over: Event) -> None:
    """A store that fails now and then is no reason to stop."""
    for number in count():
        with suppress(PPSynError):
            store.put(_key(run), f"{token} {number}\n".encode())
        if is_over.wait(_BEAT_SECONDS):
            return


def _seen(store: Store, run: str) -> str | None:
    """The last sign, or None if there is none."""
    with suppress(MissingError):
        return store.get(_key(run)).decode(errors="replace")
    return None


def _key(run: str) -> str:
    return f"{_folder(run)}/last"


def _folder(run: str) -> str:
    return f"runs/{run}/pulse"
