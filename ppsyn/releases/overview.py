"""What a store holds, dataset by dataset, for somebody who has to see whether all is well."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from ppsyn.errors import InvariantError, PPSynError, StoreError
from ppsyn.privacy.account import StoredAccount, datasets
from ppsyn.privacy.account_state import RunBudget
from ppsyn.releases.layout import RETIRED, release_folder
from ppsyn.reports.overview import Audit, Dataset, Overview, Planned, RunLine, RunState, Trouble
from ppsyn.runs.account_check import check_known
from ppsyn.runs.heartbeat import was_heard
from ppsyn.runs.record import locations_of
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

_RESTORE = "Nothing is released from it until this is solved."


@dataclass(slots=True)
class Look:
    """An overview in the making. What fails for one dataset does not hide the others.

    Attributes:
        root: The store with accounts and runs.
        audit: What tells all that is wrong with a release, a sentence each; None to audit none.
        failures: What could not be read, and what contradicts itself.
    """

    root: Store
    audit: Callable[[Store, StoredAccount], list[str]] | None = None
    failures: list[PPSynError] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)

    def overview(self, at: datetime, planned: Iterable[Planned], troubles: Iterable[Trouble]) -> Overview:
        """Look at all datasets.

        Args:
            at: The present.
            planned: Releases that are to come, the next first.
            troubles: What is known to wait for somebody already.

        Raises:
            StoreError: If not even the list of datasets can be read.
        """
        coming = sorted(planned, key=lambda one: (one.at is None, one.at or at))
        names = sorted({*datasets(self.root), *self.root.folders("releases")})
        found = [one for name in names if (one := self._dataset(name, coming)) is not None]
        known = {one.name for one in found}
        return Overview(
            store=self.root.location.url,
            at=at,
            datasets=tuple(found),
            troubles=(*troubles, *self.troubles),
            unassigned=tuple(one for one in coming if one.dataset not in known),
            is_audited=self.audit is not None,
        )

    def _dataset(self, name: str, coming: Iterable[Planned]) -> Dataset | None:
        try:
            return self._read(name, tuple(one for one in coming if one.dataset == name))
        except InvariantError:
            raise
        except PPSynError as error:
            self._note(name, error, _RESTORE)
            return None

    def _read(self, name: str, planned: tuple[Planned, ...]) -> Dataset | None:
        account = StoredAccount(self.root, name)
        state = account.find()
        budgets = [] if state is None else account.budgets()
        places = {budget.run: self._releases_of(budget.run) for budget in budgets}
        retired = set[str]()
        for place in {place.url: place for place in (self.root.location, *places.values())}.values():
            check_known(account, self.root, store := open_store(place))
            retired |= {key.split("/")[-2] for key in store.keys(f"releases/{name}") if key.endswith(f"/{RETIRED}")}
        if state is None:
            return None
        return Dataset(
            name=name,
            unit=state.opening.unit,
            delta=state.opening.delta,
            cap=state.cap,
            spent=(spent := sum((budget.spent for budget in budgets), start=state.cap * 0)),
            reserved=state.committed - spent,
            runs=tuple(self._run(account, budget, places[budget.run], budget.run in retired) for budget in budgets),
            planned=planned,
        )

    def _releases_of(self, run: str) -> Location:
        """Where a run publishes, as it has written down."""
        noted = locations_of(self.root, run)
        return self.root.location if noted is None or noted.releases is None else noted.releases

    def _run(self, account: StoredAccount, budget: RunBudget, releases: Location, is_retired: bool) -> RunLine:
        state = "retired" if is_retired else self._state(budget)
        is_release = budget.quality_of is None
        return RunLine(
            run=budget.run,
            kind="release" if is_release else "quality",
            state=state,
            at=budget.grant.at,
            ended=budget.closed_at,
            committed=budget.committed,
            audit=self._audited(account, budget, releases) if is_release and budget.manifest else None,
        )

    def _state(self, budget: RunBudget) -> RunState:
        if budget.is_open:
            return "working" if was_heard(self.root, budget.run) else "waiting"
        return "published" if budget.manifest else "abandoned"

    def _audited(self, account: StoredAccount, budget: RunBudget, releases: Location) -> Audit | None:
        if self.audit is None:
            return None
        store = open_store(releases.child(release_folder(account.dataset, budget.run)))
        try:
            return Audit(tuple(self.audit(store, account)))
        except StoreError as error:
            self._note(account.dataset, error, "Its audit says nothing until it can be read.")
            return None

    def _note(self, name: str, error: PPSynError, remedy: str) -> None:
        self.failures.append(error)
        self.troubles.append(Trouble(name, str(error), remedy))
