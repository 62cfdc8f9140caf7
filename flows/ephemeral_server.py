"""A Prefect server of our own, for as long as a command runs, where none is configured.

Started before Prefect is imported, so that both happen at once. Prefect can start such a server by itself, but gives up
after 20 seconds: on two cores that fifteen processes shared, its first start timed out and the flow failed, where this
one waited and the whole command took 100 seconds (one run each, Prefect 3.8). The gain on an idle machine is not known.
It keeps its history in
PREFECT_HOME like any other, where `prefect server start` shows it. It is for whoever started
it alone: it asks for a password that is made for it and known to its clients by their
environment, its files are closed to other users, and it gets no keys of stores.
"""

import ctypes
import fcntl
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from ppsyn.errors import translated
from ppsyn.flows.cli.output import ServerError

_PATIENCE_SECONDS = 180
_GOODBYE_SECONDS = 10
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_OWNER_ALONE = 0o077
_KEPT = "prefect.db*"
_LOG = "embedded.log"

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
    "GX_ANALYTICS_ENABLED": "False",
}
"""No telemetry, no pickle, logs to the server and not to the terminal, unless the environment says otherwise."""

_IDLE_SERVICES = (
    "CANCELLATION_CLEANUP",
    "CLEANUP_RECONCILER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
)
"""What serves schedules, workers and automations: a server that lives as long as one run has none of them."""

_PASSED_ON = re.compile(
    r"PREFECT_(?!API_(AUTH_STRING|KEY)$).*|PYTHON.*|LC_.*|XDG_.*|SSL_CERT_.*|LANG|LANGUAGE|PATH|HOME|USER|LOGNAME|SHELL|TZ|TMPDIR|VIRTUAL_ENV"
    r"|LD_LIBRARY_PATH|DO_NOT_TRACK|COVERAGE_.*"
)
"""The environment variables that the server gets: what programs need, and Prefect's own settings. No key of a store."""

_OWN_SERVER = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": "http://127.0.0.1",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _IDLE_SERVICES},
}


@contextmanager
def prefect_api(meanwhile: Callable[[], None] = lambda: None) -> Generator[None]:
    """Have a Prefect API: the one that is configured, or a server of our own until the block ends.

    Args:
        meanwhile: What there is to do while the server starts, such as imports and checks.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if is_configured():
        see_that_it_answers(os.environ.get("PREFECT_API_URL"))
        meanwhile()
        yield
        return
    home = _home()
    with _lock(home) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two first starts at once would both make the database
        port, password = _free_port(), f"ppsyn:{secrets.token_hex(32)}"
        server = _start(port, home, password)
        before = os.environ.get("PREFECT_API_AUTH_STRING")
        os.environ |= {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_API_AUTH_STRING": password}
        try:
            meanwhile()
            _wait(server, port, home)
            fcntl.flock(lock, fcntl.LOCK_UN)
            yield
        finally:
            _flush()
            for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):
                os.environ.pop(name, None)
            if before is not None:
                os.environ["PREFECT_API_AUTH_STRING"] = before
            _stop(server)


def _lock(home: Path) -> IO[str]:
    """A file of Prefect's folder, which is made if it is missing."""

    def describe(error: OSError | ValueError) -> str:
        reason = error.strerror if isinstance(error, OSError) else "no folder can have such a name"
        return f"Cannot write to PREFECT_HOME={home}: {reason}. Set PREFECT_HOME to a folder that you may write to."

    with translated((OSError, ValueError), to=ServerError, message=describe):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (home / "embedded.lock").open("w")


def is_configured() -> bool:
    """Whether the environment or the active profile names an API."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    try:
        profiles = tomllib.loads((_home() / "profiles.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return False
    active = os.environ.get("PREFECT_PROFILE", profiles.get("active"))
    return bool(profiles.get("profiles", {}).get(active, {}).get("PREFECT_API_URL"))


def see_that_it_answers(url: str | None) -> None:
    """Whatever it answers will do: some servers want to know who asks first."""
    if url is not None:
        try:
            urlopen(f"{url}/health", timeout=10).close()  # as configured
        except HTTPError:
            return
        except (URLError, OSError) as error:
            raise ServerError(f"The Prefect server at {url} does not answer: {error}.") from None


def _home() -> Path:
    return Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(port: int, home: Path, password: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error", "--timeout-graceful-shutdown", "5"]
    for path in (*home.glob(_KEPT), *home.glob(_LOG)):  # of a version that left them open to all
        path.chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    with open(home / _LOG, "ab", opener=_closed_to_others) as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**environment, **_OWN_SERVER, "PREFECT_SERVER_API_AUTH_STRING": password},
            umask=_OWNER_ALONE,
            start_new_session=True,  # Ctrl-C is for us; the server is stopped after the run has said goodbye
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # one prctl, no locks
        )


def _closed_to_others(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _die_with_parent() -> None:
    """Have the kernel stop the server should this process be killed."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _wait(server: subprocess.Popen[bytes], port: int, home: Path) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < give_up and server.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5):  # our own server
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise ServerError(f"The embedded Prefect server did not start; see {home / _LOG}.")


def _flush() -> None:
    """Have the last logs and events arrive before the server goes."""
    for module, name in (("prefect.logging.handlers", "APILogWorker"), ("prefect.events.worker", "EventsWorker")):
        if module in sys.modules:
            getattr(sys.modules[module], name).drain_all(timeout=_GOODBYE_SECONDS)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
