import io
import re
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path

import pytest
from support.published import ABANDONED, OPEN, RUN, Published, copied, shared_release

from ppsyn.errors import AccountError, ConfigError
from ppsyn.flows.cli.accounts import Statement, read_statement, set_cap
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import epsilon_from, rho_from
from ppsyn.privacy.ledger import Spend
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Store:
    """A copy of the store, to be changed."""
    return open_store(Location(url=str(copied(Path(release.ref.root.url), tmp_path / "store"))))


def printed(found: Statement, monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    with redirect_stdout(io.StringIO()) as text:
        found.print()
    return text.getvalue()


def amount(document: object) -> Fraction:
    assert isinstance(document, dict)
    return Fraction(document["rho"])


def test_the_statement_tells_all_releases_and_how_they_stand(release: Published) -> None:
    found = read_statement(release.root, "people").as_json()
    assert isinstance(found["releases"], list)
    assert {budget["run"]: budget["state"] for budget in found["releases"]} == {
        ABANDONED: "abandoned",
        RUN: "published",
        OPEN: "open",
    }


def test_cap_spent_reserved_and_left_add_up_exactly(release: Published) -> None:
    found, account = read_statement(release.root, "people").as_json(), release.account
    cap, spent, reserved, left = (amount(found[name]) for name in ("cap", "spent", "reserved", "left"))
    ledgers = [account.chain(run).ledger for run in (ABANDONED, RUN, OPEN)]
    assert (cap, left) == (account.state.cap, account.state.left)
    assert spent == sum((ledger.spent for ledger in ledgers), Fraction(0))
    assert cap == spent + reserved + left
    assert reserved == ledgers[-1].left
    assert isinstance(found["releases"], list)
    assert [amount(budget["reserved"]) for budget in found["releases"]] == [0, 0, reserved]
    assert [budget["charges"] for budget in found["releases"]] == [len(ledger.spends) for ledger in ledgers]
    assert sum((amount(budget["spent"]) for budget in found["releases"]), Fraction(0)) == spent


def test_epsilon_is_told_at_the_delta_of_the_account(release: Published) -> None:
    found = read_statement(release.root, "people").as_json()
    assert found["delta"] == 1e-6
    for name in ("cap", "spent", "left"):
        document = found[name]
        assert isinstance(document, dict)
        assert document["epsilon"] == epsilon_from(Fraction(document["rho"]), 1e-6)


def test_the_printed_statement_says_what_the_json_says(release: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_statement(release.root, "people")
    text, document = printed(found, monkeypatch), found.as_json()
    for name in ("cap", "spent", "reserved", "left"):
        told = document[name]
        assert isinstance(told, dict)
        assert re.search(rf"^{name} +{told['rho_value']:.6g} +{told['epsilon']:.4g}$", text, re.MULTILINE), text
    assert isinstance(document["releases"], list)
    for budget in document["releases"]:
        spent = budget["spent"]
        numbers = rf"{budget['charges']} +{spent['rho_value']:.6g} +{spent['epsilon']:.4g}"
        assert re.search(rf"^{budget['run']} +{budget['state']} +{numbers}$", text, re.MULTILINE), text


@pytest.mark.parametrize("columns", [80, 60])
def test_no_run_name_is_cut_in_a_narrow_terminal(
    release: Published, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    text = printed(read_statement(release.root, "people"), monkeypatch, columns)
    assert all(run in text for run in (RUN, OPEN, ABANDONED))
    assert max(map(len, text.splitlines())) <= columns


def test_numbers_of_every_size_fit_into_eighty_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = StoredAccount(open_store(Location(url=str(tmp_path))), "people")
    account.open(Fraction(10**9), 1e-300, "a row")
    for number, rho in enumerate([Fraction(1, 3 * 10**200), Fraction(123456789, 7), Fraction(1, 7)]):
        run = f"20310203-0405{number:02d}-0a1b2c3d"
        account.reserve(run, rho, "0" * 64)
        account.charge(run, 0, Spend("measure", rho, "0" * 64, ("a",)))
    text = printed(read_statement(open_store(Location(url=str(tmp_path))), "people"), monkeypatch)
    assert all(f"20310203-0405{number:02d}-0a1b2c3d" in text for number in range(3))
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("column", ["who", "[bold]who", "who[/bold]", "[who]", "[red]", ":smile:"])
def test_the_unit_is_printed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    store, unit = open_store(Location(url=str(tmp_path))), f"the person in {column!r}"
    StoredAccount(store, "people").open(Fraction(1), 1e-6, unit)
    assert unit in printed(read_statement(store, "people"), monkeypatch)


def test_an_account_without_delta_tells_rho_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(Location(url=str(tmp_path)))
    StoredAccount(store, "people").open(Fraction(1, 2), None, "a row")
    found = read_statement(store, "people")
    assert found.as_json()["cap"] == {"rho": "1/2", "rho_value": 0.5, "epsilon": None}
    assert re.search(r"^cap +0\.5 *$", printed(found, monkeypatch), re.MULTILINE)


def test_an_unknown_dataset_is_told_with_those_that_there_are(release: Published, tmp_path: Path) -> None:
    with pytest.raises(AccountError, match=r"no account of 'poeple' .* Accounts there: people\."):
        read_statement(release.root, "poeple")
    with pytest.raises(AccountError, match="Accounts there: none"):
        read_statement(open_store(Location(url=str(tmp_path))), "people")


@pytest.mark.parametrize("dataset", ["", "..", "../people", "a/b", "/", "people/", "a b", "ü", "PEOPLE"])
def test_an_odd_name_of_a_dataset_is_told_in_words(release: Published, dataset: str) -> None:
    with pytest.raises((AccountError, ConfigError)):
        read_statement(release.root, dataset)


# What an owner may change


def test_a_cap_is_set_at_the_delta_of_the_account(store: Store) -> None:
    set_cap(store, "people", 12.0)
    assert read_statement(store, "people").state.cap == rho_from(12.0, 1e-6)


def test_a_cap_below_what_is_committed_is_refused(store: Store) -> None:
    before = read_statement(store, "people").state.cap
    with pytest.raises(AccountError, match="at least"):
        set_cap(store, "people", 1.0)
    assert read_statement(store, "people").state.cap == before


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_a_cap_that_is_none_is_refused(store: Store, epsilon: float) -> None:
    with pytest.raises(ConfigError):
        set_cap(store, "people", epsilon)


def test_a_cap_of_an_account_without_delta_cannot_be_an_epsilon(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    StoredAccount(store, "people").open(Fraction(1), None, "a row")
    with pytest.raises(AccountError, match="has no delta"):
        set_cap(store, "people", 1.0)
