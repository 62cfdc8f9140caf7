"""A release in memory: the loop and the curator of the library, and a synthetic table."""

from functools import cache

import pandas as pd

from ppsyn.data.contributions import bound_contributions
from ppsyn.data.encoding import EncodedTable, encode
from ppsyn.data.marginals import TableCounter
from ppsyn.data.marginals.kernel import count_blocks
from ppsyn.domain import domain_of
from ppsyn.errors import InvariantError
from ppsyn.mechanisms.base import Plan, State
from ppsyn.mechanisms.loop import make_plan, run, start
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.requests import Measured
from ppsyn.quality.questions import cliques_of, compare_request, rows_of, rows_request, scaled_to, sets_of, shares_of
from ppsyn.selftest.cases import RHO, Case
from ppsyn.selftest.likelihood import Tape, Transcript
from ppsyn.synthesis import Synthesis


def release(
    case: Case, *, has_canary: bool, seed: int, has_rows: bool = True
) -> tuple[Transcript, pd.DataFrame | None]:
    """The answers of a release, and its synthetic table if that is wanted or asked about."""
    plan, account = _plan(case), MemoryAccount(RHO)
    curator = TableCurator(TableCounter(_encoded(case, has_canary)), account, plan.sensitivity)
    tape = Tape(curator)
    state = run(tape, start(plan))
    frame = _rows(case, account, state, seed) if has_rows or case.quality else None
    if frame is not None and case.quality:
        _compare(case, curator, tape, frame)
    return tape.transcript, frame


def _compare(case: Case, curator: TableCurator, tape: Tape, frame: pd.DataFrame) -> None:
    """Ask for figures of the table's quality, as `ppsyn quality` does."""
    plan = _plan(case)
    sets = sets_of(plan.domain, plan.config.workload)
    cliques = cliques_of(sets)
    synthetic = dict(zip(cliques, count_blocks(plan.domain, [encode(frame, case.table).columns], cliques), strict=True))
    first, second = shares_of(case.quality, sets)
    rows = rows_request(plan.domain, first)
    answer = curator.answer(rows)
    if not isinstance(answer, Measured):
        raise InvariantError("Expected numbers for an answer.")
    figures = compare_request(sets, synthetic, scaled_to(rows_of(answer)), second)
    tape.transcript += [(rows, answer), (figures, curator.answer(figures))]


@cache
def _plan(case: Case) -> Plan:
    return make_plan(domain_of(case.table), case.rho, case.max_rows, case.config)


def _encoded(case: Case, has_canary: bool) -> EncodedTable:
    """The codes. Which rows of a person count is drawn anew for each release; without persons, nothing is."""
    person = case.privacy.person
    if person is None:
        return codes(case, has_canary)
    frame = bound_contributions(case.frame(has_canary=has_canary), person.column, person.max_rows)
    return encode(frame, case.table)


@cache
def codes(case: Case, has_canary: bool) -> EncodedTable:
    """The codes of a table without persons."""
    return encode(case.frame(has_canary=has_canary), case.table)


def _rows(case: Case, account: MemoryAccount, state: State, seed: int) -> pd.DataFrame:
    return Synthesis.from_state(state, account.ledger, case.table, case.privacy, case.config, seed).table
