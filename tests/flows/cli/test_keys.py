import json
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.privacy.account import StoredAccount
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

POLICY = {"cap": {"epsilon": 10.0, "delta": 1e-6}}
PEOPLE = {"ana": ["release"], "dee": ["policy"]}


def ppsyn(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def done(*arguments: object) -> str:
    result = ppsyn(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the keys of ana, dee and eve, and an account that dee and ana are named in; dee acts."""
    monkeypatch.chdir(tmp_path)
    Path("open.yaml").write_text(yaml.safe_dump(POLICY), encoding="utf-8")
    Path("policy.yaml").write_text(yaml.safe_dump({**POLICY, "people": PEOPLE}), encoding="utf-8")
    for name in ("ana", "dee", "eve"):
        done("keys", "new", name)
    monkeypatch.setenv("PPSYN_KEY", "dee.key")
    done("policy", "set", "people", "open.yaml")
    for name in ("dee", "ana"):
        done("keys", "trust", "people", name, f"{name}.pub")
    done("policy", "set", "people", "policy.yaml")
    return tmp_path


def account_in(folder: Path) -> StoredAccount:
    return StoredAccount(open_store(Location(url=str(folder / "out"))), "people")


def test_keys_are_listed_with_what_their_owners_may_do(office: Path) -> None:
    assert {key["name"]: key["rights"] for key in json.loads(done("keys", "list", "people", "--json"))["keys"]} == {
        "ana": ["release"],
        "dee": ["policy"],
    }
    done("keys", "revoke", "people", "ana")
    assert [
        key["name"] for key in json.loads(done("keys", "list", "people", "--json"))["keys"] if key["revoked_at"]
    ] == ["ana"]
    for word in ("ana", "nobody"):
        refused = ppsyn("keys", "revoke", "people", word)
        assert (refused.exit_code, "to name one trusted key" in refused.output) == (Exit.MISTAKE, True)


def test_who_may_not_change_the_policy_is_told_who_may(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSYN_KEY", "ana.key")
    for words in (("policy", "set", "people", "open.yaml"), ("keys", "trust", "people", "eve", "eve.pub")):
        refused = ppsyn(*words)
        assert refused.exit_code == Exit.BUDGET
        assert "who may change the policy or the keys (dee), got that of ana" in refused.output


def test_a_policy_of_people_does_not_open_an_account(office: Path) -> None:
    refused = ppsyn("policy", "set", "others", "policy.yaml")
    assert (refused.exit_code, "There is no account of 'others' yet" in refused.output) == (Exit.MISTAKE, True)
    assert not (office / "out" / "accounts" / "others").exists()


def test_a_head_that_is_kept_elsewhere_shows_that_the_account_was_set_back(office: Path) -> None:
    Path("keys.json").write_text(done("keys", "list", "people", "--json"), encoding="utf-8")
    done("head", "save", "people", "--out", "head.json")
    assert "up to entry 4" in done("head", "check", "people", "head.json", "--trust", "keys.json")
    assert "up to entry 4" in done("head", "check", "people", "head.json", "--trust", "dee.pub")
    again = ppsyn("head", "save", "people", "--out", "head.json")
    assert (again.exit_code, "File exists" in again.output) == (Exit.STORE, True)
    stranger = ppsyn("head", "check", "people", "head.json", "--trust", "eve.pub")
    assert (stranger.exit_code, "does not hold" in stranger.output) == (Exit.BUDGET, True)
    (office / "out" / "accounts" / "people" / "000004.json").unlink()
    found = ppsyn("head", "check", "people", "head.json", "--trust", "keys.json")
    assert (found.exit_code, "was set back or rewritten" in found.output) == (Exit.BUDGET, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("keys", "new", "Ana Maria"), "Expected a name of lower-case letters"),
        (("keys", "new", "ana"), "Cannot write ana.key: File exists."),
        (("keys", "new", "bo", "--out", "nowhere"), "There is no folder nowhere."),
        (("keys", "trust", "people", "ana", "open.yaml"), "to be the public half of an Ed25519 key"),
        (("keys", "trust", "people", "ana", "ana.pub"), "was trusted before"),
        (("head", "check", "people", "open.yaml", "--trust", "dee.pub"), "to be a signed head"),
        (("sign", "out", "--key", "nothing.key"), "Cannot read nothing.key"),
        (("sign", "out", "--key", "ana.key"), "There is no release"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_changes_nothing(office: Path, words: tuple[str, ...], told: str) -> None:
    refused = ppsyn(*words)
    assert refused.exit_code in (Exit.MISTAKE, Exit.BUDGET)
    assert told in refused.output
    assert account_in(office).state.count == 5
    assert account_in(office).state.committed == Fraction(0)
