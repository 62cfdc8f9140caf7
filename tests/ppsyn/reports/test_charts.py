"""Charts: what they draw, and what they say."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reports import Reader

from ppsyn.reports.charts import Bar, Caption, axis_end, bar_chart, short, tag


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_text_stays_text(text: str) -> None:
    read = Reader(tag("p", text, title=text).encode())
    assert "".join(read.texts) == text
    assert read.elements == [("p", {"title": text})]


@pytest.mark.parametrize(("number", "text"), [(0.0, "0"), (-0.01, "0"), (1.0, "1"), (1.25, "1.2"), (-3.06, "-3.1")])
def test_coordinates_are_short(number: float, text: str) -> None:
    assert short(number) == text


@given(st.floats(1e-6, 1e6))
def test_an_axis_ends_above_what_it_shows(number: float) -> None:
    assert number * 0.999 <= axis_end(number) <= 2.51 * number


@given(st.lists(st.integers(0, 1000), min_size=19, max_size=700), st.booleans())
def test_a_chart_shows_every_group_and_says_which_it_merged(counts: list[int], is_ordered: bool) -> None:
    bars = [Bar(f"value {at}", float(rows), 2.0, float(rows)) for at, rows in enumerate(counts)]
    read = Reader(bar_chart("chart", Caption("Counts", "All."), bars, is_ordered=is_ordered).encode())
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
