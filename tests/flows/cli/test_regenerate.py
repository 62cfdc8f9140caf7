"""More rows from a published release: the same whatever the row groups, in bounded memory, all or nothing."""

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import knots
from support.published import SCHEMA, Published, make_release, shared_release

import ppsyn
import ppsyn.tasks.dask  # Prefect, first imported while click holds the streams, leaves them closed
from ppsyn.code_version import code_version
from ppsyn.data.encoding import encode
from ppsyn.data.sources import read_batches
from ppsyn.errors import ClusterError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.flows.cli.releases import recipe_of, write_file
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.releases.tables import PART_BLOCKS, make_part, part_rows
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource

PPSYN = Path(sys.executable).parent / "ppsyn"
ROWS = 300_000
"""Two blocks and a part of one."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.mark.parametrize("group_rows", [1_000_003, 131_072, 50_000])
def test_rows_are_the_same_for_any_row_group(release: Published, tmp_path: Path, group_rows: int) -> None:
    recipe = recipe_of(release.store, ROWS, 7)
    out = tmp_path / "rows.parquet"
    assert write_file(recipe, out, group_rows, is_quiet=True) == ROWS
    first = pq.ParquetFile(out).metadata.row_group(0).num_rows
    assert first == min(group_rows, ROWS)
    assert pq.read_table(out).to_pandas().equals(ppsyn.load(release.folder).generate(ROWS, seed=7))


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_csv_file_reads_back_as_the_rows_of_a_parquet_file(release: Published, tmp_path: Path, name: str) -> None:
    told = CliRunner().invoke(
        main, ["regenerate", str(release.folder), "--rows", "5000", "--seed", "7", "--out", str(tmp_path / name)]
    )
    assert told.exit_code == 0, told.stderr
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path / name)))
    (batch,) = read_batches(source, SCHEMA, None)
    made = ppsyn.load(release.folder).generate(5000, seed=7)
    read, meant = (encode(frame, SCHEMA).columns for frame in (batch.frame, made))
    assert all((read[column] == meant[column]).all() for column in meant)
    assert len(batch.frame) == 5000
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b'"s')


@pytest.mark.parametrize("name", ["rows", "rows.xlsx", "csv"])
def test_a_name_that_tells_no_format_is_refused_before_anything_is_made(
    release: Published, tmp_path: Path, name: str
) -> None:
    told = CliRunner().invoke(main, ["regenerate", str(release.folder), "--out", str(tmp_path / name)])
    assert (told.exit_code, list(tmp_path.iterdir())) == (Exit.MISTAKE, [])
    assert ".csv.gz" in told.stderr


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Published:
    settings = {"privacy": knots.BUDGET, "account": {"cap": knots.BUDGET}, "algorithm": knots.SETTINGS}
    return make_release(tmp_path_factory.mktemp("tied"), knots.ring(), knots.SCHEMA, changes=settings)


@pytest.mark.parametrize("rows", [1_000, pytest.param(2**20, marks=pytest.mark.slow)])
def test_a_million_rows_have_all_that_a_thousand_have(tied: Published, tmp_path: Path, rows: int) -> None:
    arguments = ["regenerate", str(tied.folder), "--rows", str(rows), "--out", str(tmp_path / "rows.parquet")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    table = pq.read_table(tmp_path / "rows.parquet").to_pandas()
    assert min(knots.tied(table).values()) > 0.85


@pytest.mark.parametrize("way", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_what_is_interrupted_leaves_the_file_that_was_there(
    release: Published, tmp_path: Path, way: signal.Signals
) -> None:
    out = tmp_path / "rows.parquet"
    out.write_bytes(b"old")
    command = [str(PPSYN), "regenerate", str(release.folder), "--rows", "1000000000", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        ends = time.monotonic() + 60
        while not any(path.stat().st_size > 2**16 for path in tmp_path.glob(".rows.parquet.*.part")):
            assert time.monotonic() < ends
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(way)
        _, told = process.communicate(timeout=60)
    assert out.read_bytes() == b"old"
    assert b"Traceback" not in told
    if way == signal.SIGINT:
        assert process.returncode == Exit.INTERRUPTED
        assert list(tmp_path.iterdir()) == [out]


_GROWTH = """
import sys
from pathlib import Path
from ppsyn.flows.cli.releases import recipe_of, write_file
from performance.resources import peak_mb
from ppsyn.storage import open_store
from ppsyn.schemas.locations import Location

def peak_after(rows):
    write_file(recipe_of(store, rows, None), Path(sys.argv[2]), 2**17, is_quiet=True)
    return round(peak_mb())

store = open_store(Location(url=sys.argv[1]))
print(peak_after(1_000_000), peak_after(15_000_000))
"""


@pytest.mark.slow
def test_many_rows_take_the_memory_of_few(release: Published, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _GROWTH, str(release.folder), str(tmp_path / "rows.parquet")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    few, many = map(int, told.split())
    assert many - few < 50  # of 15 million rows, 400 MB
    assert many < 600


@pytest.mark.slow
def test_workers_make_the_rows_that_one_process_makes_even_if_one_of_them_dies(
    release: Published, tmp_path: Path
) -> None:
    rows = 60 * BLOCK_ROWS + 5
    alone, spread = tmp_path / "alone.parquet", tmp_path / "spread"
    write_file(recipe_of(release.store, rows, 3), alone, 100_000, is_quiet=True)
    command = [str(PPSYN), "regenerate", str(release.folder), "--rows", str(rows), "--seed", "3"]
    command += ["--row-group", "200000", "--workers", "2", "--out", str(spread)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        ends = time.monotonic() + 200
        while not list(tmp_path.glob(".spread.*.part/*.parquet")):
            assert time.monotonic() < ends
            assert process.poll() is None
            time.sleep(0.02)
        workers = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if "spawn_main" in " ".join(child.cmdline())
        ]
        assert len(workers) == 2
        workers[0].kill()
        assert not spread.exists()
        _, told = process.communicate(timeout=200)
    assert (process.returncode, b"INFO" in told) == (0, False), told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.parquet", "spread"]
    assert pq.read_table(spread).equals(pq.read_table(alone))
    assert not any(worker.is_running() for worker in workers)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(0, 3 * PART_BLOCKS * BLOCK_ROWS))
def test_parts_have_all_the_rows_and_are_at_least_one(release: Published, rows: int) -> None:
    sizes = list(part_rows(recipe_of(release.store, rows, 3)))
    assert (sum(sizes), set(sizes[:-1]) <= {PART_BLOCKS * BLOCK_ROWS}) == (rows, True)
    assert len(sizes) == max(1, -(-rows // (PART_BLOCKS * BLOCK_ROWS)))


def test_parts_end_to_end_are_the_table(release: Published) -> None:
    rows = PART_BLOCKS * BLOCK_ROWS + 3
    recipe = recipe_of(release.store, rows, 3)
    made = [make_part(recipe, number, 150_000, code_version().source) for number in (0, 1)]
    tables = [pq.read_table(io.BytesIO(data)) for data in made]
    assert [table.num_rows for table in tables] == [rows - 3, 3]
    assert pa.concat_tables(tables).to_pandas().equals(ppsyn.load(release.folder).generate(rows, seed=3))
    empty = pq.read_table(io.BytesIO(make_part(recipe_of(release.store, 0, 3), 0, 9, code_version().source)))
    assert (empty.num_rows, empty.schema) == (0, tables[0].schema)


def test_a_worker_with_other_code_makes_nothing(release: Published) -> None:
    with pytest.raises(ClusterError, match="same version"):
        make_part(recipe_of(release.store, 5, 3), 0, 9, "0" * 64)


def test_workers_do_not_write_into_what_is_there(release: Published, tmp_path: Path) -> None:
    out = tmp_path / "x"
    out.write_bytes(b"old")
    told = CliRunner().invoke(main, ["regenerate", str(release.folder), "--out", str(out), "--workers", "1"])
    assert (told.exit_code, out.read_bytes()) == (Exit.STORE, b"old")
    assert "a new folder" in told.stderr


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told_and_leaves_nothing(release: Published, tmp_path: Path) -> None:
    command = [str(PPSYN), "regenerate", str(release.folder), "--out", str(tmp_path / "x"), "--scheduler"]
    told = subprocess.run([*command, "tcp://127.0.0.1:1"], capture_output=True, text=True, check=False, timeout=200)
    assert (told.returncode, "Traceback" in told.stderr, list(tmp_path.iterdir())) == (Exit.STORE, False, [])
    assert "tcp://127.0.0.1:1" in told.stderr


@pytest.mark.parametrize(
    "options", [["--workers", "0"], ["--scheduler", "nonsense"], ["--workers", "1", "--scheduler", "tcp://a:1"]]
)
def test_workers_that_cannot_be_are_told_before_anything_is_made(
    release: Published, tmp_path: Path, options: list[str]
) -> None:
    told = CliRunner().invoke(main, ["regenerate", str(release.folder), "--out", str(tmp_path / "x"), *options])
    assert told.exit_code == Exit.MISTAKE
    assert options[0].strip("-") in told.stderr
    assert list(tmp_path.iterdir()) == []
