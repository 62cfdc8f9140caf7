"""The parts that a report is put together from."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import Published, shared_release
from support.reports import Reader

from ppsyn.domain import Attribute, Domain
from ppsyn.model.fold import Fold
from ppsyn.model.graphical_model import calibrated
from ppsyn.releases.reader import open_release
from ppsyn.reports.attributes import Bar, bar_chart
from ppsyn.reports.budget import spending
from ppsyn.reports.graph import edges_of, mutual_information
from ppsyn.reports.labels import name_codes, name_group
from ppsyn.reports.markup import short, tag
from ppsyn.reports.released import Charged
from ppsyn.reports.trust import trusts
from ppsyn.reports.words import cut, listed, nice_above, share, shortened, small
from ppsyn.schemas.account import FIRST, Charge
from ppsyn.schemas.table import TableSchema
from ppsyn.synthesis import Synthesis

COLUMNS = {
    column.name: column
    for column in TableSchema.model_validate(
        {
            "name": "t",
            "columns": [
                {"name": "job", "kind": "categorical", "values": ["a", "b", "c", "d", "e"], "nullable": True},
                {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "step": 10},
                {"name": "debt", "kind": "integer", "lower": -20, "upper": 19, "step": 10},
                {"name": "share", "kind": "real", "lower": 0, "upper": 1, "bins": 4},
                {"name": "ok", "kind": "boolean", "outside": "refuse"},
                {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-03-31", "unit": "month"},
                {"name": "at", "kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-02", "unit": "hour"},
            ],
        }
    ).columns
}


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    release: Published = shared_release(tmp_path_factory)
    return open_release(release.store)


# Markup


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_text_stays_text(text: str) -> None:
    read = Reader(tag("p", text, title=text).text.encode())
    assert "".join(read.texts) == text
    assert read.elements == [("p", {"title": text})]


@pytest.mark.parametrize(("number", "text"), [(0.0, "0"), (-0.01, "0"), (1.0, "1"), (1.25, "1.2"), (-3.06, "-3.1")])
def test_coordinates_are_short(number: float, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("part", "text"), [(0, "0%"), (1, "100%"), (0.5, "50%"), (0.0123, "1.2%"), (0.001, "0.1%"), (0.00012, "0.01%")]
)
def test_shares_are_told_from_nothing(part: float, text: str) -> None:
    assert share(part) == text


def test_small_numbers_are_short() -> None:
    assert small(1e-9) == "1e-9"
    assert small(0.05) == "0.05"


def test_texts_that_are_too_long_are_shortened() -> None:
    assert shortened("attribute number 35") == "attribu\N{HORIZONTAL ELLIPSIS}ber 35"
    assert shortened("native-country") == "native-country"
    assert cut("abcdef", 4) == "abc\N{HORIZONTAL ELLIPSIS}"
    assert (listed(["a", "b"]), listed(["a", "b", "c"], 2)) == ("a, b", "a, b and 1 more")


@given(st.floats(1e-6, 1e6))
def test_an_axis_ends_above_what_it_shows(number: float) -> None:
    assert number * 0.999 <= nice_above(number) <= 2.51 * number


# Labels


@pytest.mark.parametrize(
    ("name", "codes", "text"),
    [
        ("job", [0], "a"),
        ("job", [0, 2], "a, c"),
        ("job", [0, 1, 2, 3], "a, b, 2 more"),
        ("job", [5], "no value"),
        ("job", [1, 5], "b, no value"),
        ("job", [0, 1, 2, 3, 4, 5], "any value"),
        ("age", [0, 1, 2], "0\N{EN DASH}29"),
        ("age", [0, 5], "0\N{EN DASH}9, 50\N{EN DASH}59"),
        ("debt", [0, 1], "-20 to -1"),
        ("share", [1], "0.25 to 0.5"),
        ("ok", [1], "true"),
        ("day", [1, 2], "2020-02-01 to 2020-03-31"),
        ("at", [3], "2020-01-01 03:00 to 2020-01-01 03:59"),
    ],
)
def test_codes_are_told_as_the_schema_writes_them(name: str, codes: list[int], text: str) -> None:
    assert name_codes(COLUMNS[name], codes) == text


def test_a_group_is_told_by_its_attributes_and_only_those_that_matter() -> None:
    cells = np.array([0, 1, 2, 3], np.int32)  # both values of ok, for two of debt
    assert name_group(COLUMNS, ("debt", "ok"), cells) == "debt: -20 to -1"
    assert name_group(COLUMNS, ("debt", "ok"), np.array([0, 3], np.int32)) == "2 cells within debt: -20 to -1"
    assert name_group(COLUMNS, ("ok",), np.array([0, 1], np.int32)) == "all rows"


# Budget


def charge(mechanism: str, rho: int, *, is_lost: bool = False) -> Charged:
    fields = {"number": 1, "previous": FIRST, "nonce": "n", "run": "r", "step": 0, "clique": (), "request": FIRST}
    return Charged(Charge.model_validate({**fields, "mechanism": mechanism, "rho": Fraction(rho)}), is_lost)


def test_a_round_is_a_selection_and_its_measurement() -> None:
    steps = [charge("measure", 5), charge("measure", 6), charge("select", 1), charge("measure", 2)]
    found = spending(steps)
    assert (found.initial, found.measurements) == (11, 2)
    assert [(turn.select, turn.measure, turn.is_measured) for turn in found.turns] == [(1, 2, True)]


def test_what_was_lost_leaves_rounds_without_a_part() -> None:
    steps = [
        charge("measure", 5, is_lost=True),
        charge("select", 1, is_lost=True),
        charge("select", 1),
        charge("measure", 2, is_lost=True),
        charge("measure", 9),
    ]
    found = spending(steps)
    assert found.lost == 1
    assert [(turn.select, turn.measure, turn.lost, turn.is_measured) for turn in found.turns] == [
        (1, 0, 1, False),
        (1, 2, 1, False),
        (0, 9, 0, True),
    ]


@given(st.lists(st.tuples(st.sampled_from(["measure", "select"]), st.integers(1, 99), st.booleans())))
def test_every_charge_is_told_once(steps: list[tuple[str, int, bool]]) -> None:
    found = spending([charge(mechanism, rho, is_lost=is_lost) for mechanism, rho, is_lost in steps])
    told = found.initial + sum(turn.select + turn.measure for turn in found.turns)
    assert told == sum(rho for _, rho, _ in steps)
    assert found.lost + sum(turn.lost for turn in found.turns) == sum(is_lost for _, _, is_lost in steps)


# Trust, and the graph


def test_pairs_that_were_never_measured_together_have_no_figure(synthesis: Synthesis) -> None:
    together = [set(m.clique) for m in synthesis.measurements]
    found = trusts(synthesis)
    assert len(found) == 4 + 6
    for one in found:
        assert (one.misplaced is not None) == any(set(one.clique) <= clique for clique in together)
        assert one.misplaced is None or 0 < one.misplaced < 1


def test_figures_are_the_same_each_time(synthesis: Synthesis) -> None:
    assert trusts(synthesis) == trusts(synthesis)


def test_lines_of_the_graph_are_the_pairs_of_the_model(synthesis: Synthesis) -> None:
    edges = edges_of(synthesis.model)
    assert all(any({e.first, e.second} <= set(clique) for clique in synthesis.model.potentials) for e in edges)
    assert [e.bits for e in edges] == sorted((e.bits for e in edges), reverse=True)


def test_pairs_that_the_tree_has_no_room_for_are_lines_too() -> None:
    tie = np.array([[5.0, 0.0], [0.0, 5.0]])
    domain = Domain((Attribute("a", 2), Attribute("b", 2), Attribute("c", 2)))
    model = calibrated(Fold(domain), {("a", "b"): np.zeros((2, 2))}, 10.0, 0.0, {("b", "c"): tie})
    assert [(e.first, e.second, round(e.bits, 6)) for e in edges_of(model)] == [("b", "c", 1.0), ("a", "b", 0.0)]


def test_mutual_information_is_nothing_apart_and_a_bit_in_step() -> None:
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0)
    assert mutual_information(np.array([[5.0, 0.0], [0.0, 5.0]])) == pytest.approx(1)


# Charts


@given(st.lists(st.integers(0, 1000), min_size=19, max_size=700), st.booleans())
def test_a_chart_shows_every_group_and_says_which_it_merged(counts: list[int], is_ordered: bool) -> None:
    bars = [Bar(f"value {at}", float(rows), 2.0, float(rows)) for at, rows in enumerate(counts)]
    read = Reader(bar_chart("chart", ("Counts", "All."), bars, is_ordered=is_ordered).text.encode())
    drawn, text = [float(box["width" if not is_ordered else "height"] or 0) for box in read.named("rect")], read.texts
    merged = next((int(found[1]) for part in text if (found := re.match(r"a column is (\d+) neigh", part))), 1)
    assert len(drawn) == (-(-len(bars) // merged) if is_ordered else 18)
    if not is_ordered:
        assert f"{len(bars) - 17} others" in text
    elif len(bars) > 90:
        assert merged > 1
    sums = (
        [sum(counts[at : at + merged]) for at in range(0, len(counts), merged)]
        if is_ordered
        else [*sorted(counts)[::-1][:17], sum(sorted(counts)[:-17])]
    )
    assert drawn == pytest.approx([rows / (max(sums) or 1) * max(drawn) for rows in sums], abs=0.11)
