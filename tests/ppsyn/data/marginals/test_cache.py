"""The exact marginals of a run are counted once, kept in its private folder, and never trusted when damaged."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ppsyn.arrays import Ints
from ppsyn.data.marginals import cache
from ppsyn.data.marginals.cache import open_counter
from ppsyn.data.snapshot import Shelf, Snapshot, write_codes
from ppsyn.domain import Attribute, Clique, Domain, downward_closure
from ppsyn.errors import SourceError
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 300), Attribute("c", 2)))
CLIQUES = downward_closure([DOMAIN.names])

_numbers = itertools.count()


def snapshot_of(rows: int = 1000, fragments: int = 3) -> Snapshot:
    shelf = Shelf(open_store(Location(url=f"memory://held-{next(_numbers)}")), "x")
    rng = np.random.Generator(np.random.PCG64(1))
    written = [
        write_codes(
            shelf,
            f"fragments/{number}.parquet",
            {a.name: rng.integers(0, a.size, rows) for a in DOMAIN.attributes},
            DOMAIN,
        )
        for number in range(fragments)
    ]
    return Snapshot(shelf, DOMAIN, written)


class Unread:
    """Rows that may not be counted."""

    domain = DOMAIN

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        raise AssertionError(cliques)


def counts_of(snapshot: Snapshot) -> dict[Clique, list[int]]:
    return {clique: snapshot.count([clique])[0].tolist() for clique in CLIQUES}


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_SHARD_CELLS", 700)


@pytest.mark.usefixtures("small_shards")
def test_a_second_process_has_the_counts_of_the_first_without_a_row_being_read() -> None:
    snapshot = snapshot_of()
    expected = counts_of(snapshot)
    first = open_counter(snapshot, CLIQUES, 1.0)
    assert len(snapshot.shelf.store.keys("x/marginals")) > 1
    second = open_counter(snapshot, CLIQUES, 1.0, Unread())
    for each in (first, second):
        assert {clique: counts.tolist() for clique, counts in each.marginals(CLIQUES)} == expected


def spoil(key: str, at: int = 5) -> Callable[[Store], None]:
    def act(store: Store) -> None:
        data = bytearray(store.get(key))
        data[at] ^= 1
        store.put(key, bytes(data))

    return act


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize(
    "act",
    [
        spoil("x/marginals/00000.bin"),
        spoil("x/marginals.json"),
        lambda store: store.delete("x/marginals"),
        lambda store: store.put("x/marginals/00001.bin", b""),
        lambda store: store.put("x/marginals.json", b"{}"),
    ],
)
def test_damaged_counts_are_counted_again(act: Callable[[Store], None]) -> None:
    snapshot = snapshot_of()
    open_counter(snapshot, CLIQUES, 1.0)
    act(snapshot.shelf.store)
    again = open_counter(snapshot, CLIQUES, 1.0)
    assert {clique: counts.tolist() for clique, counts in again.marginals(CLIQUES)} == counts_of(snapshot)
    open_counter(snapshot, CLIQUES, 1.0, Unread())


@pytest.mark.parametrize(("cliques", "room_mb"), [(CLIQUES[:-1], 1.0), (CLIQUES, 0.001)])
def test_counts_of_other_marginals_are_not_taken_for_these(cliques: Sequence[Clique], room_mb: float) -> None:
    snapshot = snapshot_of()
    open_counter(snapshot, cliques, room_mb)
    with pytest.raises(AssertionError):
        open_counter(snapshot, CLIQUES, 1.0, Unread())


def test_counts_of_other_rows_are_not_taken_for_these() -> None:
    snapshot = snapshot_of()
    open_counter(snapshot, CLIQUES, 1.0)
    fewer = Snapshot(snapshot.shelf, DOMAIN, snapshot.fragments[:2])
    assert open_counter(fewer, CLIQUES, 1.0).counts(("c",)).sum() == 2000


def test_a_damaged_fragment_is_not_counted() -> None:
    snapshot = snapshot_of()
    spoil("x/fragments/1.parquet", 60)(snapshot.shelf.store)
    with pytest.raises(SourceError, match="damaged or incomplete"):
        open_counter(snapshot, CLIQUES, 1.0)
    assert not snapshot.shelf.store.has("x/marginals.json")


def test_nothing_of_the_counts_is_shown() -> None:
    snapshot = snapshot_of()
    opened = open_counter(snapshot, CLIQUES, 1.0)
    marker = cache._CacheManifest.model_validate_json(snapshot.shelf.store.get("x/marginals.json"))
    assert (repr(snapshot), repr(opened), repr(marker)) == ("Snapshot()", "TableCounter()", "_CacheManifest()")
