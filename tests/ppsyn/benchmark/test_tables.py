import gzip
from pathlib import Path

import numpy as np
import pytest
from support.benchmark_tables import SIZES, toy_table, write_toys

from ppsyn.benchmark.tables import digest_of, names_in, open_table, random_workload, read_table, write_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.errors import ConfigError


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = toy_table()
    write_table(tmp_path, "toy", table)
    found = read_table(tmp_path, "toy")
    assert found.domain == table.domain
    assert found.columns["d"].dtype == np.int32
    assert digest_of(found) == digest_of(table)


def test_a_table_is_known_by_its_codes_and_its_domain() -> None:
    table = toy_table()
    columns = {name: column.copy() for name, column in table.columns.items()}
    columns["a"][0] = (columns["a"][0] + 1) % 3
    assert digest_of(EncodedTable(table.domain, columns)) != digest_of(table)
    larger = toy_table(**{**SIZES, "d": 6})
    assert digest_of(EncodedTable(larger.domain, table.columns)) != digest_of(table)


def test_the_tables_of_a_folder_are_those_with_a_domain(tmp_path: Path) -> None:
    write_toys(tmp_path)
    (tmp_path / "alone.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    assert names_in(str(tmp_path)) == ("br2000", "toy", "wide")
    with pytest.raises(ConfigError, match=r"no table 'alone' in .* Tables there: br2000, toy, wide\."):
        open_table(str(tmp_path), "alone")
    with pytest.raises(ConfigError, match="Expected a folder at"):
        open_table(str(tmp_path / "none"), "toy")
    with pytest.raises(ConfigError, match=r"without --data-dir\. Tables there: adult"):
        open_table(None, "toy")


def test_the_bundled_table_is_adult() -> None:
    table = open_table(None, "adult")
    assert {"age", "income", "education-num"} <= set(table.domain.names)
    assert len(table.columns["age"]) == 48_842


@pytest.mark.parametrize(
    ("domain", "codes", "told"),
    [
        ('{"a": 2}', b"b\n1\n", "column 'a' of whole numbers"),
        ('{"a": 2}', b"a\n0.5\n", "column 'a' of whole numbers"),
        ('{"a": 2}', b"a\n1\nx\n", "column 'a' of whole numbers"),
        ('{"a": 2}', b"a\n2\n", "codes of 'a' from 0 to 1"),
        ('{"a": 2}', b"a\n-1\n", "codes of 'a' from 0 to 1"),
        ('{"a": 0}', b"a\n0\n", "readable table 't'"),
        ("{", b"a\n0\n", "readable table 't'"),
        ('{"a": 2}', b"", "readable table 't'"),
    ],
)
def test_a_file_that_holds_no_table_is_told(tmp_path: Path, domain: str, codes: bytes, told: str) -> None:
    (tmp_path / "t-domain.json").write_text(domain, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(codes))
    with pytest.raises(ConfigError, match=told):
        read_table(tmp_path, "t")


def test_a_file_that_is_cut_off_is_told(tmp_path: Path) -> None:
    write_table(tmp_path, "t", toy_table())
    whole = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="readable table 't'"):
        read_table(tmp_path, "t")


def test_the_workload_depends_on_its_seed_alone() -> None:
    domain = toy_table().domain
    assert random_workload(domain, seed=1) == random_workload(domain, seed=1)
    assert all(len(clique) == 3 and domain.size(clique) <= 40 for clique in random_workload(domain, max_cells=40))


@pytest.mark.parametrize(("degree", "max_cells"), [(5, 10_000), (3, 5)])
def test_a_workload_that_cannot_be_is_told(degree: int, max_cells: int) -> None:
    with pytest.raises(ConfigError, match=f"degree={degree}"):
        random_workload(toy_table().domain, degree, max_cells=max_cells)
