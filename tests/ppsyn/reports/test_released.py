"""What a report computes from the files of a release."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import Published, shared_release

from ppsyn.domain import Attribute, Domain
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import calibrate
from ppsyn.releases.reader import open_release
from ppsyn.reports.released import AnsweredCharge, expected_errors, model_edges, mutual_information, split_spending
from ppsyn.schemas.account import FIRST, Charge
from ppsyn.synthesis import Synthesis


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    release: Published = shared_release(tmp_path_factory)
    return open_release(release.store)


# The budget


def charge(mechanism: str, rho: int, *, is_lost: bool = False) -> AnsweredCharge:
    fields = {"number": 1, "previous": FIRST, "nonce": "n", "run": "r", "step": 0, "clique": (), "request": FIRST}
    return AnsweredCharge(Charge.model_validate({**fields, "mechanism": mechanism, "rho": Fraction(rho)}), is_lost)


def test_a_round_is_a_selection_and_its_measurement() -> None:
    steps = [charge("measure", 5), charge("measure", 6), charge("select", 1), charge("measure", 2)]
    found = split_spending(steps)
    assert (found.initial, found.measurements) == (11, 2)
    assert [(one.select, one.measure, one.is_measured) for one in found.rounds] == [(1, 2, True)]


def test_what_was_lost_leaves_rounds_without_a_part() -> None:
    steps = [
        charge("measure", 5, is_lost=True),
        charge("select", 1, is_lost=True),
        charge("select", 1),
        charge("measure", 2, is_lost=True),
        charge("measure", 9),
    ]
    found = split_spending(steps)
    assert found.lost == 1
    assert [(one.select, one.measure, one.lost, one.is_measured) for one in found.rounds] == [
        (1, 0, 1, False),
        (1, 2, 1, False),
        (0, 9, 0, True),
    ]


@given(st.lists(st.tuples(st.sampled_from(["measure", "select"]), st.integers(1, 99), st.booleans())))
def test_every_charge_counts_once(steps: list[tuple[str, int, bool]]) -> None:
    found = split_spending([charge(mechanism, rho, is_lost=is_lost) for mechanism, rho, is_lost in steps])
    charged = found.initial + sum(one.select + one.measure for one in found.rounds)
    assert charged == sum(rho for _, rho, _ in steps)
    assert found.lost + sum(one.lost for one in found.rounds) == sum(is_lost for _, _, is_lost in steps)


# Errors to be expected, and the model


def test_pairs_that_were_never_measured_together_have_no_figure(synthesis: Synthesis) -> None:
    together = [set(m.clique) for m in synthesis.measurements]
    found = expected_errors(synthesis)
    assert len(found) == 4 + 6
    for clique, error in found.items():
        assert (error is not None) == any(set(clique) <= other for other in together)
        assert error is None or 0 < error < 1


def test_figures_are_the_same_each_time(synthesis: Synthesis) -> None:
    assert expected_errors(synthesis) == expected_errors(synthesis)


def test_lines_of_the_graph_are_the_pairs_of_the_model(synthesis: Synthesis) -> None:
    edges = model_edges(synthesis.model)
    assert all(any({e.first, e.second} <= set(clique) for clique in synthesis.model.potentials) for e in edges)
    assert [e.bits for e in edges] == sorted((e.bits for e in edges), reverse=True)


def test_pairs_that_the_tree_has_no_room_for_are_lines_too() -> None:
    tie = np.array([[5.0, 0.0], [0.0, 5.0]])
    domain = Domain((Attribute("a", 2), Attribute("b", 2), Attribute("c", 2)))
    model = calibrate(Compression(domain), {("a", "b"): np.zeros((2, 2))}, 10.0, 0.0, {("b", "c"): tie})
    assert [(e.first, e.second, round(e.bits, 6)) for e in model_edges(model)] == [("b", "c", 1.0), ("a", "b", 0.0)]


def test_mutual_information_is_nothing_apart_and_a_bit_in_step() -> None:
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0)
    assert mutual_information(np.array([[5.0, 0.0], [0.0, 5.0]])) == pytest.approx(1)
