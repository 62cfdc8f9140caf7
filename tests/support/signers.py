"""People with keys, and an account whose policy names them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from support.accounts import DATASET, open_account
from support.policies import policy

from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.signatures import KEY, Signer, new_key
from ppsyn.schemas.policy import Policy
from ppsyn.storage import Store

RIGHTS: Mapping[str, tuple[str, ...]] = {
    "ana": ("release",),
    "bo": ("approve",),
    "cy": ("approve", "release"),
    "dee": ("policy",),
}


class Office:
    """Keys of people in a folder; whoever acts signs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        self.signers: dict[str, Signer] = {name: new_key(self.file(name), None) for name in (*RIGHTS, "eve")}

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    @contextmanager
    def as_person(self, name: str | None) -> Iterator[None]:
        """Act as somebody, or as nobody."""
        with self._patch.context() as patch:
            if name is None:
                patch.delenv(KEY, raising=False)
            else:
                patch.setenv(KEY, str(self.file(name)))
            yield

    def govern(self, store: Store, found: Policy | None = None, dataset: str = DATASET) -> StoredAccount:
        """An account whose policy names the people, and that trusts their keys."""
        account = open_account(store, Fraction(10), dataset)
        with self.as_person("dee"):
            for name in ("dee", "ana", "bo", "cy"):
                account.change_key(name, self.signers[name].public, is_trusted=True)
            account.set_policy(found or policy(people=RIGHTS))
        return account
