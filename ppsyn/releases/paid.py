"""Whether entries of an account pay for what was published: chain, arithmetic, and the account itself."""

from collections.abc import Sequence

from ppsyn.dp.audit import accounted_epsilon
from ppsyn.dp.ledger import Ledger
from ppsyn.errors import BudgetExceededError
from ppsyn.releases.opened import ledger_of
from ppsyn.releases.publish import span_of
from ppsyn.releases.tables import charges_of
from schemas.account import Close, Hold, from_bytes, hash_of
from schemas.manifest import AccountSpan, Guarantee

_ACCOUNTANT_SLACK = 1e-3
"""dp-accounting tries a grid of orders; its epsilon is that much larger at most."""


class Fault(Exception):
    """Something that does not hold."""


def check_chain(span: AccountSpan, entries: Sequence[bytes], file: str) -> None:
    """See that the entries are those of the span, one after the other."""
    previous = span.before
    for number, data in enumerate(entries, span.first):
        entry = from_bytes(data)
        if entry.number != number or entry.previous != previous:
            raise Fault(f"Entry {entry.number} of {file} does not follow the one before it.")
        previous = hash_of(data)
    if previous != span.head or span.first + len(entries) - 1 != span.last:
        raise Fault(f"{file} does not hold the entries that it names.")


def check_spending(entries: Sequence[bytes], run: str, span: AccountSpan, told: Guarantee) -> Hold:
    """See that a run spent what is told and no more than it held; returns its hold."""
    recorded = ledger_of(entries, run)
    ledger = Ledger(recorded.total)
    try:
        for spend in recorded.spends:
            ledger = ledger.debit(spend)
    except BudgetExceededError:
        raise Fault("The run has spent more than it held.") from None
    holds = [entry for entry in map(from_bytes, entries) if isinstance(entry, Hold) and entry.run == run]
    if len(holds) != 1:
        raise Fault("The run has not set its budget aside once.")
    if not 0 <= span.left <= span.cap - ledger.total:
        raise Fault("The account cannot have left what is told.")
    if [charge.step for charge in charges_of(entries, run)] != list(range(len(ledger.spends))):
        raise Fault("The steps of the run are not charged one after the other.")
    if told.rho != ledger.spent:
        raise Fault("The guarantee does not follow from what was spent.")
    _check_accountant(told, ledger)
    return holds[0]


def _check_accountant(told: Guarantee, ledger: Ledger) -> None:
    if told.epsilon is None or told.delta is None:
        return
    certified = accounted_epsilon(ledger, told.delta)
    if abs(certified - told.epsilon) > _ACCOUNTANT_SLACK * told.epsilon:
        raise Fault(f"dp-accounting finds epsilon {certified:.6g} where {told.epsilon:.6g} is told.")


def check_stored(stored: Sequence[bytes], span: AccountSpan, entries: Sequence[bytes]) -> None:
    """See that the account holds these entries, and stood as is told after the last of them."""
    if list(stored[span.first : span.last + 1]) != list(entries):
        raise Fault("The account holds other entries than the release.")
    if span_of(stored[: span.last + 1], span.first) != span:
        raise Fault("The account had another cap, or another amount left, than the release says.")


def check_closed(stored: Sequence[bytes], run: str, digest: str) -> None:
    """See that the account closed the run with the digest of what was published."""
    closes = [e for e in map(from_bytes, stored) if isinstance(e, Close) and e.run == run]
    if [close.manifest for close in closes] != [digest]:
        raise Fault("The account knows this run with another manifest.")
