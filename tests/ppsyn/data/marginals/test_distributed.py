"""A pass in parts counts as one pass does, whoever counts the parts and however often."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.data.marginals.distributed import Spread, count_part
from ppsyn.data.snapshot import Shelf, Snapshot, write_codes
from ppsyn.domain import Attribute, Domain, downward_closure
from ppsyn.errors import SourceError
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 300), Attribute("c", 2)))
CLIQUES = downward_closure([DOMAIN.names])

_numbers = itertools.count()


def snapshot_of(sizes: list[int]) -> Snapshot:
    shelf = Shelf(open_store(Location(url=f"memory://spread-{next(_numbers)}")), "x")
    rng = np.random.Generator(np.random.PCG64(1))
    written = [
        write_codes(shelf, f"{number}", {a.name: rng.integers(0, a.size, rows) for a in DOMAIN.attributes}, DOMAIN)
        for number, rows in enumerate(sizes)
    ]
    return Snapshot(shelf, DOMAIN, written)


def spread(snapshot: Snapshot, parts: int, times: int = 1) -> Spread:
    """Each part counted so many times, the last first."""

    def work(name: str, parts: int) -> None:
        for part in reversed(list(range(parts)) * times):
            count_part(snapshot, name, part)

    return Spread(snapshot, parts, work)


def lists(snapshot: Snapshot | Spread) -> list[list[int]]:
    return [counts.tolist() for counts in snapshot.count(CLIQUES)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), max_size=7), st.integers(1, 9), st.integers(1, 2))
def test_parts_add_up_to_the_pass_bit_for_bit(sizes: list[int], parts: int, times: int) -> None:
    snapshot = snapshot_of(sizes)
    assert lists(spread(snapshot, parts, times)) == lists(snapshot)


def test_nothing_of_a_pass_is_left() -> None:
    snapshot = snapshot_of([5, 6])
    spread(snapshot, 3).count(CLIQUES)
    assert snapshot.shelf.store.keys("x/passes") == []


def test_a_part_that_is_there_is_not_counted_again() -> None:
    snapshot, seen = snapshot_of([5, 6]), list[list[str]]()

    def work(name: str, parts: int) -> None:
        for part in range(parts):
            count_part(snapshot, name, part)
        keys = snapshot.shelf.store.keys("x/passes")
        before = [snapshot.shelf.store.get(key) for key in keys]
        for number in range(2):
            snapshot.shelf.store.put(f"x/{number}", b"no fragment any more")
        for part in range(parts):
            count_part(snapshot, name, part)
        seen.append(keys)
        assert before == [snapshot.shelf.store.get(key) for key in keys]

    assert Spread(snapshot, 2, work).count([("c",)])[0].sum() == 11
    assert len(seen[0]) == 3


def torn(store: Store, key: str) -> None:
    store.put(key, store.get(key)[:-3])


@pytest.mark.parametrize("spoil", [lambda store, key: store.delete("x/passes"), torn])
def test_a_part_that_is_missing_or_torn_is_told_with_what_to_do(spoil: Callable[[Store, str], None]) -> None:
    snapshot = snapshot_of([5, 6])

    def work(name: str, parts: int) -> None:
        for part in range(parts):
            count_part(snapshot, name, part)
        spoil(snapshot.shelf.store, f"x/passes/{name}/00001.bin")

    with pytest.raises(SourceError, match="Workers need the private store"):
        Spread(snapshot, 2, work).count(CLIQUES)


def test_the_name_of_a_pass_tells_nothing_of_the_table() -> None:
    names: list[str] = []

    def watched(name: str, parts: int) -> None:
        names.append(name)

    for sizes in ([], [5], [9, 9]):
        with pytest.raises(SourceError):
            Spread(snapshot_of(sizes), 2, watched).count(CLIQUES)
    assert len(set(names)) == 1


def test_a_part_of_a_pass_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(SourceError, match="damaged or incomplete"):
        count_part(snapshot_of([1]), "0" * 32, 0)
