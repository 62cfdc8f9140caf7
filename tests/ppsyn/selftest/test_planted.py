"""Faults that the audit must find, each within a minute of CPU. They are planted here and nowhere else."""

import time
from fractions import Fraction

import pytest

from ppsyn.arrays import Ints
from ppsyn.privacy import curator
from ppsyn.privacy.curator import Counter, TableCurator
from ppsyn.privacy.ledger import Account
from ppsyn.privacy.noise import add_discrete_gaussian, draw_noisy_max
from ppsyn.privacy.requests import GRID, Candidate
from ppsyn.privacy.scores import score
from ppsyn.runs import run
from ppsyn.selftest import library
from ppsyn.selftest.attacks import Finding
from ppsyn.selftest.suite import Effort, audit, check_cases


def found(case: str, runs: int, folders: int) -> Finding:
    """What the audit of one case finds, within a minute of this process."""
    began = time.process_time()
    (finding,) = audit(check_cases([case]), Effort(runs, folders, jobs=1), together=1)
    assert time.process_time() - began < 60
    return finding


def forgetful(counter: Counter, account: Account, max_rows: int = 1, *, is_watched: bool = False) -> TableCurator:
    """A curator that is not told how many rows of a person count."""
    return TableCurator(counter, account, 1, is_watched=is_watched)


def test_that_max_rows_is_not_passed_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "TableCurator", forgetful)
    monkeypatch.setattr(run, "TableCurator", forgetful)
    finding = found("persons", runs=200, folders=5)  # the answers alone are looked at
    assert any("the answers tell mu" in fault for fault in finding.faults)


@pytest.mark.slow
def test_noise_a_tenth_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def quiet(counts: Ints, rho: Fraction, sensitivity: int) -> tuple[Ints, float]:
        return add_discrete_gaussian(counts, rho / Fraction(81, 100), sensitivity)

    def sharp(scores: list[int], rho: Fraction, sensitivity: int) -> int:
        return draw_noisy_max(scores, rho / Fraction(81, 100), sensitivity)

    monkeypatch.setattr(curator, "add_discrete_gaussian", quiet)
    monkeypatch.setattr(curator, "draw_noisy_max", sharp)
    finding = found("independent", runs=8500, folders=20)
    assert any("the answers tell mu" in fault for fault in finding.faults)


@pytest.mark.slow
def test_a_score_that_reads_the_total_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(candidate: Candidate, counts: Ints) -> int:
        """A pair is worth more in a table of more rows than the others have, and less in one of as many."""
        extra = 8 * GRID * (2 * int(counts.sum()) - 81)
        return score(candidate, counts) + (extra if candidate.clique == ("x", "y") else 0)

    monkeypatch.setattr(curator, "score", reading)
    finding = found("mst", runs=40, folders=120)
    assert any("the folder tell" in fault for fault in finding.faults)
