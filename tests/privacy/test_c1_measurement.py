"""Claim C1: a measurement costs what it is charged, whatever the partition."""

from fractions import Fraction
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import PLENTY, Exact, drawn_for, guard, sample_by_hand
from privacy.neighbours import Neighbours, cliques, encoded, grids, l2_squared, neighbours, partitions, tower
from scipy import stats
from support.statistical import (
    ALPHA,
    NIGHTLY_DRAWS,
    SCALE_DRAWS,
    law_p_value,
    mean_p_value,
    scale_p_value,
    tail_p_value,
)

from ppsyn.arrays import Codes, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.data.marginals.cache import open_counter
from ppsyn.data.marginals.distributed import Spread, count_part
from ppsyn.data.snapshot import Shelf, Snapshot, write_codes
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import ConfigError, InvariantError, SourceError
from ppsyn.privacy import noise as mechanisms
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.requests import Measured, MeasureRequest, noise_scale
from ppsyn.privacy.residuals import exact_residuals
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

RHO = Fraction(1, 50)
THREE = Domain((Attribute("a0", 3),))


def squared_move(pair: Neighbours, request: MeasureRequest) -> int:
    """The squared L2 distance between the counts that neighbours hand to the mechanism."""
    before, after = (drawn_for(table, request, pair.max_rows).exact for table in (pair.smaller, pair.larger))
    return l2_squared(np.array(before), np.array(after))


def is_within_declared(pair: Neighbours, request: MeasureRequest, max_rows: int) -> bool:
    """Whether a curator told of `max_rows` declares enough for these neighbours."""
    return squared_move(pair, request) <= drawn_for(pair.larger, request, max_rows).sensitivity ** 2


def draw_residuals(max_rows: int = 1) -> Ints:
    """What the curator's measurement adds to `SCALE_DRAWS` counts of no rows."""
    curator = TableCurator(Exact(*[0] * SCALE_DRAWS), MemoryAccount(PLENTY), max_rows)
    answer = curator.answer(MeasureRequest(("a0",), finest(SCALE_DRAWS), RHO))
    assert isinstance(answer, Measured)
    return answer.noisy_counts


@given(st.data())
@settings(deadline=None)
def test_c1_one_row_moves_one_group_count_by_one_whatever_the_partition(data: st.DataObject) -> None:
    pair = data.draw(neighbours(max_rows=1))
    clique = data.draw(cliques(pair.domain))
    request = MeasureRequest(clique, data.draw(partitions(pair.domain.size(clique))), RHO)
    assert squared_move(pair, request) == 1


@given(st.data())
@settings(deadline=None)
def test_c1_a_person_moves_group_counts_by_no_more_than_declared(data: st.DataObject) -> None:
    pair = data.draw(neighbours())
    clique = data.draw(cliques(pair.domain))
    request = MeasureRequest(clique, data.draw(partitions(pair.domain.size(clique))), RHO)
    assert is_within_declared(pair, request, pair.max_rows)


@given(st.data())
@settings(deadline=None)
def test_c1_a_person_moves_residuals_by_no_more_than_declared(data: st.DataObject) -> None:
    pair = data.draw(neighbours().filter(lambda pair: pair.domain.size(pair.domain.names) >= 4))
    request = MeasureRequest(pair.domain.names, data.draw(grids(pair.domain.size(pair.domain.names))), RHO)
    assert is_within_declared(pair, request, pair.max_rows)
    assert squared_move(pair, request) > 0 or pair.max_rows > 1


@pytest.mark.parametrize(("axes", "sizes"), [((2, 2), (2, 2)), ((3, 5), (3, 5)), ((2, 3, 4), (2, 3, 4))])
@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c1_the_declared_sensitivity_of_residuals_is_attained_but_for_its_rounding(
    axes: tuple[int, ...], sizes: tuple[int, ...], max_rows: int
) -> None:
    domain = Domain(tuple(Attribute(f"a{place}", size) for place, size in enumerate(sizes)))
    count = domain.size(domain.names)
    request = MeasureRequest(domain.names, Partition(np.arange(count, dtype=np.int32), count, axes), RHO)
    pair = tower(domain, max_rows)
    declared = drawn_for(pair.larger, request, max_rows).sensitivity
    assert declared == max_rows * request.sensitivity
    assert (1 - 1e-3) * declared**2 < squared_move(pair, request) <= declared**2
    assert not is_within_declared(tower(domain, max_rows + 1), request, max_rows)


def test_c1_residuals_tell_nothing_that_single_attributes_tell() -> None:
    domain = Domain((Attribute("a0", 3), Attribute("a1", 4)))
    request = MeasureRequest(domain.names, Partition(np.arange(12, dtype=np.int32), 12, (3, 4)), RHO)
    even = encoded(domain, [(a, b) for a in range(3) for b in range(4)])
    skewed = encoded(domain, [(a, b) for a in range(3) for b in range(4) for _ in range((1 + a) * (2 + b))])
    other = encoded(domain, [(a, b) for a in range(3) for b in range(4) for _ in range(1 + 2 * a + 5 * b)])
    exact = [np.array(drawn_for(table, request, 1).exact) for table in (even, other, skewed)]
    assert not exact[0].any()
    assert not exact[1].any()
    assert exact[2].any()


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c1_the_declared_sensitivity_is_attained(max_rows: int) -> None:
    pair, request = tower(THREE, max_rows), MeasureRequest(("a0",), finest(3), RHO)
    assert squared_move(pair, request) == drawn_for(pair.larger, request, max_rows).sensitivity ** 2


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c1_a_curator_told_of_too_few_rows_is_caught(max_rows: int) -> None:
    request = MeasureRequest(("a0",), finest(3), RHO)
    assert not is_within_declared(tower(THREE, max_rows + 1), request, max_rows)


@given(st.integers(1, 30).flatmap(partitions))
@settings(deadline=None)
def test_c1_every_cell_counts_in_one_group_and_once(partition: Partition) -> None:
    for cell in np.eye(partition.cells, dtype=np.int64):
        assert sorted(partition.sum_counts(cell).tolist()) == [0] * (partition.count - 1) + [1]


@pytest.mark.parametrize(
    ("groups", "count"),
    [
        (np.array([0, 2], np.int32), 2),
        (np.array([0, -1], np.int32), 2),
        (np.array([0, 0], np.int32), 2),
        (np.array([[0, 1]], np.int32), 2),
        (np.array([0.0, 1.0]), 2),
        (np.zeros(0, np.int32), 0),
    ],
)
def test_c1_what_does_not_cover_every_cell_once_is_no_partition(groups: Codes, count: int) -> None:
    with pytest.raises(InvariantError):
        Partition(groups, count)


def test_c1_the_groups_of_a_partition_cannot_be_changed_afterwards() -> None:
    partition = finest(4)
    with pytest.raises(ValueError, match="read-only"):
        partition.groups[0] = 3


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_c1_a_partition_of_another_marginal_is_refused_and_not_charged(cells: int) -> None:
    account = MemoryAccount(PLENTY)
    curator = TableCurator(TableCounter(encoded(THREE, [(0,), (2,)])), account)
    with pytest.raises(InvariantError, match="nothing was charged"):
        curator.answer(MeasureRequest(("a0",), finest(cells), RHO))
    assert account.ledger.spent == 0


@pytest.mark.parametrize("max_rows", [1, 3])
def test_c1_noise_has_the_scale_that_the_budget_buys_for_all_rows_of_a_person(max_rows: int) -> None:
    # 50,000 draws; catches 3% of the scale, so also a bound on rows that is not passed on.
    draws = draw_residuals(max_rows)
    assert scale_p_value(draws, claimed=5.0 * max_rows) > ALPHA
    assert mean_p_value(draws, scale=5.0 * max_rows) > ALPHA


@pytest.mark.parametrize("error", [0.97, 1.03])
def test_c1_noise_of_the_wrong_scale_is_caught(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "noise_scale", lambda rho, sensitivity: error * noise_scale(rho, sensitivity))
    monkeypatch.setattr(mechanisms, "_check_cost", lambda cost, rho: None)
    assert scale_p_value(draw_residuals(), claimed=5.0) <= ALPHA


def test_c1_noise_that_costs_more_than_was_charged_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "noise_scale", lambda rho, sensitivity: 0.999999 * noise_scale(rho, sensitivity))
    with pytest.raises(InvariantError, match="nothing was drawn"):
        mechanisms.add_discrete_gaussian(np.zeros(3, np.int64), RHO, 1)


def test_c1_cells_do_not_share_their_noise() -> None:
    # 25,000 pairs; catches a correlation of 0.1 between neighbouring cells.
    pairs = draw_residuals().reshape(-1, 2)
    assert stats.pearsonr(pairs[:, 0], pairs[:, 1]).pvalue > ALPHA


def test_c1_noise_is_added_to_whole_numbers_and_not_in_floating_point() -> None:
    # Next to 2**60 a double steps by 256, so noise of scale 5 would vanish or jump.
    noisy, _ = mechanisms.add_discrete_gaussian(np.full(SCALE_DRAWS, 2**60, np.int64), RHO, 1)
    assert scale_p_value(noisy - 2**60, claimed=5.0) > ALPHA


MAGNITUDES = (0, 1, 7, -1, 10**3, 10**4, 10**5, 10**6, -(10**6), 10**8, 2**31, 2**40, 2**53, -(2**53), 2**60)
"""Of exact values: counts of groups, and residuals, which may be negative."""


def noise_on(values: Ints, rho: Fraction = RHO) -> Ints:
    return mechanisms.add_discrete_gaussian(values, rho, 1)[0] - values


def test_c1_noise_has_its_scale_on_values_of_every_magnitude() -> None:
    # 4,000 draws of each magnitude catch 11% of its scale, all 60,000 together 3%.
    noise = noise_on(np.repeat(np.array(MAGNITUDES), 4_000)).reshape(len(MAGNITUDES), -1)
    assert min(scale_p_value(each, claimed=5.0) for each in noise) > ALPHA / len(MAGNITUDES)
    assert scale_p_value(noise, claimed=5.0) > ALPHA


@pytest.mark.nightly
@pytest.mark.parametrize("value", MAGNITUDES)
def test_c1_noise_has_its_scale_its_law_and_its_tail_on_values_of_this_magnitude(value: int) -> None:
    # A million draws; catches 1% of the scale, a part of 10^-3 in the law, twice the tail beyond 4.5 scales.
    noise = noise_on(np.full(NIGHTLY_DRAWS, value))
    assert scale_p_value(noise, claimed=5.0) > ALPHA
    assert mean_p_value(noise, scale=5.0) > ALPHA
    assert law_p_value(noise, 5.0) > ALPHA
    assert all(tail_p_value(noise, 5.0, beyond) > ALPHA for beyond in (3.0, 4.0, 4.5, 5.0))


@pytest.mark.nightly
@pytest.mark.parametrize(("scales", "millions"), [(4.6, 1), (5.05, 4)])
def test_c1_noise_has_its_tail_where_one_step_is_so_many_scales(scales: float, millions: int) -> None:
    # 51 draws that are not zero are expected at 4.6 scales, and 23 at 5.05: a tail clipped before them is seen.
    rho = Fraction(scales**2 / 2)
    noise = np.concatenate([noise_on(np.zeros(NIGHTLY_DRAWS, np.int64), rho) for _ in range(millions)])
    assert tail_p_value(noise, noise_scale(rho, 1), scales - 0.05) > ALPHA


@pytest.mark.nightly
@pytest.mark.parametrize("error", [0.99, 1.01])
def test_c1_noise_whose_scale_is_one_percent_off_is_caught(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "noise_scale", lambda rho, sensitivity: error * noise_scale(rho, sensitivity))
    monkeypatch.setattr(mechanisms, "_check_cost", lambda cost, rho: None)
    assert scale_p_value(noise_on(np.zeros(NIGHTLY_DRAWS, np.int64)), claimed=5.0) <= ALPHA


def test_c1_noise_on_residuals_has_the_scale_that_the_budget_buys() -> None:
    # 16,384 residuals, about half of them negative; catches 6% of the scale.
    domain = Domain((Attribute("a0", 128), Attribute("a1", 128)))
    request = MeasureRequest(domain.names, Partition(np.arange(2**14, dtype=np.int32), 2**14, (128, 128)), RHO)
    table = encoded(domain, [(a % 128, a * a % 128) for a in range(500)])
    exact = np.array(drawn_for(table, request, 1).exact)
    answer = guard(table).answer(request)
    assert isinstance(answer, Measured)
    assert exact.min() < 0 < exact.max()
    assert answer.sigma == pytest.approx(5.0 * request.sensitivity, rel=1e-9)
    assert scale_p_value(answer.noisy_counts - exact, claimed=5.0 * request.sensitivity) > ALPHA


def test_c1_noise_follows_the_discrete_gaussian() -> None:
    # 50,000 draws; catches a rounded Laplace or a tail that ends at three scales.
    noise = draw_residuals()
    assert law_p_value(noise, 5.0) > ALPHA
    assert tail_p_value(noise, 5.0, 3.0) > ALPHA


whole = st.integers(-(2**61), 2**61)
noises = st.integers(-(2**61), 2**61) | st.integers(-30, 30)


@given(
    st.lists(st.tuples(whole, noises), min_size=1, max_size=9), st.fractions(Fraction(1, 10**4), 9), st.integers(1, 99)
)
@settings(deadline=None)
def test_c1_what_opendp_draws_for_the_exact_counts_is_the_answer_however_far_out_it_lies(
    drawn: list[tuple[int, int]], rho: Fraction, sensitivity: int
) -> None:
    counts, answer = [count for count, _ in drawn], [count + noise for count, noise in drawn]
    with pytest.MonkeyPatch.context() as patch:
        made = sample_by_hand(patch, "make_gaussian", lambda _: answer)
        noisy, scale = mechanisms.add_discrete_gaussian(np.array(counts, np.int64), rho, sensitivity)
    assert noisy.tolist() == answer
    (sampler,) = made
    assert sampler.scale == scale == noise_scale(rho, sensitivity)
    assert (sampler.given, sampler.priced) == ([counts], [sensitivity])


def test_c1_a_curator_is_told_of_one_row_at_least() -> None:
    with pytest.raises(ConfigError, match="max_rows"):
        guard(encoded(THREE, [(0,)]), 0)


@pytest.mark.parametrize("count", [2**53 + 1, 2**60 + 1])
def test_c1_group_counts_are_exact_where_doubles_are_not(count: int) -> None:
    partition = Partition(np.array([0, 1, 1], np.int32), 2)
    assert partition.sum_counts(np.array([count, count, 2], np.int64)).tolist() == [count, count + 2]


@pytest.mark.parametrize("rows", [1, 4_095, 4_097, 9_001, 2**17 + 1, 2**18 + 7])
def test_c1_each_row_of_a_long_table_is_counted_once_wherever_it_stands(rows: int) -> None:
    """The kernel takes some thousand rows at a time, and a table in memory is cut into blocks."""
    domain = Domain((Attribute("a0", 3), Attribute("a1", 5)))
    codes = {"a0": np.arange(rows, dtype=np.int32) % 3, "a1": np.arange(rows, dtype=np.int32) // 3 % 5}
    expected = np.bincount(codes["a0"] * 5 + codes["a1"], minlength=15)
    counter = TableCounter(EncodedTable(domain, codes))
    assert counter.counts(domain.names).tolist() == expected.tolist()
    assert counter.counts(("a1",)).tolist() == expected.reshape(3, 5).sum(axis=0).tolist()


def snapshot_of(table: EncodedTable, cuts: list[int], shelf: Shelf | None = None) -> Snapshot:
    """The table in fragments."""
    shelf = shelf or Shelf(open_store(Location(url=f"memory://{uuid4().hex}")), "x")
    ends = [0, *sorted(cuts), 10**6]
    parts = [{name: column[a:b] for name, column in table.columns.items()} for a, b in pairwise(ends)]
    fragments = [write_codes(shelf, f"{number}", part, table.domain) for number, part in enumerate(parts)]
    return Snapshot(shelf, table.domain, fragments)


@given(st.data(), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_c1_counts_in_parts_are_those_of_the_table_and_a_row_moves_one_by_one(data: st.DataObject, parts: int) -> None:
    pair = data.draw(neighbours(max_rows=1))
    clique = data.draw(cliques(pair.larger.domain))
    cuts = data.draw(st.lists(st.integers(0, 12), min_size=2, max_size=5))
    before, after = (counts_in_parts(snapshot_of(table, cuts), clique, parts) for table in (pair.smaller, pair.larger))
    assert before.tolist() == TableCounter(pair.smaller).counts(clique).tolist()
    assert sorted((after - before).tolist())[-1] == (after - before).sum() == 1


def counts_in_parts(snapshot: Snapshot, clique: Clique, parts: int) -> Ints:
    """What the curator adds up where workers count, each part more than once."""

    def work(name: str, count: int) -> None:
        for part in [*range(count), *range(count)]:
            count_part(snapshot, name, part)

    return TableCounter(Spread(snapshot, parts, work)).counts(clique)


def test_c1_counts_that_were_kept_of_other_rows_are_not_used() -> None:
    shelf = Shelf(open_store(Location(url=f"memory://{uuid4().hex}")), "x")
    old, new = encoded(THREE, [(0,), (0,)]), encoded(THREE, [(1,), (2,)])
    assert open_counter(snapshot_of(old, [1], shelf), [("a0",)], 1.0).counts(("a0",)).tolist() == [2, 0, 0]
    assert open_counter(snapshot_of(new, [1], shelf), [("a0",)], 1.0).counts(("a0",)).tolist() == [0, 1, 1]


@given(st.data(), st.booleans())
@settings(deadline=None, max_examples=50)
def test_c1_counts_of_fragments_are_those_of_the_table_and_a_row_moves_one_by_one(
    data: st.DataObject, is_again: bool
) -> None:
    pair = data.draw(neighbours(max_rows=1))
    clique = data.draw(cliques(pair.larger.domain))
    cuts = data.draw(st.lists(st.integers(0, 12), max_size=3))
    before, after = (counts_in_fragments(table, clique, cuts, is_again) for table in (pair.smaller, pair.larger))
    assert before.tolist() == TableCounter(pair.smaller).counts(clique).tolist()
    assert sorted((after - before).tolist())[-1] == (after - before).sum() == 1


def counts_in_fragments(table: EncodedTable, clique: Clique, cuts: list[int], is_again: bool) -> Ints:
    """The counts of a table that was cut into fragments, or those that were kept of it before."""
    snapshot = snapshot_of(table, cuts)
    if is_again:
        open_counter(snapshot, [table.domain.names], 1.0)
    return open_counter(snapshot, [table.domain.names], 1.0).counts(clique)


@pytest.mark.parametrize("counts", [(2**37, 0), (2**36, 2**36), (2**63 - 1, 2**63 - 1), (2**62, 2**62)])
def test_c1_a_table_of_more_rows_than_the_proof_allows_is_refused_and_not_charged(counts: tuple[int, ...]) -> None:
    account = MemoryAccount(PLENTY)
    with pytest.raises(InvariantError, match=r"fewer than 2\^37 rows; nothing was charged"):
        TableCurator(Exact(*counts), account).answer(MeasureRequest(("a0",), finest(2), RHO))
    assert account.ledger.spent == 0


def test_c1_a_table_of_as_many_rows_as_the_proof_allows_is_measured() -> None:
    answer = TableCurator(Exact(2**37 - 1, 0), MemoryAccount(PLENTY)).answer(MeasureRequest(("a0",), finest(2), RHO))
    assert isinstance(answer, Measured)
    assert abs(answer.noisy_counts - [2**37 - 1, 0]).max() < 10_000  # 2,000 times the scale


@pytest.mark.parametrize("axes", [(2, 2**13), (2**7, 2**7), (2,) * 14])
@pytest.mark.parametrize("place", [0, -1])
def test_c1_residuals_of_as_many_rows_as_the_proof_allows_fit_64_bits(axes: tuple[int, ...], place: int) -> None:
    counts = np.zeros(2**14, np.int64)
    counts[place] = 2**37 - 1
    exact = exact_residuals(counts.astype(object), axes)
    assert exact_residuals(counts, axes).tolist() == exact.tolist()


def in_fragments(table: EncodedTable, shelf: Shelf, rows: int) -> Snapshot:
    """The table's first rows, one to a fragment, as an ingest leaves them."""
    shelf.store.delete(f"{shelf.prefix}/fragments")
    parts = [{name: column[at : at + 1] for name, column in table.columns.items()} for at in range(rows)]
    fragments = [write_codes(shelf, f"fragments/{at:05d}", part, table.domain) for at, part in enumerate(parts)]
    return Snapshot(shelf, table.domain, fragments)


@pytest.mark.parametrize("late", [0, 1, 2])
def test_c1_a_part_that_was_counted_of_an_earlier_snapshot_is_not_added(late: int) -> None:
    # The first snapshot has the one person's row in another fragment, so in another part: it would be counted twice.
    shelf = Shelf(open_store(Location(url=f"memory://{uuid4().hex}")), "x")
    before = in_fragments(encoded(THREE, [(0,), (1,), (1,)]), shelf, 3)
    straggler: dict[str, bytes] = {}

    def counted_before(name: str, parts: int) -> None:
        count_part(before, name, late)
        straggler[f"x/passes/{name}/{late:05d}.bin"] = shelf.store.get(f"x/passes/{name}/{late:05d}.bin")

    with pytest.raises(SourceError):  # the other parts were never counted
        Spread(before, 3, counted_before).count([("a0",)])
    after = in_fragments(encoded(THREE, [(1,), (1,), (0,)]), shelf, 3)

    def arrives_late(name: str, parts: int) -> None:
        for part in range(parts):
            if part != late:
                count_part(after, name, part)
        for key, data in straggler.items():
            shelf.store.put(key, data)

    with pytest.raises(SourceError, match="counts of every part"):
        Spread(after, 3, arrives_late).count([("a0",)])

    def finds_it_there(name: str, parts: int) -> None:
        for key, data in straggler.items():
            shelf.store.put(key, data)
        for part in range(parts):
            count_part(after, name, part)

    (counts,) = Spread(after, 3, finds_it_there).count([("a0",)])
    assert counts.tolist() == [1, 2, 0]


def test_c1_a_part_is_not_taken_for_another_nor_for_one_of_another_division() -> None:
    shelf = Shelf(open_store(Location(url=f"memory://{uuid4().hex}")), "x")
    rows = in_fragments(encoded(THREE, [(0,), (1,), (2,)]), shelf, 3)

    def copies(name: str, parts: int) -> None:
        count_part(rows, name, 0)
        shelf.store.put(f"x/passes/{name}/00001.bin", shelf.store.get(f"x/passes/{name}/00000.bin"))

    with pytest.raises(SourceError):
        Spread(rows, 2, copies).count([("a0",)])
    first: dict[str, bytes] = {}

    def keeps(name: str, parts: int) -> None:
        count_part(rows, name, 0)
        first["00000"] = shelf.store.get(f"x/passes/{name}/00000.bin")

    with pytest.raises(SourceError):
        Spread(rows, 3, keeps).count([("a0",)])

    def divides_otherwise(name: str, parts: int) -> None:
        shelf.store.put(f"x/passes/{name}/00000.bin", first["00000"])
        count_part(rows, name, 1)

    with pytest.raises(SourceError):
        Spread(rows, 2, divides_otherwise).count([("a0",)])
