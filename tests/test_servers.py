"""The servers that other tests stand on are real, private to this machine, and end when they should."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import obstore
import psutil
import psycopg
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store
from support.server_pool import open_pool
from support.servers import (
    BUCKET,
    HOST,
    PostgreSQL,
    PrefectServer,
    SeaweedFS,
    free_ports,
    new_database,
    postgresql,
    prefect_server,
    seaweedfs,
)

from ppsyn.schemas.locations import Location
from ppsyn.storage.store import open_store

SERVERS = ("seaweedfs_server", "postgresql_server", "prefect")


def tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def listening(pid: int) -> set[tuple[str, int]]:
    found = []
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # a database has children that come and go
            found += process.net_connections("inet")
    return {(link.laddr.ip, link.laddr.port) for link in found if link.status == psutil.CONN_LISTEN}


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def are_gone(processes: list[psutil.Process], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not (gone := all(map(is_gone, processes))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return gone


def bucket(server: SeaweedFS, secret_key: str, name: str = BUCKET) -> S3Store:
    return S3Store(
        name,
        config={
            "endpoint": server.endpoint,
            "access_key_id": server.access_key,
            "secret_access_key": secret_key,
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


def sockets(ports: list[int]) -> list[Path]:
    """What an object store keeps in the shared folder."""
    return [path for port in ports for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock")]


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as listener:
            listener.bind((HOST, port))
            listener.listen()


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_listens_on_loopback_only(
    name: str, seaweedfs_server: SeaweedFS, postgresql_server: PostgreSQL, prefect: PrefectServer
) -> None:
    server = dict(zip(SERVERS, (seaweedfs_server, postgresql_server, prefect), strict=True))[name]
    assert {address for address, _ in listening(server.pid)} == {HOST}


def test_a_server_is_started_once_for_all_who_ask(postgresql_server: PostgreSQL) -> None:
    pool, close = open_pool()
    try:
        first = pool.ask("postgresql")
        assert pool.ask("postgresql") == first != postgresql_server
        processes = tree(first.pid)
    finally:
        close()
    assert are_gone(processes)
    assert not Path(pool.address).parent.exists()


def test_the_object_store_answers_its_user_and_refuses_others(seaweedfs_server: SeaweedFS) -> None:
    obstore.put(bucket(seaweedfs_server, seaweedfs_server.secret_key), "test-servers/object", b"1")
    assert status(f"{seaweedfs_server.endpoint}/{BUCKET}/test-servers/object") == 403
    with pytest.raises(BaseError):
        obstore.put(bucket(seaweedfs_server, "wrong"), "test-servers/object", b"2")


def test_the_user_of_the_object_store_makes_no_buckets(seaweedfs_server: SeaweedFS) -> None:
    with pytest.raises((BaseError, FileNotFoundError)):
        obstore.put(bucket(seaweedfs_server, seaweedfs_server.secret_key, "no-such-bucket"), "object", b"1")


def test_every_test_gets_a_folder_of_its_own_in_the_bucket(s3: Location) -> None:
    store = open_store(s3)
    assert store.keys() == []
    assert store.create("object", b"1")


def test_the_database_server_refuses_a_wrong_password(postgresql_server: PostgreSQL) -> None:
    name, _, address = postgresql_server.url.rpartition("@")
    wrong = f"{name.rpartition(':')[0]}:wrong@{address}"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_every_test_gets_an_empty_database(postgres: str, postgresql_server: PostgreSQL) -> None:
    with psycopg.connect(postgres) as connection:
        tables = connection.execute("SELECT * FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == []
    assert new_database(postgresql_server) != postgres


def test_prefect_answers_and_its_files_can_be_searched(prefect_api: str, prefect_server_folder: Path) -> None:
    assert status(f"{prefect_api}/health") == 200
    assert (prefect_server_folder / "prefect.db").is_file()
    code = "import sys; from prefect.settings import PREFECT_API_URL; sys.stdout.write(PREFECT_API_URL.value())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == prefect_api


@pytest.mark.slow
def test_prefect_keeps_its_tables_in_postgresql(postgres: str, tmp_path: Path) -> None:
    with prefect_server(tmp_path, postgres) as server, psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT count(*) FROM flow_run").fetchone() == (0,)
        assert server.database is None
        assert not (tmp_path / "prefect.db").exists()


@pytest.mark.slow
def test_a_prefect_server_with_a_password_asks_for_it_and_is_gone_after_exit(
    prefect_server_folder: Path, tmp_path: Path
) -> None:
    for file in prefect_server_folder.glob("prefect.db*"):  # migrated already
        shutil.copy(file, tmp_path)
    with prefect_server(tmp_path, settings={"PREFECT_SERVER_API_AUTH_STRING": "user:secret"}) as server:
        assert status(f"{server.api_url}/admin/version") == 401
        processes = tree(server.pid)
    assert are_gone(processes)


@pytest.mark.parametrize("run", [seaweedfs, postgresql])
def test_a_server_is_gone_after_exit(run: type[seaweedfs] | type[postgresql], tmp_path: Path) -> None:
    with run(tmp_path) as server:
        processes, ports = tree(server.pid), [port for _, port in listening(server.pid)]
    assert are_gone(processes)
    assert sockets(ports) == []


@pytest.mark.slow
def test_the_object_store_keeps_what_it_has_when_it_starts_again(tmp_path: Path) -> None:
    with seaweedfs(tmp_path) as server:
        obstore.put(bucket(server, server.secret_key), "kept", b"1", mode="create")
    with seaweedfs(tmp_path) as server:
        store = bucket(server, server.secret_key)
        for _ in range(150):  # it answers before it has found its volumes again
            with contextlib.suppress(BaseError):
                assert obstore.get(store, "kept").bytes().to_bytes() == b"1"
                return
            time.sleep(0.2)
    pytest.fail("The object is gone.")


@pytest.mark.parametrize("name", ["seaweedfs", "postgresql", pytest.param("prefect_server", marks=pytest.mark.slow)])
def test_a_server_is_gone_after_its_parent_was_killed(name: str, tmp_path: Path) -> None:
    code = (
        f"import sys, time, pathlib; sys.path.insert(0, {str(Path(__file__).parent)!r}); from support import servers\n"
        f"with servers.{name}(pathlib.Path({str(tmp_path)!r})) as server:\n"
        "    sys.stdout.write(f'{server.pid}\\n'); sys.stdout.flush(); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        processes, ports = tree(pid), [port for _, port in listening(pid)]
        parent.send_signal(signal.SIGKILL)
    assert are_gone(processes)
    for left in sockets(ports):
        left.unlink()
