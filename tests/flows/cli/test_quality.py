"""Figures about a release, bought with the real command: what is published, what it costs, what is refused."""

import json
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner, Result
from privacy.instruments import watch_draws
from support.killing import Stage, run_of, starter_for
from support.published import OPEN, RUN, SCHEMA, TINY, Published, copied, make_release, people, shared_release
from support.small_release import DATASET

from ppsyn.data.encoding import encode
from ppsyn.evaluation import workload_error
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.flows.cli.quality import measure
from ppsyn.flows.cli.releases import original_of
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.requests import GRID, noise_scale
from ppsyn.quality.audit import check_quality
from ppsyn.quality.run import publish
from ppsyn.releases.audit import audit
from ppsyn.releases.budget_checks import Fault
from ppsyn.releases.layout import MANIFEST, MODEL, REPORT, SYNTHETIC, release_folder
from ppsyn.releases.reader import read_manifest
from ppsyn.schemas.locations import Location
from ppsyn.schemas.quality import Quality
from ppsyn.storage import open_store


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Path:
    """A copy of the store, to be changed."""
    return copied(Path(release.ref.root.url), tmp_path / "store")


def folder_of(store: Path) -> Path:
    return store / release_folder("people", RUN)


def ppsyn(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def buy(store: Path, *options: object, rho: float = 0.05) -> Result:
    return ppsyn("quality", folder_of(store), "--store", store, "--rho", rho, *options)


def bought(store: Path, *options: object, rho: float = 0.05) -> Quality:
    result = buy(store, *options, rho=rho)
    assert result.exit_code == 0, result.output
    (file,) = (folder_of(store) / "quality").glob("*.json")
    return Quality.model_validate_json(file.read_bytes())


def account_of(store: Path) -> StoredAccount:
    return StoredAccount(open_store(Location(url=str(store))), "people")


def budgets_of(store: Path) -> list[RunBudget]:
    return [budget for budget in account_of(store).budgets() if budget.quality_of is not None]


def problems(folder: Path, account: StoredAccount | None = None) -> dict[str, str]:
    findings = audit(open_store(Location(url=str(folder))), account)
    return {finding.subject: finding.problem for finding in findings if finding.problem is not None}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(store: Path, result: Result, code: Exit, *told: str) -> None:
    """A plain sentence, and nothing held or spent."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for text in told:
        assert text in result.stderr
    assert not any(budget.committed for budget in budgets_of(store))
    assert not (folder_of(store) / "quality").exists()
    assert not list((store / "runs").glob("*-q*/private"))


# What is published


def test_figures_are_published_beside_the_release_and_pass_its_audit(store: Path) -> None:
    before = contents(folder_of(store))
    result = buy(store, "--marginal", "sex,age")
    assert result.exit_code == 0, result.output
    after = contents(folder_of(store))
    (budget,) = budgets_of(store)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {f"quality/{budget.run}.json", f"quality/{budget.run}.html"}
    assert problems(folder_of(store), account_of(store)) == {}
    for told in ("workload, mean", "workload, worst", "single attributes, mean", "sex \N{MULTIPLICATION SIGN} age"):
        assert told in result.stdout
    assert not list((store / "runs").glob("*/private/fragments"))[1:]  # the open run of the shared account has its own


def test_the_budget_shows_what_it_cost_as_a_part_of_its_own(store: Path) -> None:
    left = account_of(store).state.left
    bought(store, rho=0.05)
    told = ppsyn("budget", "people", "--store", store, "--json")
    (budget,) = [budget for budget in json.loads(told.stdout)["releases"] if budget["quality_of"]]
    assert (budget["quality_of"], budget["state"], budget["charges"], budget["spent"]["rho_value"]) == (
        RUN,
        "published",
        2,
        0.05,
    )
    assert account_of(store).state.left == left - Fraction(0.05)
    assert account_of(store).state.latest == RUN
    told = ppsyn("budget", "people", "--store", store).stdout
    assert f"{budget['run']}  quality  " in told
    assert max(map(len, told.splitlines())) <= 80


def test_with_much_to_spend_the_figures_are_the_truth(store: Path) -> None:
    ppsyn("budget", "people", "--store", store, "--set-cap", 5000)
    quality = bought(store, "--marginal", "age", rho=1000.0)
    real = encode(people(), SCHEMA)
    synthetic = encode(pd.read_parquet(folder_of(store) / SYNTHETIC), SCHEMA)
    by_name = {one.name: one.marginals for one in quality.request.sets}
    assert abs(quality.rows.noisy - len(people())) <= 1
    for figure in quality.figures:
        errors = [workload_error(real, synthetic, [clique]) for clique in by_name[figure.about]]
        truth = max(errors) if figure.statistic == "worst" else np.mean(errors)
        assert figure.distance == pytest.approx(truth, abs=0.005)  # 30 standard deviations
        assert 0 < figure.upper - figure.lower < 0.01


def test_sets_that_are_the_same_are_bought_once(store: Path) -> None:
    # The workload of this release is all pairs.
    assert [one.name for one in bought(store).request.sets] == ["workload", "single attributes"]


def test_epsilon_is_taken_at_the_delta_of_the_account(store: Path) -> None:
    result = ppsyn("quality", folder_of(store), "--store", store, "--epsilon", 0.5, "--json")
    told = json.loads(result.stdout)["guarantee"]
    assert told["epsilon"] == pytest.approx(0.5, rel=1e-6)
    assert told["delta"] == 1e-6


def test_a_release_file_says_where_the_table_is_now(release: Published, store: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.parquet"
    shutil.copy(release.config.source.path.url, moved)
    file = write_file(tmp_path, store, source={"kind": "parquet", "path": str(moved)})
    result = ppsyn("quality", folder_of(store), file, "--rho", 0.05)
    assert result.exit_code == 0, result.output
    assert problems(folder_of(store), account_of(store)) == {}


def write_file(folder: Path, store: Path, **changes: object) -> Path:
    (folder / "people.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    document = {"dataset": "people", "schema": "people.yaml", "stores": {"root": str(store)}, **TINY, **changes}
    (folder / "release.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder / "release.yaml"


def test_a_person_counts_by_as_many_rows_as_in_the_release(tmp_path: Path) -> None:
    frame = people().assign(who=np.repeat(np.arange(40), 5))
    schema = SCHEMA.model_copy(update={"excluded": ("who",)})
    changes = {
        "privacy": {"rho": 0.2, "person": {"column": "who", "max_rows": 2}},
        "account": {"cap": {"rho": 5000.0}},
    }
    make_release(tmp_path, frame, schema, changes=changes)
    quality = bought(tmp_path / "store", rho=2000.0)
    first, second = (Fraction(json.loads(entry)["rho"]) for entry in quality.entries if '"charge"' in entry)
    figures = len(quality.figures)
    assert abs(quality.rows.noisy - 80) <= 1
    assert quality.rows.sigma == noise_scale(first, 2)
    assert quality.sigma == pytest.approx(2 * GRID * figures**0.5 / (2 * float(second)) ** 0.5, rel=1e-3)
    assert problems(tmp_path / "store" / release_folder("people", RUN), account_of(tmp_path / "store")) == {}


def test_a_release_paid_in_rho_alone_has_figures_without_epsilon(tmp_path: Path) -> None:
    made = make_release(tmp_path, changes={"privacy": {"rho": 0.2}, "account": {"cap": {"rho": 1.0}}})
    quality = bought(tmp_path / "store")
    assert (quality.guarantee.epsilon, quality.guarantee.delta) == (None, None)
    assert problems(made.folder, made.account) == {}


def test_two_at_once_are_both_paid_for(store: Path) -> None:
    folder = open_store(Location(url=str(folder_of(store))))
    original = original_of(read_manifest(folder)[0], None, open_store(Location(url=str(store))), None)

    def one(_: int) -> None:
        publish(folder, measure(folder, original, 0.05, None, []).quality)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(2)))
    assert [budget.charges for budget in budgets_of(store)] == [2, 2]
    assert len({budget.run for budget in budgets_of(store)}) == 2
    assert problems(folder_of(store), account_of(store)) == {}


def test_equal_answers_about_different_tables_are_published_alike(
    store: Path, release: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_draws(monkeypatch)
    other = copied(store, tmp_path / "other")
    file = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pandas(people(rows=77, seed=5), preserve_index=False), file)
    assert buy(store).exit_code == 0
    named = write_file(tmp_path, other, source={"kind": "parquet", "path": str(file)})
    assert ppsyn("quality", folder_of(other), named, "--rho", 0.05).exit_code == 0
    told = [
        Quality.model_validate_json(next((folder_of(s) / "quality").glob("*.json")).read_bytes())
        for s in (store, other)
    ]
    first, second = (one.model_dump(include={"guarantee", "rows", "sigma", "figures"}) for one in told)
    assert first == second


CANARY = "cherry-4f19c0"


def test_nothing_that_only_the_table_holds_gets_out(tmp_path: Path) -> None:
    frame = people()
    frame["sex"] = frame["sex"].where(frame.index % 3 > 0, CANARY)
    frame["age"] = frame["age"].where(frame.index % 5 > 0, 7_365_019)
    make_release(tmp_path, frame)
    result = buy(tmp_path / "store")
    assert result.exit_code == 0, result.output
    for data in (*contents(tmp_path / "store").values(), result.stdout.encode(), result.stderr.encode()):
        assert CANARY.encode() not in data
        assert b"7365019" not in data


# What is refused


def test_what_the_account_does_not_have_is_refused_before_the_table_is_looked_for(
    store: Path, release: Published, tmp_path: Path
) -> None:
    file = write_file(tmp_path, store, source={"kind": "parquet", "path": "nowhere.parquet"})
    before = contents(store)
    result = ppsyn("quality", folder_of(store), file, "--rho", 100.0)
    refused(store, result, Exit.BUDGET, "requested rho 100")
    assert contents(store) == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--rho or --epsilon"),
        (("--rho", 0.1, "--epsilon", 1), "Give one of them"),
        (("--rho", -1), "positive"),
        (("--rho", "nan"), "positive"),
        (("--rho", "inf"), "positive"),
        (("--epsilon", 0), "epsilon"),
        (("--rho", 0.1, "--marginal", "age,shoe"), "'shoe'"),
        (("--rho", 0.1, "--marginal", "age,age"), "distinct"),
        (("--rho", 0.1, "--marginal", ""), "attributes"),
    ],
)
def test_a_question_that_is_none_is_refused(store: Path, options: tuple[object, ...], told: str) -> None:
    before = contents(store)
    refused(store, ppsyn("quality", folder_of(store), "--store", store, *options), Exit.MISTAKE, told)
    assert contents(store) == before


def test_a_folder_without_a_release_is_refused(store: Path, tmp_path: Path) -> None:
    refused(store, ppsyn("quality", tmp_path, "--store", store, "--rho", 0.1), Exit.MISTAKE, "no release")


@pytest.mark.parametrize(
    ("name", "code"),
    [(MANIFEST, Exit.MISTAKE), (SYNTHETIC, Exit.AUDIT), (MODEL, Exit.AUDIT), (REPORT, Exit.AUDIT)],
)
def test_a_release_that_was_changed_is_refused(store: Path, name: str, code: Exit) -> None:
    path = folder_of(store) / name
    path.write_bytes(path.read_bytes() + b"\n")
    refused(store, buy(store), code, name)


def test_a_release_of_another_account_is_refused(store: Path, tmp_path: Path) -> None:
    make_release(tmp_path / "other")
    result = ppsyn("quality", folder_of(store), "--store", tmp_path / "other" / "store", "--rho", 0.1)
    refused(store, result, Exit.MISTAKE, "is not the one that made this release")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dataset": "others"}, "'dataset'"),
        ({"privacy": {"epsilon": 2.0, "delta": 1e-6, "person": {"column": "who", "max_rows": 2}}}, "'privacy.person'"),
    ],
)
def test_a_release_file_of_another_release_is_refused(
    release: Published, store: Path, tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    source = {"kind": "parquet", "path": release.config.source.path.url}
    file = write_file(tmp_path, store, source=source, **changes)
    refused(store, ppsyn("quality", folder_of(store), file, "--rho", 0.1), Exit.MISTAKE, told)


def test_a_table_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    make_release(tmp_path)
    (tmp_path / "table.parquet").unlink()
    refused(tmp_path / "store", buy(tmp_path / "store"), Exit.MISTAKE, "table.parquet")


def test_a_table_with_a_value_that_is_refused_gives_back_what_was_held(tmp_path: Path) -> None:
    columns = [column.model_dump(exclude_unset=True) for column in SCHEMA.columns]
    columns[1]["outside"] = "refuse"
    schema = SCHEMA.model_validate({"name": "people", "columns": columns})
    make_release(tmp_path, schema=schema)
    frame = people().assign(age=999)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "table.parquet")
    result = buy(tmp_path / "store")
    refused(tmp_path / "store", result, Exit.MISTAKE, "'age'")
    assert "999" not in result.stderr
    (budget,) = budgets_of(tmp_path / "store")
    assert (budget.is_open, budget.charges) == (False, 0)


# What a forger changes


def changed(path: str, change: Callable[[object], object]) -> Callable[[dict[str, object]], None]:
    def forge(document: dict[str, object]) -> None:
        inner, (*above, last) = document, path.split(".")
        for step in above:
            inner = inner[int(step) if isinstance(inner, list) else step]
        key = int(last) if isinstance(inner, list) else last
        inner[key] = change(inner[key])

    return forge


FORGERIES = {
    "a better figure": changed("figures.0.distance", lambda value: value / 2),
    "a better answer": changed("figures.0.noisy", lambda value: value - 1),
    "a narrower bar": changed("figures.0.lower", lambda value: value + 1e-9),
    "another figure": changed("figures.0.statistic", lambda _: "worst"),
    "fewer figures": changed("figures", lambda value: value[:-1]),
    "more rows": changed("rows.noisy", lambda value: value + 1),
    "less noise": changed("sigma", lambda value: value / 2),
    "less noise of rows": changed("rows.sigma", lambda value: value / 2),
    "a cheaper one": changed("guarantee.epsilon", lambda value: value / 2),
    "another cost": changed("guarantee.rho", lambda _: "1/100"),
    "a larger cost": changed("request.rho", lambda _: "1/10"),
    "another person": changed("request.person", lambda _: {"column": "who", "max_rows": 2}),
    "another release": changed("request.release", lambda _: OPEN),
    "another manifest": changed("request.manifest", lambda _: "0" * 64),
    "fewer marginals": changed("request.sets.0.marginals", lambda value: value[:-1]),
    "an entry less": changed("entries", lambda value: value[:-1]),
    "a changed entry": changed("entries.1", lambda value: value.replace('"step":0', '"step":1')),
    "a cap below what it cost": changed("account.cap", lambda _: "1/1000"),
    "fewer charges told": changed("account.charges", lambda value: value - 1),
    "another grant": changed("entries.0", lambda value: value.replace('"rho":"', '"rho":"1')),
    "another name": changed("request.run", lambda value: value[:-1] + "z"),
    "a field more": lambda document: document.update(note="trust me"),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with figures, not to be changed."""
    release = shared_release(tmp_path_factory)
    store = copied(Path(release.ref.root.url), tmp_path_factory.mktemp("measured") / "store")
    bought(store)
    return store


def faults(folder: Path, file: Path) -> list[Exception]:
    """What the part of an audit that is about figures finds."""
    store = open_store(Location(url=str(folder)))
    manifest, digest = read_manifest(store)
    try:
        check_quality(store, manifest, digest, f"quality/{file.name}", None)
    except (Fault, ValueError) as fault:
        return [fault]
    return []


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_figure_is_found_and_its_file_named(measured: Path, tmp_path: Path, name: str) -> None:
    folder = copied(folder_of(measured), tmp_path / "copy")
    (file,) = (folder / "quality").glob("*.json")
    document = json.loads(file.read_bytes())
    assert faults(folder, file) == []
    FORGERIES[name](document)
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    assert faults(folder, file) != []


@pytest.mark.parametrize("extra", ["quality/notes.txt", "quality/deep/a.json", "quality/private-report.html"])
def test_a_file_among_the_figures_that_is_none_is_found(measured: Path, tmp_path: Path, extra: str) -> None:
    folder = copied(folder_of(measured), tmp_path / "copy")
    (folder / extra).parent.mkdir(exist_ok=True)
    (folder / extra).write_text("x", encoding="utf-8")
    assert extra in problems(folder)


def test_a_changed_page_is_found(measured: Path, tmp_path: Path) -> None:
    folder = copied(folder_of(measured), tmp_path / "copy")
    (page,) = (folder / "quality").glob("*.html")
    page.write_bytes(page.read_bytes().replace(b"people", b"People", 1))
    assert list(problems(folder)) == [f"quality/{page.name}"]


def test_figures_that_the_account_does_not_know_are_found(measured: Path, store: Path) -> None:
    shutil.copytree(folder_of(measured) / "quality", folder_of(store) / "quality")
    (file,) = (folder_of(store) / "quality").glob("*.json")
    assert problems(folder_of(store)) == {}
    assert list(problems(folder_of(store), account_of(store))) == [f"quality/{file.name}"]


# Killed


@pytest.fixture
def stage(prefect_api: str, tmp_path: Path) -> Stage:
    return Stage(starter_for(prefect_api), tmp_path, Location(url=str(tmp_path / "out")))


@pytest.mark.parametrize(("nth", "spends"), [(2, 2), pytest.param(1, 1, marks=pytest.mark.slow)])
def test_killed_between_charge_and_answer_it_stays_charged_and_is_paid_for_anew(
    stage: Stage, nth: int, spends: int
) -> None:
    run = run_of(stage.start("release", str(stage.write(privacy={"epsilon": 1.0}))).wait())
    folder = Path(stage.root.url) / release_folder(DATASET, run)
    command = ("quality", str(folder), "--store", stage.root.url, "--rho", "0.01")
    died = stage.start(*command, point="measure", nth=nth).wait()
    account = StoredAccount(open_store(stage.root), DATASET)
    (dead,) = [budget for budget in account.budgets() if budget.quality_of == run]
    assert (died.code, dead.is_open, dead.charges) == (-signal.SIGKILL, True, spends)
    assert not (folder / "quality").exists()
    again = stage.start(*command).wait()
    assert again.code == 0, again.stderr
    assert f"Run {dead.run} was charged rho {float(dead.spent):.6g}" in again.stderr
    budgets = [budget for budget in account.budgets() if budget.quality_of == run]
    assert [budget.is_open for budget in budgets] == [True, False]
    assert budgets[1].spent == Fraction(0.01)
    assert stage.start("abandon", dead.run, "--yes", "--store", stage.root.url).wait().code == 0
    assert account.state.committed == account.state.spent
    assert not list(Path(stage.root.url).glob("runs/*/private"))
    assert stage.findings(run) == ()
