"""One of each server for a whole test run: the process that starts the workers starts it when a test asks.

A mark that sends such tests to one worker (`xdist_group`) would need less, but pytest 9.2 ignores it.
"""

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path
from subprocess import SubprocessError
from threading import Thread

from support.servers import PostgreSQL, PrefectServer, SeaweedFS, postgresql, prefect_server, seaweedfs

Server = SeaweedFS | PostgreSQL | PrefectServer
_STARTS: Mapping[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "seaweedfs": seaweedfs,
    "postgresql": postgresql,
    "prefect": prefect_server,
}


@dataclass(frozen=True, slots=True)
class Pool:
    """Where to ask for servers. A worker gets one by its two fields."""

    address: str
    key: str = field(repr=False)

    def ask(self, name: str) -> Server:
        """The server of that name, started if it was not."""
        with Client(self.address, authkey=bytes.fromhex(self.key)) as link:
            link.send(name)
            answer = link.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def open_pool() -> tuple[Pool, Callable[[], None]]:
    """A pool, and what ends it with all its servers."""
    folder = Path(tempfile.mkdtemp(prefix="ppsyn-servers-"))
    pool = Pool(str(folder / "socket"), secrets.token_hex(32))
    listener = Listener(pool.address, authkey=bytes.fromhex(pool.key))
    thread = Thread(target=_serve, args=(listener, folder), daemon=True)
    thread.start()

    def close() -> None:
        with contextlib.suppress(OSError):
            pool.ask("stop")
        thread.join()
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)

    return pool, close


def _serve(listener: Listener, folder: Path) -> None:
    """Answer one after the other. All in one thread: the kernel ends a server with the thread that started it."""
    running: dict[str, Server] = {}
    with contextlib.ExitStack() as stack:
        while True:
            with contextlib.suppress(OSError, EOFError, AuthenticationError), listener.accept() as link:
                name = link.recv()
                if name == "stop":
                    link.send(None)
                    return
                try:
                    if name not in running:
                        running[name] = stack.enter_context(_STARTS[name](folder / name))
                    link.send(running[name])
                except (RuntimeError, OSError, SubprocessError) as error:  # or whoever asks would wait for ever
                    link.send(RuntimeError(f"{name} did not start: {error}"))
