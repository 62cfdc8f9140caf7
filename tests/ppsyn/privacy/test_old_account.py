"""An account as an earlier version stored it, byte for byte: it is read and goes on."""

from fractions import Fraction

from support.accounts import GRAIN, cost

from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import replay_state
from ppsyn.schemas.account import Reservation, from_bytes, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

OLD = (
    (
        b'{"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","nonce":"0'
        b'0000000000000000000000000000000","kind":"opening","format":"ppsyn-account-1","dataset":"people","cap'
        b'":"1","delta":1e-9,"unit":"a row","at":"2025-03-04T05:06:07Z","digest":"1fb4665aa644456275c4743a581c'
        b'4a0736a05dbb6a913d7664060049800dd4dd"}'
        b"\n"
    ),
    (
        b'{"number":1,"previous":"9fa339c0c1fa6c6fb9393146a9e0c6b92a9632a6eb8c353e11166def6cbf3050","nonce":"0'
        b'0000000000000000000000000000001","kind":"hold","run":"old","rho":"1/2","inputs":"aaaaaaaaaaaaaaaaaaa'
        b'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","quality_of":null,"at":"2025-03-04T05:06:07Z","is_cha'
        b'ined":false,"digest":"9983648f9da7290f45220ac9909e850c8a2bf94549baa6adb32a9363dc424535"}'
        b"\n"
    ),
    (
        b'{"number":2,"previous":"154fb7580260a2f6cd319621c45d14ebeb06969837eb4c3f8dc32c4a805ab344","nonce":"0'
        b'0000000000000000000000000000002","kind":"charge","run":"old","step":0,"mechanism":"measure","clique"'
        b':["age"],"rho":"1/3","request":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","d'
        b'igest":"4bf2f5b49f123e9e49e8a6bb7cda6ae91364d75d7c112504adfd4175bb706661"}'
        b"\n"
    ),
    (
        b'{"number":3,"previous":"d66abe3bff3a9310e335d85a74f565920f603fb9f1920a52c4c29f88dea75a41","nonce":"0'
        b'0000000000000000000000000000003","kind":"close","run":"old","manifest":"cccccccccccccccccccccccccccc'
        b'cccccccccccccccccccccccccccccccccccc","at":"2025-03-04T05:06:07Z","spent":null,"digest":"03a21bc749d'
        b'28ed5d236720d6302adf63d6bee17d53894811a88c1c3a35f9c0d"}'
        b"\n"
    ),
    (
        b'{"number":4,"previous":"217e45cd98aa4a325dfcd1c1057f4dccb0db35321a9ed27da40a201b64f0fbb1","nonce":"0'
        b'0000000000000000000000000000004","kind":"cap","cap":"2","at":"2025-03-04T05:06:07Z","digest":"15e26f'
        b'8b26fa15471fe0bfc87d17699f482efd3147d2f62ebe35fc2f4a5b116b"}'
        b"\n"
    ),
)
"""Written by the version before `Reservation` had its name."""


def test_the_entries_of_an_old_account_are_read_and_written_as_they_were() -> None:
    assert isinstance(from_bytes(OLD[1]), Reservation)
    assert tuple(to_bytes(from_bytes(data)) for data in OLD) == OLD


def test_an_old_account_counts_what_it_counted() -> None:
    state = replay_state(OLD)
    assert (state.cap, state.committed, state.spent) == (2, Fraction(1, 3), Fraction(1, 3))
    assert (state.latest, state.budgets["old"].manifest) == ("old", "c" * 64)


def test_an_old_account_goes_on_with_runs_that_have_charges_of_their_own() -> None:
    store = open_store(Location(url="memory://an-old-account"))
    for number, data in enumerate(OLD):
        store.put(f"accounts/people/{number:06d}.json", data)
    account = StoredAccount(store, "people")
    account.reserve("new", Fraction(1), "d" * 64)
    RunAccount(account, "new").charge(cost(GRAIN))
    account.close("new", None)
    assert StoredAccount(store, "people").state.committed == Fraction(1, 3) + GRAIN
    assert b'"kind":"hold"' in account.entries()[5]
