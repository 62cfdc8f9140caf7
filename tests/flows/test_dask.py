"""Counting on real Dask workers: as this process counts, whoever dies, and out of everybody else's reach."""

import logging
import os
import secrets
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import dask.config
import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from distributed import Client, Future, LocalCluster
from support import dying_worker
from support.late_worker import PREFIX, Copy, count_late, count_now
from support.small_release import write_release

from ppsyn.data.marginals import Rows, TableCounter, cache
from ppsyn.data.marginals import distributed as spread
from ppsyn.data.snapshot import Shelf, Snapshot, write_codes
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import ClusterError, InvariantError, SourceError
from ppsyn.flows.cli.main import main
from ppsyn.flows.release import release
from ppsyn.releases.audit import audit
from ppsyn.runs import run as runs
from ppsyn.schemas.config import RuntimeConfig
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store
from ppsyn.tasks import dask as dask_tasks

pytestmark = pytest.mark.slow


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many marginals were counted both ways; they must be equal."""
    seen: list[int] = []

    def both(snapshot: Snapshot, cliques: Iterable[Clique], room_mb: float, rows: Rows | None = None) -> TableCounter:
        asked = list(cliques)
        assert isinstance(rows, spread.Spread)
        opened = cache.open_counter(snapshot, asked, room_mb, rows)
        for clique, counts in opened.marginals(asked):
            assert counts.tobytes() == snapshot.count([clique])[0].tobytes()
        seen.append(len(asked))
        return opened

    monkeypatch.setattr(runs, "open_counter", both)
    return seen


def assert_whole(url: str, folder: Path) -> None:
    assert [finding for finding in audit(open_store(Location(url=url))) if finding.problem is not None] == []
    assert list((folder / "out").rglob("private")) == []


@pytest.mark.usefixtures("prefect_api")
def test_a_worker_that_is_killed_in_the_middle_costs_time_and_nothing_else(
    tmp_path: Path, compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "dead"
    monkeypatch.setenv(dying_worker.MARKER, str(marker))
    file = write_release(tmp_path, runtime={"workers": 2, "parts": 3})
    with dask.config.set({"distributed.worker.preload": [dying_worker.__file__]}):
        url = release(str(file))
    assert marker.exists()
    assert compared
    assert_whole(url, tmp_path)


@pytest.mark.usefixtures("prefect_api")
def test_an_error_of_a_worker_tells_nothing_and_leaves_the_run_to_be_resumed(
    tmp_path: Path,
    prefect_server_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    canary = f"canary{secrets.token_hex(8)}"
    caplog.set_level(logging.DEBUG)
    file = write_release(tmp_path, runtime={"workers": 1, "parts": 1})
    with monkeypatch.context() as patch, dask.config.set({"distributed.worker.preload": [dying_worker.__file__]}):
        patch.setenv(dying_worker.TEXT, canary)
        state = release(str(file), return_state=True)
    error = state.result(raise_on_failure=False)
    assert isinstance(error, InvariantError)
    told = f"{state.message} {''.join(traceback.format_exception(error))} {caplog.text} {''.join(capfd.readouterr())}"
    assert "ValueError in count_part" in told
    assert canary not in told
    assert [
        path for path in prefect_server_folder.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()
    ] == []
    (run,) = (path.name for path in (tmp_path / "out/runs").iterdir())
    assert canary in (tmp_path / f"out/runs/{run}/private/failure.txt").read_text()
    assert_whole(release(str(file), settings=("runtime={}",), resume=run), tmp_path)


@pytest.mark.usefixtures("prefect_api")
def test_a_scheduler_that_is_there_already_is_used_also_in_rounds_that_count_anew(
    tmp_path: Path, compared: list[int]
) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as there:
        runtime = {"scheduler": there.scheduler_address, "parts": 2, "marginals_mb": 0.001}
        url = release(str(write_release(tmp_path, runtime=runtime)))
    assert compared
    assert_whole(url, tmp_path)


def test_workers_listen_on_loopback_and_keep_their_memory() -> None:
    with dask_tasks.start_workers(RuntimeConfig(workers=2)) as runner:
        assert runner is not None
        assert set(runner.client.run(os.getenv, "MALLOC_TRIM_THRESHOLD_").values()) == {None}
        assert runner.client.scheduler is not None
        assert runner.client.scheduler.address.startswith("tls://127.0.0.1:")
        family = [psutil.Process(), *psutil.Process().children(recursive=True)]
        listening = {
            (process.pid, socket.laddr.ip)
            for process in family
            for socket in process.net_connections()
            if socket.status == psutil.CONN_LISTEN
        }
        assert {ip for _, ip in listening} == {"127.0.0.1"}
        assert len({pid for pid, _ in listening}) >= 3
        page = f"http://127.0.0.1:{runner.client.scheduler_info()['services']['dashboard']}/status"
        with pytest.raises(HTTPError, match="404"):
            urlopen(page, timeout=10)


def test_a_scheduler_that_is_not_there_is_told_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_api: str
) -> None:
    file = write_release(tmp_path, runtime={"scheduler": "tcp://127.0.0.1:1"})
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        told = CliRunner().invoke(main, ["release", str(file)])
    assert told.exit_code == 6
    assert "Expected Dask workers at tcp://127.0.0.1:1" in told.output
    assert "--resume" in told.output
    assert "charge" not in "".join(path.read_text() for path in (tmp_path / "out/accounts").rglob("*.json"))


def test_a_scheduler_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_tasks, "_PATIENCE_SECONDS", 1)
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as there,
        pytest.raises(ClusterError, match="within 1 seconds"),
        dask_tasks.start_workers(RuntimeConfig(scheduler=there.scheduler_address)),
    ):
        pass


DOMAIN = Domain((Attribute("a", 4),))
FIRST, AGAIN = ([1, 1, 1], [2, 2]), ([0, 1, 2], [3, 3])
"""Codes of two fragments: of the rows of a person others are kept whenever the table is read."""


def snapshot_of(shelf: Shelf, fragments: Iterable[list[int]]) -> Snapshot:
    return Snapshot(
        shelf,
        DOMAIN,
        [write_codes(shelf, str(number), {"a": np.array(codes)}, DOMAIN) for number, codes in enumerate(fragments)],
    )


class KilledError(Exception):
    """What was counting died, and its workers did not."""


@pytest.mark.parametrize("comes", ["before", "after"])
def test_what_a_worker_counted_of_an_earlier_copy_of_the_table_is_not_added(tmp_path: Path, comes: str) -> None:
    place, said, late = Location(url=str(tmp_path / "store")), tmp_path / "said", list[Future]()
    said.mkdir()
    shelf = Shelf(open_store(place), PREFIX)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as workers,
        Client(workers) as client,
    ):

        def begin(name: str, parts: int) -> None:
            del parts
            late.append(client.submit(count_late, Copy(place, DOMAIN, tuple(first.fragments)), name, said))
            while not (said / "counted").exists():
                time.sleep(0.02)
            raise KilledError

        def go_on(name: str, parts: int) -> None:
            for is_late in (True, False) if comes == "before" else (False, True):
                if is_late:
                    (said / "now").touch()
                    late[0].result(timeout=60)
                    assert shelf.store.has(f"{PREFIX}/passes/{name}/00000.bin")
                else:
                    copy = Copy(place, DOMAIN, tuple(again.fragments))
                    client.gather([client.submit(count_now, copy, name, part) for part in range(parts)])

        first = snapshot_of(shelf, FIRST)
        with pytest.raises(KilledError):
            spread.Spread(first, 2, begin).count([("a",)])
        again = snapshot_of(shelf, AGAIN)
        if comes == "after":
            with pytest.raises(SourceError, match="Expected the counts of every part"):
                spread.Spread(again, 2, go_on).count([("a",)])
        else:
            assert spread.Spread(again, 2, go_on).count([("a",)])[0].tolist() == [1, 1, 1, 2]
