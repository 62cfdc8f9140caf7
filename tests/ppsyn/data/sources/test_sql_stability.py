"""Which queries are refused, tried on a database: those let one row move many, and what is let through does not."""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.private_tables import ROWS, sqlite_source

from ppsyn.data.sources import check_stable
from ppsyn.data.sources.sql_stability import judge
from ppsyn.errors import SourceError
from ppsyn.schemas.config import PersonUnit

PERSONS = [("ann", "x", 3), ("bob", "y", 5), ("bob", "x", 1), ("eve", "y", 2), ("eve", "y", 4), ("fay", "x", 9)]
"""Who, where, and a number."""

PUBLIC = [("x", "north"), ("y", "south")]

Row = tuple[object, ...]


def answer(query: str, rows: Sequence[Row]) -> Counter[Row]:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript("CREATE TABLE t (who, city, n); CREATE TABLE places (city, region);")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.executemany("INSERT INTO places VALUES (?, ?)", PUBLIC)
        found = Counter(connection.execute(query).fetchall())
    connection.close()
    return found


def moved(query: str, left_out: Sequence[int]) -> Iterator[Row]:
    """The rows of the answer that come or go with these rows."""
    with_them = answer(query, PERSONS)
    without = answer(query, [row for number, row in enumerate(PERSONS) if number not in left_out])
    return itertools.chain((with_them - without).elements(), (without - with_them).elements())


REFUSED = {
    "SELECT * FROM t ORDER BY n LIMIT 3": "LIMIT",
    "SELECT * FROM t ORDER BY n LIMIT 4 OFFSET 1": "LIMIT",
    "SELECT who, city, row_number() OVER (ORDER BY n) AS n FROM t": "window functions",
    "SELECT who, city, sum(n) OVER (PARTITION BY city) AS n FROM t": "window functions",
    "SELECT who, city, sum(n) OVER w AS n FROM t WINDOW w AS (PARTITION BY city)": "window functions",
    "SELECT max(who) AS who, city, sum(n) AS n FROM t GROUP BY city": "GROUP BY",
    "SELECT max(who) AS who, city, count(*) AS n FROM t GROUP BY 2": "GROUP BY",
    "SELECT city AS who, max(who) AS city, total(n) AS n FROM t GROUP BY who": "GROUP BY",
    "SELECT 'a' AS who, city, n - (SELECT avg(n) FROM t) AS n FROM t": "GROUP BY",
    "SELECT who, city, n FROM t WHERE n > (SELECT total(n) / 10 FROM t)": "GROUP BY",
    "SELECT a.who, a.city, b.n FROM t AS a JOIN t AS b ON a.city = b.city": "'t' in several places",
    "SELECT a.who, a.city, b.n FROM t AS a JOIN t AS b ON a.who = b.who OR a.city = b.city": "'t' in several places",
    "SELECT a.who, a.city, a.n FROM t AS a, t AS b": "'t' in several places",
    "SELECT * FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE a.city = b.city AND b.n = 9)": "'t' in several",
    "SELECT who, city, n FROM t WHERE city IN (SELECT city FROM main.t WHERE n = 9)": "'t' in several places",
    "WITH RECURSIVE r(who, city, n) AS (SELECT * FROM t UNION ALL "
    "SELECT t.who, t.city, t.n FROM r JOIN t ON t.n = r.n + 1) SELECT * FROM r": "WITH RECURSIVE",
}


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize(("query", "name"), REFUSED.items())
def test_what_lets_one_row_move_many_is_refused(query: str, name: str, person: str | None) -> None:
    most = max(len(list(moved(query, [number]))) for number in range(len(PERSONS)))
    assert most > 1
    with pytest.raises(SourceError) as caught:
        judge(query, "sqlite", person, ())
    assert f"Expected the query to be row by row, without {name}" in str(caught.value)


ROW_BY_ROW = [
    "SELECT * FROM t",
    "SELECT who, city, -n AS n FROM t WHERE n BETWEEN 1 AND 4 ORDER BY n DESC",
    "WITH x AS (SELECT * FROM t WHERE city = 'x'), y AS (SELECT who, n FROM x) SELECT * FROM y",
    "SELECT who, max(n, 2) AS n, CASE city WHEN 'x' THEN 1 END AS c, coalesce(city, '') AS d FROM t;",
    "SELECT who, n FROM (SELECT * FROM t WHERE n > 1) AS q -- no more",
    "SELECT * FROM t UNION ALL SELECT city, region, 0 FROM places",
]

JOINED = [
    "SELECT t.who, p.region, t.n FROM t JOIN places AS p ON t.city = p.city",
    "SELECT t.who, region, n FROM t LEFT JOIN places USING (city)",
    "SELECT who, n, (SELECT region FROM places AS p WHERE p.city = t.city) AS region FROM t",
    "SELECT * FROM t WHERE city IN (SELECT city FROM places WHERE region = 'north')",
]


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("query", [*ROW_BY_ROW, *JOINED])
def test_what_is_row_by_row_is_let_through_and_a_join_told_of(query: str, person: str | None) -> None:
    for number in range(len(PERSONS)):
        assert len(list(moved(query, [number]))) <= 1
    doubts = judge(query, "sqlite", person, ())
    assert [doubt.startswith("The query joins") for doubt in doubts] == [True] * (query in JOINED)


OF_PERSONS = [
    "SELECT who, max(city) AS city, sum(n) AS n FROM t GROUP BY who",
    "SELECT who, city, count(*) AS n FROM t GROUP BY 1, city HAVING count(*) < 3",
    "SELECT who, city, row_number() OVER (PARTITION BY who ORDER BY n) AS n FROM t",
    "SELECT who, city, sum(n) OVER w AS n FROM t WINDOW w AS (PARTITION BY city, who)",
    "SELECT a.who, a.city, b.n FROM t AS a JOIN t AS b ON a.who = b.who AND a.n < b.n",
    "SELECT who, a.city, b.n FROM t AS a JOIN t AS b USING (who)",
    "SELECT who, city, n FROM t UNION ALL SELECT who, city, -n FROM t",
    "SELECT * FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE a.who = b.who AND b.n > a.n)",
    "WITH x AS (SELECT who, sum(n) AS n FROM t GROUP BY who) SELECT x.who, t.city, x.n FROM t JOIN x ON x.who = t.who",
]


@pytest.mark.parametrize("query", OF_PERSONS)
def test_what_stays_among_the_rows_of_a_person_is_let_through_where_persons_are_the_unit(query: str) -> None:
    for person in {who for who, _, _ in PERSONS}:
        theirs = [number for number, row in enumerate(PERSONS) if row[0] == person]
        assert {row[0] for row in moved(query, theirs)} <= {person}
    assert judge(query, "sqlite", "who", ()) == []
    with pytest.raises(SourceError, match=r"where privacy\.person says so"):
        judge(query, "sqlite", None, ())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT city AS who, sum(n) AS n FROM t GROUP BY who",
        "SELECT who, sum(n) AS n FROM (SELECT city AS who, n FROM t) AS q GROUP BY who",
        "WITH q(who, n) AS (SELECT city, n FROM t) SELECT who, sum(n) AS n FROM q GROUP BY who",
        "SELECT who, sum(n) AS n FROM (SELECT who, n FROM t UNION ALL SELECT n, who FROM u) AS q GROUP BY who",
        "SELECT who, sum(n) AS n FROM (SELECT who, n FROM t UNION ALL SELECT * FROM u) AS q GROUP BY who",
    ],
)
def test_another_column_under_the_name_of_the_persons_is_not_taken_for_it(query: str) -> None:
    with pytest.raises(SourceError, match="GROUP BY"):
        judge(query, "sqlite", "who", ())


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT DISTINCT who, n FROM t", "DISTINCT"),
        ("SELECT DISTINCT ON (who) * FROM t", "DISTINCT"),
        ("SELECT * FROM t UNION SELECT * FROM u", "UNION"),
        ("SELECT * FROM t EXCEPT ALL SELECT * FROM u", "EXCEPT"),
        ("SELECT * FROM t INTERSECT SELECT * FROM u", "INTERSECT"),
        ("SELECT * FROM t FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ("SELECT * FROM t OFFSET 1", "OFFSET"),
        ("SELECT * FROM t TABLESAMPLE SYSTEM (3)", "TABLESAMPLE"),
        ("SELECT * FROM t WHERE random() < 0.1", "functions that draw"),
        ("SELECT gen_random_uuid() AS who FROM t", "functions that draw"),
        ("SELECT who, count(*) FROM t GROUP BY ROLLUP (who)", "GROUP BY"),
        ("SELECT who, string_agg(a, ',') FROM t", "GROUP BY"),
        ("SELECT who, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t", "GROUP BY"),
        ("SELECT who, bool_and(a), every(b) FROM t", "GROUP BY"),
        ('SELECT "Who", count(*) FROM t GROUP BY "Who"', "GROUP BY"),
        ("SELECT t.* FROM t CROSS JOIN LATERAL (SELECT * FROM u LIMIT 1) AS x", "LIMIT"),
        ("SELECT * FROM t WHERE a = ANY (SELECT a FROM t AS b)", "'t' in several places"),
    ],
)
def test_what_postgresql_has_beside_is_refused(query: str, name: str) -> None:
    with pytest.raises(SourceError, match=f"without {name}"):
        judge(query, "postgres", "who", ())


@pytest.mark.parametrize(
    ("query", "doubt"),
    [
        ("SELECT who, unnest(a) AS a FROM t", "joins tables"),
        ("SELECT t.who, e FROM t CROSS JOIN LATERAL jsonb_array_elements(t.x) AS e", "jsonb_array_elements"),
        ("SELECT who, my_own(a) AS a FROM t", "my_own"),
        ("SELECT * FROM Tidy", "'tidy' is a view"),
        ("SELECT * FROM t AS a, u AS b", "joins tables"),
        ("VACUUM t", "could not be parsed"),
        ("SELECT ((", "could not be parsed"),
    ],
)
def test_what_cannot_be_told_is_left_to_the_owner_in_a_sentence(query: str, doubt: str) -> None:
    assert any(doubt in sentence for sentence in judge(query, "postgres", None, ["tidy", "other"]))


def test_an_id_that_is_written_in_another_case_is_the_same_column() -> None:
    assert judge("SELECT WHO, count(*) AS n FROM t GROUP BY Who", "postgres", "who", ()) == []


def test_a_view_of_a_database_is_told_by_name(tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, ROWS)
    with sqlite3.connect(tmp_path / "table.db") as connection:
        connection.execute("CREATE VIEW v AS SELECT * FROM t LIMIT 1")
    connection.close()
    assert check_stable(source, None) == []
    (told,) = check_stable(source.model_copy(update={"query": "SELECT * FROM v"}), PersonUnit(column="who", max_rows=1))
    assert "'v' is a view" in told
    assert "one person" in told


def test_a_query_that_is_refused_tells_no_row(tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, ROWS).model_copy(update={"query": "SELECT * FROM t LIMIT 3"})
    with pytest.raises(SourceError, match="without LIMIT") as caught:
        check_stable(source, None)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
