"""The earlier releases that a run learns from: published, of the same account, and as they were published."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ppsyn.errors import ConfigError, PPSynError
from ppsyn.mechanisms.translation import Earlier, past_of
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.releases.layout import MANIFEST, RETIRED, release_folder
from ppsyn.releases.reader import read_told
from ppsyn.runs.record import Learned
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import EarlierRelease
from ppsyn.schemas.table import TableSchema
from ppsyn.serialization import pack_past
from ppsyn.storage import Store, open_store

_READERS = 16


def learn(config: ReleaseConfig, table: TableSchema) -> Learned:
    """Read the earlier releases that a release file names. Nothing is written or spent.

    Privacy:
        Claims C6 and C9. They were charged to the account that the new run is charged to.

    A release that was retired is left out and named.

    Raises:
        ConfigError: If another cannot be learned from, and the file does not say to leave it out.
    """
    wanted, location = config.learn_from, config.stores.root
    if not wanted.is_wanted:
        return Learned()
    published = list(_published(StoredAccount(open_store(location), config.dataset)))
    releases = open_store(config.stores.releases or location)
    chosen = _chosen(config, published)
    with ThreadPoolExecutor(_READERS) as pool:
        found = list(pool.map(partial(_read, releases, config), chosen))
    told, learned, left_out = list[Earlier](), list[EarlierRelease](), list[str]()
    below = dict[str, EarlierRelease]()
    for budget, one in zip(chosen, found, strict=True):
        if isinstance(one, tuple):
            manifest, answers = one
            told.append(answers)
            learned.append(EarlierRelease(run=budget.run, manifest=budget.manifest or "", rho=manifest.guarantee.rho))
            below |= {release.run: release for release in (*manifest.rests_on, learned[-1])}
        elif wanted.unusable == "leave out" or releases.has(f"{release_folder(config.dataset, budget.run)}/{RETIRED}"):
            left_out.append(f"release {budget.run}: {one}")
        else:
            raise ConfigError(
                f"Cannot learn from release {budget.run}: {one} Nothing was spent. Restore it, or set "
                "learn_from.unusable to 'leave out', or learn_from to none."
            )
    past, of_no_use = past_of(told, table)
    rests_on = tuple(below[run] for run in sorted(below))
    return Learned(tuple(learned), rests_on, None if past is None else pack_past(past), (*left_out, *of_no_use))


def _published(account: StoredAccount) -> Iterator[RunBudget]:
    """The releases of an account, in the order in which they reserved their budgets."""
    state = account.find()
    for budget in () if state is None else state.budgets.values():
        if budget.quality_of is None and budget.manifest is not None:
            yield budget


def _chosen(config: ReleaseConfig, published: list[RunBudget]) -> list[RunBudget]:
    wanted = config.learn_from
    if wanted.last is not None:
        return published[-wanted.last :]
    if isinstance(wanted.releases, str):
        return published
    unknown = sorted(set(wanted.releases) - {budget.run for budget in published})
    if unknown:
        raise ConfigError(
            f"Expected learn_from to name published releases of the account of {config.dataset!r}; "
            f"{', '.join(unknown)} is none. Only what the same account has paid for may be learned from. Nothing was "
            "spent."
        )
    return [budget for budget in published if budget.run in wanted.releases]


def _read(releases: Store, config: ReleaseConfig, budget: RunBudget) -> tuple[Manifest, Earlier] | PPSynError:
    """What a release has told, if it is as its account has closed it and protects the same unit."""
    folder = release_folder(config.dataset, budget.run)
    try:
        if releases.has(f"{folder}/{RETIRED}"):
            return ConfigError("It was retired.")
        if not releases.has(f"{folder}/{MANIFEST}"):
            return ConfigError(f"There is none in {releases.url(folder)}.")
        found = read_told(open_store(releases.location.child(folder)), budget.manifest)
        _check_unit(config, found[0])
    except PPSynError as error:
        return error
    return found


def _check_unit(config: ReleaseConfig, manifest: Manifest) -> None:
    if manifest.dataset != config.dataset:
        raise ConfigError(f"It is of another dataset, {manifest.dataset!r}.")
    then, now = (person and person.column for person in (manifest.privacy.person, config.privacy.person))
    if then != now:
        raise ConfigError("It protects another unit of privacy.")
