import ast
from pathlib import Path

import numpy as np

import ppsyn
from ppsyn.benchmark.paper import printed
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Domain
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import uniform_model

DOMAIN = Domain((Attribute("hours", 12), Attribute("sex", 2)))
SETTINGS = printed.PrintedSettings(rho=0.5, rounds=5)


def table_of(hours: list[int], sex: list[int]) -> EncodedTable:
    return EncodedTable(DOMAIN, {"hours": np.array(hours, np.int32), "sex": np.array(sex, np.int32)})


def spiky_table() -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(7)
    hours = np.where(rng.random(500) < 0.5, 8, rng.integers(0, 12, 500))
    return hours.tolist(), rng.integers(0, 2, 500).tolist()


def test_one_row_changes_what_the_printed_algorithm_publishes_with_certainty() -> None:
    """One candidate, so the draw has one outcome: the noise scale alone tells the neighbours apart."""
    hours, sex = spiky_table()
    table, neighbour = table_of(hours, sex), table_of([*hours, 3], [*sex, 1])
    model, workload = uniform_model(Compression(DOMAIN)), (("hours", "sex"),)
    (published,) = printed.not_private_choices(printed.true_table(table), model, workload, SETTINGS)
    (other,) = printed.not_private_choices(printed.true_table(neighbour), model, workload, SETTINGS)
    assert published.rho != other.rho


def test_one_row_can_change_the_published_partition() -> None:
    hours, sex = [0, 1, 1, 6, 7, 7, 11], [0, 0, 1, 1, 0, 1, 1]
    model, workload = uniform_model(Compression(DOMAIN)), (("hours", "sex"),)
    (published,) = printed.not_private_choices(printed.true_table(table_of(hours, sex)), model, workload, SETTINGS)
    neighbours = [(row, one) for row in range(12) for one in range(2)]
    others = [
        printed.not_private_choices(printed.true_table(table_of([*hours, h], [*sex, s])), model, workload, SETTINGS)
        for h, s in neighbours
    ]
    assert any(other[0].partition != published.partition for other in others)


def test_the_printed_algorithm_runs_and_learns() -> None:
    table = table_of(*spiky_table())
    result = printed.fit_not_private(table, (("hours", "sex"),), SETTINGS, np.random.default_rng(0))
    spike = result.model.project(("hours",))[8] / result.model.total
    assert abs(spike - 0.54) < 0.1
    assert result.rho_claimed >= SETTINGS.rho
    assert result.choices


def test_its_names_say_what_it_is() -> None:
    assert printed.__doc__ is not None
    assert "NOT differentially private" in printed.__doc__
    assert "NotPrivate" in printed.fit_not_private.__annotations__["return"].__name__


def test_nothing_in_the_release_path_imports_it() -> None:
    root = Path(ppsyn.__file__).parent
    for path in root.rglob("*.py"):
        if path.is_relative_to(root / "benchmark"):
            continue
        imported = {
            alias
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in (node.module, *(f"{node.module}.{name.name}" for name in node.names))
        }
        assert not any(name.startswith("ppsyn.benchmark.paper") for name in imported), path
