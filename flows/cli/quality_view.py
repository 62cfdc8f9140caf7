"""Noisy figures about a release, from the question to what a person reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ppsyn.domain import domain_of
from ppsyn.errors import AuditError, ConfigError
from ppsyn.flows.cli.release_sources import Original
from ppsyn.flows.cli.release_view import seen_from_here
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.budget import rho_from, rho_of
from ppsyn.quality import run as runs
from ppsyn.quality.questions import cliques_of, sets_of
from ppsyn.releases.audit import audit
from ppsyn.releases.reader import published_counts, read_sealed
from ppsyn.reports.formatting import exact_percent
from ppsyn.reports.quality import name_figures
from ppsyn.schemas.config import Budget
from ppsyn.schemas.quality import Quality, QualityRecord
from ppsyn.schemas.run import RunRef
from ppsyn.storage import Store, open_store
from ppsyn.tasks.step import sealed


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures, and how the account stands after them."""

    quality: Quality
    left: float
    cap: float

    def as_text(self, url: str, release: str) -> str:
        """For a person."""
        quality, guarantee = self.quality, self.quality.guarantee
        cost = f"rho {float(guarantee.rho):.6g}"
        if guarantee.epsilon is not None:
            cost = f"epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:g} ({cost})"
        figures = name_figures(quality)
        width = max(len(name) for name, _, _ in figures)
        lines = [
            f"  {name:<{width}}  {exact_percent(f.distance):>7}   {exact_percent(f.lower)} to {exact_percent(f.upper)}"
            for name, _, f in figures
        ]
        folder = seen_from_here(release)
        return "\n".join(
            (
                "Rows in another cell than in the private table, with where the truth lies (95%):",
                *lines,
                f"figures   {seen_from_here(url)}",
                f"page      {seen_from_here(url).removesuffix('.json')}.html",
                f"spent     {cost}, protecting {guarantee.unit}",
                f"account   {quality.asked.dataset}: rho {self.left:.6g} left of {self.cap:.6g}",
                f"audit     ppsyn audit {folder}",
            )
        )


def asked_rho(account: StoredAccount, rho: float | None, epsilon: float | None) -> Fraction:
    """What to spend.

    Raises:
        ConfigError: If it is not said, or said twice, or the account has no delta to convert epsilon at.
    """
    if (rho is None) == (epsilon is None):
        raise ConfigError("Expected --rho or --epsilon: what the figures may cost. One of them.")
    if rho is not None:
        if not 0 < rho < float("inf"):
            raise ConfigError(f"Expected --rho={rho:g} to be positive and finite.")
        return rho_of(Budget(rho=rho))
    delta = account.state.opening.delta
    if delta is None or epsilon is None:
        raise ConfigError("The account names no delta; give --rho instead of --epsilon.")
    return rho_from(epsilon, delta)


def check_release(release: Store, original: Original) -> None:
    """See that the release is as it was published and paid for, before anything is spent on figures about it.

    Raises:
        AuditError: If it is not.
    """
    account = StoredAccount(open_store(original.ref.root), original.ref.dataset)
    problems = [f"{found.subject}: {found.problem}" for found in audit(release, account) if found.problem is not None]
    if problems:
        raise AuditError(release.location.url, problems)


def measure(
    release: Store, original: Original, rho: float | None, epsilon: float | None, named: Sequence[Sequence[str]]
) -> Measured:
    """Measure a release, at a cost to its dataset's account.

    Raises:
        CapExceededError: If the account does not have it; no row was read.
    """
    manifest, digest = read_sealed(release)
    account = StoredAccount(open_store(original.ref.root), manifest.dataset)
    domain = domain_of(manifest.table)
    record = QualityRecord(
        run=runs.new_run(manifest.run),
        dataset=manifest.dataset,
        release=manifest.run,
        manifest=digest,
        rho=asked_rho(account, rho, epsilon),
        delta=account.state.opening.delta,
        person=manifest.privacy.person,
        sets=sets_of(domain, manifest.algorithm.workload, [tuple(names) for names in named]),
    )
    ref = original.ref.model_copy(update={"run": record.run})
    runs.check_possible(ref, record, original.source, manifest.table, release)
    synthetic = published_counts(release, manifest, cliques_of(record.sets))

    @sealed
    def asked(ref: RunRef) -> Quality:
        return runs.measure(ref, record, original.source, manifest.table, synthetic)

    quality, state = asked(ref), account.state
    return Measured(quality, float(state.left), float(state.cap))


def earlier(release: Store, original: Original) -> list[str]:
    """What earlier calls have paid for and left no figures of, a sentence each."""
    account = StoredAccount(open_store(original.ref.root), original.ref.dataset)
    return [_sentence(budget) for budget in runs.unanswered(account, release, original.ref.run)]


def _sentence(budget: RunBudget) -> str:
    text = f"Run {budget.run} was charged rho {float(budget.spent):.6g} and left no figures here; it stays charged."
    if budget.is_open:
        text += f" Unless it is under way elsewhere, `ppsyn abandon {budget.run}` frees the rho that it reserved."
    return text
