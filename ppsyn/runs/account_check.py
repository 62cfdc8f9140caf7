"""Whether an account knows all that lies beside it: releases, runs and charges that it must have paid for."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

from ppsyn.errors import AccountError, MissingError
from ppsyn.privacy.account import StoredAccount, datasets
from ppsyn.releases.layout import MANIFEST, QUALITY, RETIRED, release_folder
from ppsyn.storage import Store

_READERS = 16
_MOST_NAMED = 10


def check_known(account: StoredAccount, root: Store, releases: Store) -> None:
    """See that the account of a dataset knows the runs beside it that have told something; nothing is written.

    Privacy:
        Claim C9, limit L16. An account that was removed or set back would let what is
        spent already be spent again.

    Args:
        account: The account.
        root: Where it and the runs are.
        releases: Where releases are published.

    Raises:
        AccountError: Naming what the account lacks.
    """
    dataset = account.dataset
    charged = set(account.charged_runs())
    found = {*charged, *releases.folders(f"releases/{dataset}"), *root.folders("runs")}
    state = account.find()  # after what was found: a run reserves its budget before it leaves anything
    unknown = found - (state.budgets.keys() if state else set())
    if not unknown:
        return
    elsewhere = {
        run for other in datasets(root) if other != dataset for run in StoredAccount(root, other).charged_runs()
    }
    with ThreadPoolExecutor(_READERS) as pool:
        spent = list(pool.map(partial(_has_spent, root, releases, dataset), sorted(unknown - elsewhere)))
    lacking = sorted({*filter(None, spent), *(charged & unknown)})
    if lacking:
        named = ", ".join(lacking[:_MOST_NAMED]) + (" and others" if len(lacking) > _MOST_NAMED else "")
        raise AccountError(
            f"The account of {dataset!r} in {root.location.url} does not know {len(lacking)} of the runs beside it, "
            f"which have spent budget: {named}. It was removed or set back, and would spend that again. Nothing was "
            f"spent now. Restore accounts/{dataset} as it was last. If it is lost for good, begin in an empty store, "
            "with a cap that leaves out what these runs have spent."
        )


def _has_spent(root: Store, releases: Store, dataset: str, run: str) -> str | None:
    """The run, if it is one of the dataset and has left an answer, a release or figures."""
    if any(releases.has(f"{release_folder(dataset, run)}/{name}") for name in (MANIFEST, RETIRED)):
        return run
    if _field(root, f"runs/{run}/config.json", "dataset") == dataset:
        return run if root.level(f"runs/{run}/answers")[0] else None
    if _field(root, f"runs/{run}/quality.json", "dataset") == dataset:
        release = str(_field(root, f"runs/{run}/quality.json", "release"))
        folder, figures = release_folder(dataset, release), f"{QUALITY}/{run}.json"
        removed = _field(releases, f"{folder}/{RETIRED}", "files")
        is_named = isinstance(removed, dict) and figures in removed
        return run if is_named or releases.has(f"{folder}/{figures}") else None
    return None


def _field(root: Store, key: str, name: str) -> object:
    """A field of a run's record, whichever version wrote it; None if there is none, or it cannot be read."""
    try:
        document: object = json.loads(root.get(key))
    except (MissingError, ValueError):
        return None
    return cast("dict[str, object]", document).get(name) if isinstance(document, dict) else None
