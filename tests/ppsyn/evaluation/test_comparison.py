"""What the owner's report says is true of both tables."""

import re

import numpy as np
import pytest
from support.published import SCHEMA, people

from ppsyn.data.encoding import EncodedTable, encode
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError
from ppsyn.evaluation import workload_error
from ppsyn.evaluation.comparison import StreamedTable, TablePair, compare, sample_rows
from ppsyn.schemas.config import WorkloadConfig

COLUMNS = {column.name: column for column in SCHEMA.columns}
REAL, MADE = encode(people(), SCHEMA), encode(people(rows=150, seed=1), SCHEMA)


def streamed(table: EncodedTable, rows: int = 40) -> StreamedTable:
    """The table, some rows at a time."""
    count = len(table.columns[table.domain.names[0]])
    parts = [np.arange(start, min(count, start + rows)) for start in range(0, count, rows)]
    return StreamedTable(
        table.domain, lambda: ({name: codes[part] for name, codes in table.columns.items()} for part in parts)
    )


BOTH = TablePair(streamed(REAL), streamed(MADE, 17))


def test_distances_are_those_of_the_tables() -> None:
    found = compare(BOTH, COLUMNS, WorkloadConfig())
    assert found.rows == len(people())
    assert {len(clique) for clique in found.distances} == {1, 2, 3}
    for clique, distance in found.distances.items():
        assert distance == pytest.approx(workload_error(REAL, MADE, [clique]))
    assert found.of(found.workload).mean() == pytest.approx(workload_error(REAL, MADE, found.workload))


def test_what_was_requested_is_shown_and_the_worst() -> None:
    found = compare(BOTH, COLUMNS, WorkloadConfig(), named=[("score", "sex")])
    why = {one.clique: one.why for one in found.shown}
    assert why["sex", "score"] == "requested"
    worst = max(found.pairs, key=lambda pair: found.distances[pair])
    assert why[worst] in ("requested", "among the worst pairs")
    for one in found.shown:
        assert (one.private.sum(), one.synthetic.sum()) == (200, 150)


def test_a_table_is_its_own_best_copy() -> None:
    found = compare(TablePair(streamed(REAL), streamed(REAL, 33)), COLUMNS, WorkloadConfig())
    assert set(found.distances.values()) == {0.0}
    assert found.ranges is not None
    assert not found.ranges.errors.any()


def test_range_queries_are_answered_by_counting_rows() -> None:
    found = compare(BOTH, COLUMNS, WorkloadConfig()).ranges
    assert found is not None
    for query, share in list(zip(found.queries, found.private, strict=True))[:20]:
        ends = zip(query.clique, query.lows, query.highs, strict=True)
        inside = np.all([(REAL.columns[n] >= low) & (REAL.columns[n] <= high) for n, low, high in ends], axis=0)
        assert share == pytest.approx(inside.mean())


def test_a_classifier_that_learned_what_is_so_beats_the_commoner_answer() -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    domain = Domain((Attribute("sex", 2), Attribute("age", 24), Attribute("is member", 3), Attribute("score", 5)))
    sex = rng.integers(0, 2, 4000)
    age = np.clip(rng.integers(0, 12, 4000) + 10 * sex, 0, 23)
    table = EncodedTable(
        domain,
        {
            "sex": sex.astype(np.int32),
            "age": age.astype(np.int32),
            "is member": rng.integers(0, 3, 4000).astype(np.int32),
            "score": rng.integers(0, 5, 4000).astype(np.int32),
        },
    )
    found = compare(
        TablePair(streamed(table, 999), streamed(table, 999)), COLUMNS, WorkloadConfig(), targets=["sex", "age"]
    )
    assert [one.target.attribute for one in found.classified] == ["sex", "age"]
    assert found.tested == 2000
    for one in found.classified:
        assert one.synthetic < one.constant / 2
        assert one.synthetic == pytest.approx(one.private, abs=0.03)


@pytest.mark.parametrize("name", ["sex", "age", "is member", "score"])
def test_every_attribute_can_be_cut_in_two(name: str) -> None:
    (one,) = compare(BOTH, COLUMNS, WorkloadConfig(), targets=[name]).classified
    assert 0 < one.constant <= 0.5


@pytest.mark.parametrize(("named", "targets"), [([("age", "shoe")], []), ([("age", "age")], []), ([], ["shoe"])])
def test_what_is_none_of_the_table_is_refused(named: list[tuple[str, ...]], targets: list[str]) -> None:
    with pytest.raises(ConfigError):
        compare(BOTH, COLUMNS, WorkloadConfig(), named, targets)


def test_a_table_without_rows_is_compared_too() -> None:
    empty = encode(people().iloc[:0], SCHEMA)
    found = compare(
        TablePair(StreamedTable(REAL.domain, lambda: [empty.columns]), BOTH.synthetic), COLUMNS, WorkloadConfig()
    )
    assert (found.rows, found.classified) == (0, ())


def test_a_sample_has_rows_of_the_table_and_all_of_a_small_one() -> None:
    assert sorted(sample_rows(BOTH.private, 10**6, 0).columns["age"].tolist()) == sorted(REAL.columns["age"].tolist())
    few = sample_rows(BOTH.private, 30, 0)
    assert len(few.columns["age"]) == 30
    rows = set(zip(*(REAL.columns[name].tolist() for name in REAL.domain.names), strict=True))
    assert set(zip(*(few.columns[name].tolist() for name in REAL.domain.names), strict=True)) <= rows


def test_private_objects_show_nothing_of_the_table() -> None:
    assert (repr(BOTH), repr(BOTH.private)) == ("TablePair()", "StreamedTable()")
    found = compare(BOTH, COLUMNS, WorkloadConfig())
    for value in (found, found.singles[0], found.ranges, found.classified[0]):
        assert re.fullmatch(r"<[\w.]+ object at 0x[0-9a-f]+>", repr(value))
