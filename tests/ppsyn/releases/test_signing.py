"""Signatures of a release, and what an outsider finds with public keys alone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.published import (
    RUN,
    Published,
    begin,
    config_of,
    copied,
    finish,
    make_release,
    people,
    reseal,
    shared_release,
    stage,
)
from support.signers import Office

from ppsyn.errors import PolicyError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.signatures import Signer
from ppsyn.releases.audit import Finding, audit
from ppsyn.releases.layout import MANIFEST, SIGNATURES
from ppsyn.releases.reader import read_manifest
from ppsyn.releases.signing import sign_release
from ppsyn.releases.writer import is_published, publish
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.signature import ReleaseSigned, Trust, TrustedKey
from ppsyn.storage import Store, open_store


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return Office(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def root(release: Published, tmp_path: Path) -> Path:
    return copied(Path(release.ref.root.url), tmp_path / "store")


@pytest.fixture
def store(root: Path) -> Store:
    return open_store(Location(url=str(root / "releases" / "people" / RUN)))


def trusting(*signers: tuple[str, Signer], **changes: object) -> Trust:
    every = ("release", "approve", "policy")
    keys = [
        TrustedKey.model_validate({"name": name, "public": signer.public, "rights": every, **changes})
        for name, signer in signers
    ]
    return Trust(keys=tuple(keys))


def signed(findings: Iterator[Finding]) -> list[str | None]:
    """What is wrong with signatures; the other findings must be none."""
    found = list(findings)
    assert [finding for finding in found if finding.problem and not finding.subject.startswith(SIGNATURES)] == []
    return [finding.problem for finding in found if finding.subject.startswith(SIGNATURES)]


def test_an_outsider_verifies_a_signed_release_with_public_keys_alone(store: Store, office: Office) -> None:
    ana = office.signers["ana"]
    assert sign_release(store, ana) == sign_release(store, ana) == f"signatures/{ana.keyid}.json"
    assert signed(audit(store, None, trusting(("ana", ana)))) == [None]


def test_a_release_that_nobody_signed_passes_without_keys_and_is_found_with_them(store: Store, office: Office) -> None:
    trust = trusting(("ana", office.signers["ana"]))
    assert signed(audit(store)) == []
    assert signed(audit(store, None, trust)) == ["Nobody has signed the release. Sign it: `ppsyn sign`."]


def test_a_signature_of_a_stranger_is_found(store: Store, office: Office) -> None:
    ana, eve = office.signers["ana"], office.signers["eve"]
    sign_release(store, eve)
    (problem,) = signed(audit(store, None, trusting(("ana", ana))))
    assert problem == f"It is of key {eve.keyid[:16]}, which nobody trusts."


def test_a_signature_of_somebody_who_may_not_release_is_found(store: Store, office: Office) -> None:
    sign_release(store, office.signers["bo"])
    trust = trusting(("bo", office.signers["bo"]), rights=("approve",))
    assert signed(audit(store, None, trust)) == ["bo may not release."]


@pytest.mark.parametrize(("days", "problem"), [(1, None), (-1, "after the key of ana was revoked")])
def test_a_signature_that_was_made_after_the_key_was_revoked_is_found(
    store: Store, office: Office, days: int, problem: str | None
) -> None:
    ana = office.signers["ana"]
    sign_release(store, ana)
    revoked = datetime.now(UTC) + timedelta(days=days)
    (found,) = signed(audit(store, None, trusting(("ana", ana), revoked_at=revoked)))
    assert found is None if problem is None else problem in str(found)


def test_a_signature_of_the_release_before_it_was_changed_is_found(store: Store, root: Path, office: Office) -> None:
    sign_release(store, office.signers["ana"])
    manifest, _ = read_manifest(store)
    reseal(
        root / "releases" / "people" / RUN,
        manifest.model_copy(update={"published_at": datetime(2040, 1, 1, tzinfo=UTC)}),
    )
    found = {finding.subject: finding.problem for finding in audit(store)}
    assert "before it was changed" in str(found[f"signatures/{office.signers['ana'].keyid}.json"])


def test_a_signature_under_the_name_of_another_key_is_found(store: Store, office: Office) -> None:
    ana, eve = office.signers["ana"], office.signers["eve"]
    data = store.get(sign_release(store, eve))
    store.put(f"signatures/{ana.keyid}.json", data)
    problems = signed(audit(store, None, trusting(("ana", ana), ("eve", eve))))
    assert sorted(map(str, problems)) == ["It is not in the file that its key names.", "None"]


def test_a_statement_about_another_release_with_the_same_manifest_digest_is_found(store: Store, office: Office) -> None:
    ana, (_, digest) = office.signers["ana"], read_manifest(store)
    told = ReleaseSigned(dataset="people", run="another", signed_at=datetime.now(UTC))
    store.put(f"signatures/{ana.keyid}.json", ana.sign(MANIFEST, digest, told).to_bytes())
    assert signed(audit(store, None, trusting(("ana", ana)))) == ["It is of another release."]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"payload": "!", "signatures": []}', b"\xff"])
def test_a_file_that_is_no_envelope_is_found(store: Store, office: Office, content: bytes) -> None:
    store.put(f"signatures/{office.signers['ana'].keyid}.json", content)
    assert signed(audit(store)) == ["It is no DSSE envelope of an in-toto statement."]


def test_any_other_file_among_signatures_is_found(store: Store) -> None:
    store.put("signatures/notes.txt", b"hello")
    found = {finding.subject: finding.problem for finding in audit(store)}
    assert found["signatures/notes.txt"] == "The manifest does not know this file."


def test_the_account_tells_by_the_order_of_its_entries_that_a_key_was_revoked_before(
    tmp_path: Path, office: Office
) -> None:
    made = make_release(tmp_path / "made")
    ana, account = office.signers["ana"], made.account
    account.change_key("ana", ana.public, is_trusted=True)
    _, digest = read_manifest(made.store)
    early = ReleaseSigned(dataset="people", run=made.ref.run, signed_at=datetime(2020, 1, 1, tzinfo=UTC))
    made.store.put(f"signatures/{ana.keyid}.json", ana.sign(MANIFEST, digest, early).to_bytes())
    account.change_key("ana", ana.public, is_trusted=False)
    assert signed(audit(made.store, StoredAccount(made.root, "people"))) == [None]  # revoked after it was closed
    late = make_release(tmp_path / "late", root=made.ref.root, run="20310203-060708-3d4e5f6a")
    early = early.model_copy(update={"run": late.ref.run})
    _, digest = read_manifest(late.store)
    late.store.put(f"signatures/{ana.keyid}.json", ana.sign(MANIFEST, digest, early).to_bytes())
    (problem,) = signed(audit(late.store, StoredAccount(made.root, "people")))
    assert problem == "The key of ana was revoked before the release was published."


def test_a_release_is_signed_when_it_is_published_and_by_a_repetition_if_that_broke_off(
    tmp_path: Path, office: Office
) -> None:
    root = Location(url=str(tmp_path / "out"))
    people().to_parquet(tmp_path / "table.parquet")
    account = office.govern(open_store(root), dataset="people")
    with office.as_person("ana"):
        run = finish(begin(config_of(tmp_path / "table.parquet", root, {"account": {}})))
        stage(run)
        publish(run)
        store = open_store(root.child(f"releases/people/{RUN}"))
        file = f"signatures/{office.signers['ana'].keyid}.json"
        assert signed(audit(store, account)) == [None]
        store.delete(SIGNATURES)
        assert signed(audit(store, account)) == ["Nobody has signed the release. Sign it: `ppsyn sign`."]
        publish(Run(run.ref))
        assert store.has(file)
    budget = account.state.budgets[RUN]
    assert (budget.by, budget.closed_by) == ("ana", "ana")


def finished_by_ana(tmp_path: Path, office: Office) -> Run:
    """A run under a policy that names people; only its publication is left."""
    root = Location(url=str(tmp_path / "out"))
    people().to_parquet(tmp_path / "table.parquet")
    office.govern(open_store(root), dataset="people")
    with office.as_person("ana"):
        run = finish(begin(config_of(tmp_path / "table.parquet", root, {"account": {}})))
        stage(run)
    return run


def revoke(run: Run, office: Office, name: str) -> None:
    with office.as_person("dee"):
        run.account.change_key(name, office.signers[name].public, is_trusted=False)


@pytest.mark.parametrize("who", [None, "ana", "bo"])
def test_nothing_appears_that_its_releaser_could_not_close_and_who_may_goes_on(
    tmp_path: Path, office: Office, who: str | None
) -> None:
    run = finished_by_ana(tmp_path, office)
    if who == "ana":  # her key was good when the last answer was drawn
        revoke(run, office, "ana")
    before = run.account.entries()
    with office.as_person(who), pytest.raises(PolicyError, match="signature of somebody who may make a release"):
        publish(run)
    assert run.releases.keys("releases") == []
    assert (run.account.entries(), run.account.chain(RUN).seal) == (before, None)
    with office.as_person("cy"):
        again = Run(run.ref)
        stage(again)
        publish(again)
    budget = run.account.state.budgets[RUN]
    assert (is_published(run), budget.by, budget.closed_by) == (True, "ana", "cy")


def test_a_release_whose_close_is_refused_in_a_race_is_closed_by_a_repetition_with_a_good_key(
    tmp_path: Path, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished_by_ana(tmp_path, office)
    move = type(run.releases).move_folder

    def revoked_meanwhile(*names: str) -> None:
        revoke(run, office, "ana")
        move(run.releases, *names)

    monkeypatch.setattr(run.releases, "move_folder", revoked_meanwhile)
    with office.as_person("ana"), pytest.raises(PolicyError, match="signature of somebody who may make a release"):
        publish(run)
    store, account = open_store(run.ref.releases.child(f"releases/people/{RUN}")), run.account
    before = {name: store.get(name) for name in store.keys("")}
    assert is_published(run)
    assert run.budget.is_open
    assert run.budget.committed == run.budget.total
    assert account.state.latest is None
    with office.as_person("cy"):
        publish(Run(run.ref))
    budget = account.state.budgets[RUN]
    assert (budget.closed_by, account.state.latest) == ("cy", RUN)
    assert {name: store.get(name) for name in before} == before
    assert signed(audit(store, account)) == [None]
