import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.neighbours import partitions

from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.requests import GRID, Candidate
from ppsyn.privacy.scores import score


def test_a_score_is_what_the_model_misses_less_the_penalty() -> None:
    candidate = Candidate(("a",), finest(3), np.array([GRID, 0, 5]), 7)
    assert score(candidate, np.array([3, 1, 0])) == 2 * GRID + GRID + 5 - 7


def test_misses_within_a_group_cancel() -> None:
    whole = Partition(np.zeros(3, np.int32), 1)
    assert score(Candidate(("a",), whole, np.array([4 * GRID]), 0), np.array([3, 1, 0])) == 0


@given(st.data(), st.lists(st.integers(0, 2**20), min_size=1, max_size=12))
@settings(deadline=None)
def test_a_model_that_knows_the_table_scores_its_penalty(data: st.DataObject, counts: list[int]) -> None:
    exact, partition = np.array(counts), data.draw(partitions(len(counts)))
    candidate = Candidate(("a",), partition, partition.sum_counts(exact) * GRID, 11)
    assert score(candidate, exact) == -11
