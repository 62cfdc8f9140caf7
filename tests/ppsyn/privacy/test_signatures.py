"""Envelopes that others' tools verify, keys in files, and entries that nobody else can have made."""

import base64
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from google.protobuf.json_format import Parse
from in_toto_attestation.v1.statement import Statement as TheirStatement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey
from support.accounts import DATASET, DIGEST, contents, cost, key_of, new_memory, open_account, remove
from support.policies import monthly, policy
from support.signers import RIGHTS, Office

from ppsyn.errors import AccountError, ConfigError, PolicyError, SignatureError
from ppsyn.privacy import signatures as module
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.signatures import Signer, new_key, own_signer, read_key, read_public, verify
from ppsyn.schemas.account import PolicyChange, from_bytes, to_bytes
from ppsyn.schemas.signature import EntrySigned, Envelope, HeadSigned
from ppsyn.storage import Store, open_store

HALF = Fraction(1, 2)
TOLD = EntrySigned(dataset=DATASET, number=3)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return Office(tmp_path, monkeypatch)


@pytest.fixture
def store() -> Store:
    return open_store(new_memory())


def refused(store: Store, write: Callable[[], object], error: type[Exception], told: str) -> None:
    before = contents(store)
    with pytest.raises(error, match=told):
        write()
    assert contents(store) == before


# Others' tools


def theirs(envelope: Envelope, file: Path) -> tuple[TheirEnvelope, SSlibKey]:
    """The envelope and the key as the reference implementation of DSSE reads them: from JSON and PEM."""
    pem = file.with_suffix(".pub").read_text(encoding="utf-8")
    key = SSlibKey(envelope.keyid, "ed25519", "ed25519", {"public": read_hex(file)})
    assert pem.startswith("-----BEGIN PUBLIC KEY-----")
    return TheirEnvelope.from_dict(json.loads(envelope.to_bytes())), key


def read_hex(file: Path) -> str:
    return base64.b64decode(read_public(file.with_suffix(".pub"))).hex()


def test_an_envelope_is_verified_by_securesystemslib_and_holds_a_statement_of_in_toto(office: Office) -> None:
    envelope = office.signers["ana"].sign("accounts/adult/000003.json", DIGEST, TOLD)
    their, key = theirs(envelope, office.file("ana"))
    assert list(their.verify([key], 1)) == [envelope.keyid]
    statement = json.loads(their.payload)
    TheirStatement.copy_from_pb(_as_protobuf(statement)).validate()
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "accounts/adult/000003.json", "digest": {"sha256": DIGEST}}]
    _, stranger = theirs(envelope, office.file("eve"))
    with pytest.raises(VerificationError):
        their.verify([stranger], 1)


def _as_protobuf(statement: object) -> object:
    return Parse(json.dumps(statement), Message())


def test_an_entry_that_a_person_signed_is_verified_by_securesystemslib(office: Office, store: Store) -> None:
    account = office.govern(store)
    entry = from_bytes(account.entries()[-1])
    assert isinstance(entry, PolicyChange)
    assert entry.signed is not None
    their, key = theirs(entry.signed, office.file("dee"))
    assert list(their.verify([key], 1)) == [office.signers["dee"].keyid]


def test_what_securesystemslib_signs_is_verified_here(office: Office) -> None:
    envelope = office.signers["ana"].sign("x", DIGEST, TOLD)
    their, key = theirs(envelope, office.file("ana"))
    signer = CryptoSigner(module.load_pem_private_key(office.file("ana").read_bytes(), None), key)
    their.signatures.clear()
    their.sign(signer)
    assert Envelope.model_validate(their.to_dict()) == envelope


# Envelopes


@pytest.mark.parametrize(
    "forge",
    [
        lambda e, o: e.model_copy(update={"payload": base64.b64encode(b"{}").decode()}),
        lambda e, o: e.model_copy(update={"payload": o.signers["eve"].sign("x", DIGEST, TOLD).payload[:-4] + "fX0="}),
        lambda e, o: o.signers["eve"].sign("x", DIGEST, TOLD),
        lambda e, o: e.model_copy(update={"signatures": o.signers["eve"].sign("x", DIGEST, TOLD).signatures}),
    ],
)
def test_a_forged_envelope_is_refused(office: Office, forge: Callable[[Envelope, Office], Envelope]) -> None:
    ana = office.signers["ana"]
    envelope = ana.sign("x", DIGEST, TOLD)
    assert verify(envelope, ana.public, EntrySigned)[1] == TOLD
    with pytest.raises(SignatureError, match="not one of its key"):
        verify(forge(envelope, office), ana.public, EntrySigned)


def test_a_statement_of_one_kind_does_not_pass_for_another(office: Office) -> None:
    ana = office.signers["ana"]
    with pytest.raises(SignatureError, match="no statement of this kind"):
        verify(ana.sign("x", DIGEST, TOLD), ana.public, HeadSigned)


# Keys in files


def test_a_key_is_for_its_owner_alone_and_its_public_half_for_all(tmp_path: Path) -> None:
    signer = new_key(tmp_path / "ana.key", None)
    assert (tmp_path / "ana.key").stat().st_mode & 0o777 == 0o600
    assert read_public(tmp_path / "ana.pub") == signer.public == read_key(tmp_path / "ana.key", None).public
    assert signer.public not in repr(signer)
    with pytest.raises(ConfigError, match="File exists"):
        new_key(tmp_path / "ana.key", None)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    new_key(tmp_path / "ana.key", None)
    (tmp_path / "ana.key").chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_key(tmp_path / "ana.key", None)


def test_a_passphrase_protects_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signer = new_key(tmp_path / "ana.key", "open sesame")
    assert b"ENCRYPTED" in (tmp_path / "ana.key").read_bytes()
    for wrong in (None, "sesame"):
        with pytest.raises(ConfigError, match="PPSYN_KEY_PASSPHRASE"):
            read_key(tmp_path / "ana.key", wrong)
    monkeypatch.setenv("PPSYN_KEY", str(tmp_path / "ana.key"))
    monkeypatch.setenv("PPSYN_KEY_PASSPHRASE", "open sesame")
    found = own_signer()
    assert isinstance(found, Signer)
    assert found.keyid == signer.keyid


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_holds_no_key_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"Expected .*a\.key to be"):
        read_key(file, None)
    with pytest.raises(ConfigError, match="public half"):
        read_public(file)
    with pytest.raises(ConfigError, match="Cannot read"):
        read_public(tmp_path / "nothing.pub")


# Entries


def test_who_caused_an_entry_is_told_by_its_signature(office: Office, store: Store) -> None:
    account = office.govern(store)
    with office.as_person("ana"):
        account.reserve("r", HALF, DIGEST)
        account.charge("r", 0, cost(HALF))
    with office.as_person("dee"):
        account.close("r", None)
    budget = StoredAccount(store, DATASET).state.budgets["r"]
    assert (budget.by, budget.closed_by) == ("ana", "dee")


@pytest.mark.parametrize("who", [None, "bo", "dee", "eve"])
def test_who_may_not_release_reserves_nothing(office: Office, store: Store, who: str | None) -> None:
    account = office.govern(store)
    with office.as_person(who):
        told = r"somebody who may make a release \(ana, cy\)"
        refused(store, lambda: account.check_room(HALF), PolicyError, told)
        refused(store, lambda: account.reserve("r", HALF, DIGEST), PolicyError, told)


@pytest.mark.parametrize("who", [None, "ana", "bo", "eve"])
def test_who_may_not_change_the_policy_changes_neither_it_nor_keys(
    office: Office, store: Store, who: str | None
) -> None:
    account, eve = office.govern(store), office.signers["eve"]
    with office.as_person(who):
        told = r"who may change the policy or the keys \(dee\)"
        refused(store, lambda: account.set_policy(policy()), PolicyError, told)
        refused(store, lambda: account.change_key("eve", eve.public, is_trusted=True), PolicyError, told)
        refused(
            store, lambda: account.change_key("ana", office.signers["ana"].public, is_trusted=False), PolicyError, told
        )


def test_a_revoked_key_signs_nothing_and_a_new_one_of_the_same_person_does(
    office: Office, store: Store, tmp_path: Path
) -> None:
    account, old = office.govern(store), office.signers["ana"]
    with office.as_person("dee"):
        account.change_key("ana", office.signers["eve"].public, is_trusted=True)
        account.change_key("ana", old.public, is_trusted=False)
    with office.as_person("ana"):
        refused(store, lambda: account.reserve("r", HALF, DIGEST), PolicyError, "none of a key that the account trusts")
    with office.as_person("eve"):
        account.reserve("r", HALF, DIGEST)
    assert account.state.budgets["r"].by == "ana"
    with office.as_person("dee"):
        refused(store, lambda: account.change_key("ana", old.public, is_trusted=True), AccountError, "trusted before")
        refused(store, lambda: account.change_key("ana", old.public, is_trusted=False), AccountError, "no key")


def test_the_last_key_that_can_change_the_policy_is_not_revoked(office: Office, store: Store) -> None:
    account, dee = office.govern(store), office.signers["dee"]
    with office.as_person("dee"):
        refused(store, lambda: account.change_key("dee", dee.public, is_trusted=False), AccountError, "Nobody else")
        account.change_key("dee", office.signers["eve"].public, is_trusted=True)
        account.change_key("dee", dee.public, is_trusted=False)


def test_a_policy_of_people_without_a_key_is_refused(office: Office, store: Store) -> None:
    account, found = open_account(store, Fraction(10)), policy(people=RIGHTS)
    with office.as_person("dee"):
        refused(store, lambda: account.set_policy(found), PolicyError, "who may change the policy")
        account.change_key("dee", office.signers["dee"].public, is_trusted=True)
        refused(store, lambda: account.set_policy(policy(people={"dee": ("policy",)})), AccountError, "right 'release'")
        refused(store, lambda: account.set_policy(policy(people={"ana": ("release",)})), PolicyError, "nobody")
        refused(
            store,
            lambda: account.set_policy(policy(people={"ana": ("release", "policy")})),
            PolicyError,
            "got that of dee",
        )
        account.set_policy(found)


def test_a_signature_of_one_entry_is_none_of_another(office: Office, store: Store) -> None:
    account = office.govern(store)
    with office.as_person("ana"):
        account.reserve("r", HALF, DIGEST)
    state, entry = account.state, from_bytes(account.entries()[-1])
    moved = entry.model_copy(update={"number": state.count, "previous": state.head, "run": "s"})
    with pytest.raises(SignatureError, match="of something else"):
        state.check(moved)


@pytest.mark.parametrize("changes", [{"run": "s"}, {"rho": HALF / 2}, {"nonce": "0"}, {"signed": None}])
def test_a_signed_entry_that_was_rewritten_is_found(office: Office, store: Store, changes: dict[str, object]) -> None:
    account = office.govern(store)
    with office.as_person("ana"):
        account.reserve("r", HALF, DIGEST)
    key = key_of(account.state.count - 1)
    store.put(key, to_bytes(from_bytes(store.get(key)).model_copy(update=changes)))
    with pytest.raises(AccountError, match="damaged at entry 6"):
        _ = StoredAccount(store, DATASET).state


def test_an_account_without_people_needs_no_signature_and_keeps_those_it_has(office: Office, store: Store) -> None:
    account = open_account(store, Fraction(10))
    with office.as_person("eve"):
        account.reserve("r", HALF, DIGEST)
        account.change_key("eve", office.signers["eve"].public, is_trusted=True)
        account.set_policy(monthly())
    with office.as_person("bo"):
        account.reserve("s", HALF / 2, DIGEST)
    signed = [getattr(from_bytes(data), "signed", None) is not None for data in account.entries()]
    assert signed == [False, False, True, True, False]


# Heads that are kept elsewhere


def set_back(store: Store, account: StoredAccount, count: int) -> None:
    for number in range(count, account.state.count):
        remove(store, key_of(number))


def test_a_signed_head_holds_as_long_as_the_account_goes_on(office: Office, store: Store) -> None:
    account, ana = office.govern(store), office.signers["ana"]
    envelope = account.signed_head(ana)
    assert account.check_head(envelope, ana.public).number == 5
    with office.as_person("ana"):
        account.reserve("r", HALF, DIGEST)
    assert StoredAccount(store, DATASET).check_head(envelope, ana.public).number == 5
    their, key = theirs(envelope, office.file("ana"))
    assert list(their.verify([key], 1)) == [ana.keyid]


@pytest.mark.parametrize("count", [5, 6])
def test_an_account_that_was_set_back_or_rewritten_is_found_by_its_signed_head(
    office: Office, store: Store, count: int
) -> None:
    account, ana = office.govern(store), office.signers["ana"]
    with office.as_person("ana"):
        account.reserve("r", HALF, DIGEST)
    envelope = account.signed_head(ana)
    set_back(store, account, count)
    again = StoredAccount(store, DATASET)
    if count == 6:
        with office.as_person("ana"):
            again.reserve("s", HALF / 2, DIGEST)
    with pytest.raises(AccountError, match="set back or rewritten"):
        StoredAccount(store, DATASET).check_head(envelope, ana.public)


def test_a_signed_head_of_another_account_is_told(office: Office, store: Store) -> None:
    account, ana = office.govern(store), office.signers["ana"]
    other = open_account(store, dataset="other")
    with pytest.raises(AccountError, match="signed head of 'adult', got that of 'other'"):
        account.check_head(other.signed_head(ana), ana.public)
    with pytest.raises(SignatureError):
        account.check_head(account.signed_head(office.signers["eve"]), ana.public)
