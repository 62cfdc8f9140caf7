import hashlib
import itertools
import json
import logging
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support.private_tables import CANARY, ROWS, SCHEMA, csv_source, parquet_source, sqlite_source

from ppsyn.data.encoding import encode
from ppsyn.data.ingest import ingest, is_ingested
from ppsyn.data.marginals import TableCounter, cache
from ppsyn.data.snapshot import FORMAT, Shelf, open_snapshot, read_contents
from ppsyn.domain import Clique
from ppsyn.errors import DomainRefusedError, SourceError, StoreError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, Source
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store

CLIQUES = [("age",), ("job.title",), ("age", "job.title")]
PERSON = PersonUnit(column="who", max_rows=1)
STRICT = TableSchema.model_validate(
    {
        "name": "strict",
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "nullable": True},
            {"name": "job.title", "kind": "categorical", "values": ["cook"], "outside": "refuse"},
        ],
        "excluded": ["who"],
    }
)

_numbers = itertools.count()


def memory() -> Location:
    return Location(url=f"memory://ingest-{next(_numbers)}")


def new_store() -> Store:
    return open_store(memory())


def open_counter(store: Store, prefix: str, schema: TableSchema, cliques: Sequence[Clique] = CLIQUES) -> TableCounter:
    return cache.open_counter(open_snapshot(Shelf(store, prefix), schema), cliques, 1.0)


def counts_of(counter: TableCounter) -> list[list[int]]:
    return [counter.counts(clique).tolist() for clique in CLIQUES]


def expected_counts(rows: list[dict[str, object]]) -> list[list[int]]:
    frame = pd.DataFrame(rows, columns=["age", "job.title", "who"]).astype(object)
    return counts_of(TableCounter(encode(frame, SCHEMA)))


ROW = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(-5, 105),
        "job.title": st.sampled_from([None, "", "cook", "nurse", "clown"]),
        "who": st.none() | st.integers(0, 3),
    }
)


# The snapshot is the table


@pytest.mark.parametrize("make", [csv_source, parquet_source, sqlite_source])
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(ROW, max_size=12), batch_rows=st.integers(1, 13))
def test_a_snapshot_counts_as_the_table_does(
    make: Callable[..., Source],
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, object]],
    batch_rows: int,
) -> None:
    location = tmp_path_factory.mktemp("sql") if make is sqlite_source else memory()
    store = new_store()
    ingest(make(location, rows, batch_rows=batch_rows), SCHEMA, None, store, "run/private")
    assert counts_of(open_counter(store, "run/private", SCHEMA)) == expected_counts(rows)


def test_snapshots_are_kept_in_folders(tmp_path: Path) -> None:
    check_place(Location(url=str(tmp_path / "store")))


def test_snapshots_are_kept_in_buckets(s3: Location) -> None:
    check_place(s3)


def check_place(at: Location) -> None:
    """Ingest from a place and into it, over what a killed ingest has left."""
    source, store = parquet_source(at.child("source"), ROWS), open_store(at.child("snapshots"))
    store.put("a/fragments/99999.parquet", b"left by a killed ingest")
    store.put("ab/other", b"someone else's")
    assert not is_ingested(store, "a")
    ingest(source, SCHEMA, PERSON, store, "a")
    assert is_ingested(store, "a")
    assert store.keys("a") == [*(f"a/fragments/0000{n}.parquet" for n in range(3)), "a/table.json"]
    assert counts_of(open_counter(store, "a", SCHEMA))[0][2] == 1
    assert store.has("ab/other")


def test_fragments_hold_small_codes_without_statistics_and_are_listed_with_their_digests() -> None:
    sizes = {"a": 256, "b": 257, "c": 65_537}
    columns = [{"name": name, "kind": "integer", "lower": 0, "upper": size - 1} for name, size in sizes.items()]
    schema = TableSchema.model_validate({"name": "t", "columns": columns})
    rows, store = [{name: size - 1 for name, size in sizes.items()}] * 3, new_store()
    ingest(csv_source(memory(), rows, names=list(sizes)), schema, None, store, "x")
    document = json.loads(store.get("x/table.json"))
    assert (document["format"], document["schema_digest"]) == (FORMAT, schema.digest())
    for fragment in document["fragments"]:
        data = store.get(f"x/{fragment['name']}")
        assert hashlib.sha256(data).hexdigest() == fragment["sha256"]
        file = parquet.ParquetFile(pa.BufferReader(data))
        assert [str(kind) for kind in file.schema_arrow.types] == ["uint8", "uint16", "uint32"]
        group = file.metadata.row_group(0)
        assert not any(group.column(i).is_stats_set for i in range(3))
    assert open_counter(store, "x", schema, []).counts(("c",))[-1] == 3


def test_an_empty_table_has_a_snapshot() -> None:
    store = new_store()
    ingest(csv_source(memory(), []), SCHEMA, PERSON, store, "x")
    assert counts_of(open_counter(store, "x", SCHEMA)) == expected_counts([])


# Persons


@pytest.mark.parametrize("make", [csv_source, parquet_source, sqlite_source])
@pytest.mark.parametrize("max_rows", [1, 2])
def test_no_person_has_more_rows_in_the_snapshot_than_the_bound(
    make: Callable[..., Source], max_rows: int, tmp_path: Path
) -> None:
    owners = [who for who in range(6) for _ in range(who)] + [None] * 4
    rows = [{"age": 90 if who is None else who, "job.title": "cook", "who": who} for who in owners]
    order = np.random.Generator(np.random.PCG64(3)).permutation(len(rows))
    source = make(tmp_path if make is sqlite_source else memory(), [rows[i] for i in order], batch_rows=3)
    store = new_store()
    ingest(source, SCHEMA, PersonUnit(column="who", max_rows=max_rows), store, "x")
    ages = open_counter(store, "x", SCHEMA).counts(("age",))
    assert [ages[who] for who in range(6)] == [min(who, max_rows) for who in range(6)]
    assert ages[90] == max_rows


def test_ids_never_reach_the_store() -> None:
    rows = [{"age": 1, "job.title": "cook", "who": f"{CANARY}-{number}"} for number in range(50)]
    store = new_store()
    written: list[bytes] = []
    put, store.put = store.put, lambda key, data: (written.append(data), put(key, data))[1]  # type: ignore[method-assign]
    ingest(parquet_source(memory(), rows), SCHEMA, PERSON, store, "x")
    assert written
    for data in written:
        assert CANARY.encode() not in data
        if data.startswith(b"PAR1"):
            assert parquet.read_schema(pa.BufferReader(data)).names == ["age", "job.title"]


# Stopping


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_refused_value_stops_the_ingest_and_leaves_nothing(
    place: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    rows = [{"age": 1, "job.title": "cook", "who": n} for n in range(613)]
    bad = {"age": 1, "job.title": CANARY, "who": CANARY}
    source = csv_source(memory(), [bad, *rows] if place == "first" else [*rows, bad], batch_rows=100)
    store = new_store()
    with pytest.raises(DomainRefusedError) as caught:
        ingest(source, STRICT, PERSON, store, "x")
    assert caught.value.column == "job.title"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    for secret in (CANARY, "613", "614"):
        assert secret not in told
    assert store.keys() == []


def test_an_ingest_that_was_killed_is_no_snapshot_and_the_next_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    source, store = csv_source(memory(), ROWS), new_store()

    def die(key: str, data: bytes) -> None:
        if key.endswith("table.json"):
            raise KeyboardInterrupt
        Store.put(store, key, data)

    monkeypatch.setattr(store, "put", die)
    monkeypatch.setattr(store, "delete", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        ingest(source, SCHEMA, None, store, "x")
    assert store.keys("x")
    assert not is_ingested(store, "x")
    with pytest.raises(SourceError, match="incomplete"):
        open_counter(store, "x", SCHEMA)
    monkeypatch.undo()
    ingest(source, SCHEMA, None, store, "x")
    assert counts_of(open_counter(store, "x", SCHEMA)) == expected_counts(list(ROWS))


def test_a_store_that_fails_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store()

    def refuse(key: str, _: bytes) -> None:
        raise StoreError(f"Cannot write {key}: full")

    monkeypatch.setattr(store, "put", refuse)
    with pytest.raises(StoreError, match="full"):
        ingest(csv_source(memory(), ROWS), SCHEMA, None, store, "x")


# Coming back


def damage(store: Store, key: str) -> None:
    data = bytearray(store.get(key))
    data[len(data) // 2] ^= 1
    store.put(key, bytes(data))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store: damage(store, "x/fragments/00001.parquet"),
        lambda store: store.put("x/fragments/00000.parquet", store.get("x/fragments/00001.parquet")),
        lambda store: store.delete("x/fragments"),
        lambda store: store.put("x/table.json", b"{}"),
        lambda store: store.put("x/table.json", store.get("x/table.json")[:-9]),
        lambda store: store.delete("x"),
    ],
)
def test_a_damaged_snapshot_is_not_counted(spoil: Callable[[Store], None]) -> None:
    store = new_store()
    ingest(csv_source(memory(), ROWS), SCHEMA, PERSON, store, "x")
    spoil(store)
    with pytest.raises(SourceError, match="damaged or incomplete") as caught:
        open_counter(store, "x", SCHEMA)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_snapshot_of_another_schema_is_not_counted() -> None:
    store = new_store()
    ingest(csv_source(memory(), ROWS), SCHEMA, None, store, "x")
    with pytest.raises(SourceError, match="'strict'"):
        open_counter(store, "x", STRICT)


def test_nothing_private_is_shown(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    rows = [{"age": 7, "job.title": CANARY, "who": CANARY}] * 613
    source, store = csv_source(memory(), rows, batch_rows=1000), new_store()
    ingest(source, SCHEMA, PersonUnit(column="who", max_rows=613), store, "x")
    snapshot = read_contents(Shelf(store, "x"))
    counter = open_counter(store, "x", SCHEMA)
    shown = f"{counter!r} {snapshot!r} " + caplog.text + "".join(capfd.readouterr())
    for secret in (CANARY, "613", snapshot.fragments[0].sha256):
        assert secret not in shown
    assert isinstance(source, CsvSource)
