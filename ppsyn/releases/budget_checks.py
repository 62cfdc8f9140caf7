"""What a release says that it cost, and whether entries of an account pay for that: chain, arithmetic, the account."""

from collections.abc import Sequence
from fractions import Fraction

from ppsyn.errors import AccountError, BudgetExceededError, RunTakenError, translated
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import Chain
from ppsyn.privacy.accountant import accounted_epsilon
from ppsyn.privacy.budget import epsilon_from
from ppsyn.privacy.ledger import Ledger
from ppsyn.releases.reader import ledger_of
from ppsyn.releases.tables import charges_of
from ppsyn.schemas.account import Grant, from_bytes, hash_of
from ppsyn.schemas.config import PrivacyConfig
from ppsyn.schemas.manifest import AccountPart, Guarantee
from ppsyn.schemas.run import EarlierRelease


class Fault(Exception):
    """Something that does not hold."""


_ACCOUNTANT_SLACK = 1e-3
"""dp-accounting tries a grid of orders; its epsilon is that much larger at most."""


def together(rho: Fraction, rests_on: Sequence[EarlierRelease], privacy: PrivacyConfig) -> Guarantee:
    """What a release costs with all that it rests on: their answers are composed, whoever chose what they answer."""
    return guarantee_of(sum((release.rho for release in rests_on), rho), privacy)


def guarantee_of(rho: Fraction, privacy: PrivacyConfig) -> Guarantee:
    """What a release that spent rho promises."""
    person = privacy.person
    unit = "a row" if person is None else f"a person, by at most {person.max_rows} rows ({person.column!r})"
    epsilon = None if privacy.delta is None else epsilon_from(rho, privacy.delta)
    return Guarantee(rho=rho, epsilon=epsilon, delta=privacy.delta, unit=unit)


def account_part(account: StoredAccount, run: str) -> AccountPart:
    """What a release tells of its part of the account. Nothing that another run has done plays a part in it."""
    budget, chain = account.state.budgets[run], account.chain(run)
    return AccountPart(charges=len(chain.ledger.spends), head=hash_of(chain.lines[-1]), cap=budget.cap)


def check_chain(said: AccountPart, entries: Sequence[bytes], file: str) -> None:
    """See that the entries follow each other, and are those that are stated."""
    grant = from_bytes(entries[0]) if entries else None
    if not isinstance(grant, Grant):
        raise Fault(f"{file} does not begin with what the run was granted.")
    chain = Chain(grant)
    caught = AccountError, BudgetExceededError, RunTakenError
    with translated(
        caught, to=Fault, message=lambda e: f"Entry {chain.count} of {file} does not follow the one before it: {e}"
    ):
        for data in entries[1:]:
            chain.post(data)
    if (chain.count, chain.head, chain.seal, chain.lines) != (said.charges, said.head, None, list(entries)):
        raise Fault(f"{file} does not hold the entries that it names.")


def check_spending(entries: Sequence[bytes], run: str, said: AccountPart, stated: Guarantee) -> Grant:
    """See that a run spent what is stated, and no more than it was granted; its grant."""
    recorded = ledger_of(entries, run)
    ledger = Ledger(recorded.total)
    try:
        for spend in recorded.spends:
            ledger = ledger.debit(spend)
    except BudgetExceededError:
        raise Fault("The run has spent more than it reserved.") from None
    grants = [entry for entry in map(from_bytes, entries) if isinstance(entry, Grant) and entry.run == run]
    if len(grants) != 1:
        raise Fault("The run has not reserved its budget once.")
    if ledger.total > said.cap:
        raise Fault("The account cannot have had the balance that the release states.")
    if [charge.step for charge in charges_of(entries, run)] != list(range(len(ledger.spends))):
        raise Fault("The steps of the run are not charged one after the other.")
    if stated.rho != ledger.spent:
        raise Fault("The guarantee does not follow from what was spent.")
    _check_accountant(stated, ledger)
    return grants[0]


def _check_accountant(stated: Guarantee, ledger: Ledger) -> None:
    if stated.epsilon is None or stated.delta is None:
        return
    certified = accounted_epsilon(ledger, stated.delta)
    if abs(certified - stated.epsilon) > _ACCOUNTANT_SLACK * stated.epsilon:
        raise Fault(f"dp-accounting finds epsilon {certified:.6g} where the release states {stated.epsilon:.6g}.")


def check_stored(account: StoredAccount, run: str, said: AccountPart, entries: Sequence[bytes], digest: str) -> None:
    """See that the account holds the run's entries, had the stated balance, and closed the run with what was published.

    Args:
        account: The account, read from its first entry.
        run: The run.
        said: What the release states of the account.
        entries: The charges as the release states them.
        digest: Of what was published.
    """
    budget = account.state.budgets.get(run)
    if budget is None:
        raise Fault(f"The account does not know run {run}: it was set back, or is of another store.")
    if account.chain(run).lines != list(entries):
        raise Fault("The account holds other entries than the release.")
    if budget.cap != said.cap:
        raise Fault("The account had another cap than the release says.")
    if budget.is_open or budget.manifest != digest:
        raise Fault("The account knows this run with another manifest.")
