import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_from
from ppsyn.privacy.policy import period_name
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

POLICY: dict[str, object] = {
    "cap": {"epsilon": 10.0, "delta": 1e-6},
    "allowance": {"budget": {"epsilon": 2.0, "delta": 1e-6}, "period": "quarter", "unused": "carries over"},
    "purposes": {"press": {"allowance": {"epsilon": 1.0, "delta": 1e-6}}, "research": {"cap": {"rho": 0.05}}},
    "largest": {"epsilon": 3.0, "delta": 1e-6},
}


def ppsyn(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_policy(folder: Path, **changes: object) -> Path:
    file = folder / "policy.yaml"
    document = {name: value for name, value in {**POLICY, **changes}.items() if value is not None}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def account_in(folder: Path) -> StoredAccount:
    return StoredAccount(open_store(Location(url=str(folder))), "people")


def test_a_policy_opens_an_account_and_is_shown(tmp_path: Path) -> None:
    file, out = write_policy(tmp_path), tmp_path / "out"
    done = ppsyn("policy", "set", "people", file, "--store", out, "--person", "who")
    assert done.exit_code == 0, done.output
    assert "protecting the person in 'who'" in done.output
    state = account_in(out).state
    assert (state.cap, state.opening.delta, state.count) == (rho_from(10.0, 1e-6), 1e-6, 2)
    shown = ppsyn("policy", "show", "people", "--store", out)
    now = period_name(f"{datetime.now(UTC):%Y-%m}", "quarter")
    assert shown.output == done.output
    for told in ("the cap ", f"the allowance for {now}", f"of purpose 'press' for {now}", "cap of purpose 'research'"):
        assert told in shown.output
    assert "largest release: 3" in shown.output


def test_the_policy_as_json_adds_up_exactly(tmp_path: Path) -> None:
    ppsyn("policy", "set", "people", write_policy(tmp_path), "--store", tmp_path / "out")
    account_in(tmp_path / "out").reserve("r", Fraction(1, 100), "0" * 64, purpose="research")
    shown = json.loads(ppsyn("policy", "show", "people", "--store", tmp_path / "out", "--json").output)
    assert shown["policy"]["allowance"]["budget"] == str(rho_from(2.0, 1e-6))
    used = {limit["name"].split(" for ")[0]: Fraction(limit["used"]["rho"]) for limit in shown["limits"]}
    assert used == {
        "the cap": Fraction(1, 100),
        "the cap of purpose 'research'": Fraction(1, 100),
        "the allowance": Fraction(1, 100),
        "the allowance of purpose 'press'": 0,
    }
    for limit in shown["limits"]:
        total, spent, left = (Fraction(limit[name]["rho"]) for name in ("total", "used", "left"))
        assert total == spent + left


def test_an_account_without_a_policy_says_so(tmp_path: Path) -> None:
    account_in(tmp_path).open(Fraction(1), None, "a row")
    assert "has no policy" in ppsyn("policy", "show", "people", "--store", tmp_path).output
    shown = json.loads(ppsyn("policy", "show", "people", "--store", tmp_path, "--json").output)
    assert (shown["policy"], [limit["name"] for limit in shown["limits"]]) == (None, ["the cap"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cap": None}, "field 'cap': Expected this field to be given."),
        ({"cap": {"epsilon": 1.0}}, "epsilon and delta, or rho"),
        ({"caps": 1}, "field 'caps': Expected no field of this name."),
        ({"allowance": {"budget": {"rho": 0.1}, "period": "week"}}, "field 'allowance.period'"),
        ({"allowance": {"budget": {"rho": 0.1}, "period": "month", "unused": "burns"}}, "field 'allowance.unused'"),
        ({"purposes": {"The Press": {}}}, "purposes"),
        ({"smallest": {"epsilon": 4.0, "delta": 1e-6}}, "Expected smallest to be at most largest"),
        ({"largest": {"epsilon": 11.0, "delta": 1e-6}}, "Expected largest to be at most the cap"),
        ({"allowance": None}, "Expected an allowance, of which purposes.press.allowance is a part."),
    ],
)
def test_a_policy_that_will_not_do_is_refused_in_a_sentence_and_opens_nothing(
    tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    file = write_policy(tmp_path, **changes)
    for words in (("check", file), ("set", "people", file, "--store", tmp_path / "out")):
        done = ppsyn("policy", *words)
        assert done.exit_code == Exit.MISTAKE
        assert told in done.output
        assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()


def test_a_policy_that_will_do_is_told_so(tmp_path: Path) -> None:
    done = ppsyn("policy", "check", write_policy(tmp_path))
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'policy.yaml'}: no contradiction\n")


def test_a_cap_below_what_is_spent_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    account = account_in(tmp_path / "out")
    account.open(Fraction(4), 1e-6, "a row")
    account.reserve("r", Fraction(3), "0" * 64)
    done = ppsyn("policy", "set", "people", write_policy(tmp_path), "--store", tmp_path / "out")
    assert (done.exit_code, account.state.count) == (Exit.BUDGET, 2)
    assert "Expected a cap of at least rho 3" in done.output


def test_a_policy_for_persons_is_refused_where_rows_are_protected(tmp_path: Path) -> None:
    account_in(tmp_path / "out").open(Fraction(4), 1e-6, "a row")
    done = ppsyn("policy", "set", "people", write_policy(tmp_path), "--store", tmp_path / "out", "--person", "who")
    assert (done.exit_code, account_in(tmp_path / "out").state.count) == (Exit.BUDGET, 1)
    assert "protects a row" in done.output


def test_the_cap_of_a_governed_account_is_not_changed_by_another_command(tmp_path: Path) -> None:
    ppsyn("policy", "set", "people", write_policy(tmp_path), "--store", tmp_path / "out")
    done = ppsyn("budget", "people", "--set-cap", 12, "--store", tmp_path / "out")
    assert done.exit_code == Exit.BUDGET
    assert "ppsyn policy set" in done.output
