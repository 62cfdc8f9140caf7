import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.published import DATASET, SCHEMA, Published, begin, config_of, finish, make_release, people, stage

from ppsyn.errors import ConfigError, RunError
from ppsyn.privacy.budget import epsilon_from
from ppsyn.releases.audit import Finding, audit
from ppsyn.releases.layout import MANIFEST, MODEL, PAST
from ppsyn.releases.reader import read_manifest
from ppsyn.releases.retirement import Erasure, retire
from ppsyn.releases.writer import publish
from ppsyn.runs.cleanup import give_up
from ppsyn.runs.earlier import learn
from ppsyn.runs.record import past_key, ref_of
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.release import LearnFrom, ReleaseConfig
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

pytestmark = pytest.mark.slow

ROOM: dict[str, object] = {"account": {"cap": {"epsilon": 20.0, "delta": 1e-6}}, "learn_from": "all"}
MONTHS = ("month-1", "month-2", "month-3")


def release(folder: Path, run: str, schema: TableSchema = SCHEMA, **changes: object) -> Published:
    """A release of a month; all share the store, and with it the account."""
    frame = people(seed=MONTHS.index(run) if run in MONTHS else 9)
    root = Location(url=str(folder / "store"))
    return make_release(folder, frame, schema, root=root, run=run, changes={**ROOM, **changes})


@pytest.fixture(scope="session")
def series_of_three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    for run in MONTHS:
        release(folder, run)
    return folder


@pytest.fixture
def series(series_of_three: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    shutil.copytree(series_of_three / "store", tmp_path / "store")
    shutil.copy(series_of_three / "table.parquet", tmp_path)
    return tmp_path


def folder_of(series: Path, run: str) -> Path:
    return series / "store" / "releases" / DATASET / run


def manifest_of(series: Path, run: str) -> Manifest:
    return read_manifest(open_store(Location(url=str(folder_of(series, run)))))[0]


def config(series: Path, **changes: object) -> ReleaseConfig:
    return config_of(series / "table.parquet", Location(url=str(series / "store")), {**ROOM, **changes})


def findings(folder: Path) -> dict[str, Finding]:
    return {found.subject: found for found in audit(open_store(Location(url=str(folder))))}


def problems(folder: Path) -> Mapping[str, str]:
    return {name: found.problem for name, found in findings(folder).items() if found.problem is not None}


def test_the_first_release_learns_from_none_and_each_later_one_from_all_before(series: Path) -> None:
    learned = [[earlier.run for earlier in manifest_of(series, run).learned_from] for run in MONTHS]
    assert learned == [[], ["month-1"], ["month-1", "month-2"]]
    assert [(folder_of(series, run) / PAST).is_file() for run in MONTHS] == [False, True, True]


def test_a_release_says_what_it_costs_together_with_all_that_it_rests_on(series: Path) -> None:
    manifests = [manifest_of(series, run) for run in MONTHS]
    rho = sum(manifest.guarantee.rho for manifest in manifests)
    assert manifests[0].together == manifests[0].guarantee
    assert manifests[2].together.rho == rho
    assert manifests[2].together.epsilon == epsilon_from(rho, 1e-6)


def test_what_a_release_rests_on_holds_what_the_ones_it_learned_from_rest_on(series: Path) -> None:
    made = release(series, "month-4", learn_from={"last": 1})
    manifest = manifest_of(series, made.ref.run)
    assert [earlier.run for earlier in manifest.learned_from] == ["month-3"]
    assert sorted(earlier.run for earlier in manifest.rests_on) == [*MONTHS]


def test_an_audit_with_the_earlier_releases_beside_it_finds_nothing(series: Path) -> None:
    found = findings(folder_of(series, "month-3"))
    assert [name for name, one in found.items() if one.problem or one.unchecked] == []
    assert {"learned from month-1", "learned from month-2", PAST, "replay"} <= set(found)


def test_an_audit_without_them_says_what_it_could_not_check(series: Path) -> None:
    shutil.copytree(folder_of(series, "month-3"), series / "alone")
    found = findings(series / "alone")
    assert not any(one.problem for one in found.values())
    assert {name for name, one in found.items() if one.unchecked} == {"learned from month-1", "learned from month-2"}


@pytest.mark.parametrize("file", [MANIFEST, MODEL])
def test_an_audit_finds_an_earlier_release_that_was_changed(series: Path, file: str) -> None:
    path = folder_of(series, "month-1") / file
    path.write_bytes(path.read_bytes() + b" ")
    assert "learned from month-1" in problems(folder_of(series, "month-3"))


def test_an_audit_finds_a_past_that_was_changed(series: Path) -> None:
    path = folder_of(series, "month-3") / PAST
    path.write_bytes((folder_of(series, "month-2") / PAST).read_bytes())
    assert PAST in problems(folder_of(series, "month-3"))


def test_none_learns_from_none(series: Path) -> None:
    made = release(series, "month-4", learn_from="none")
    assert (manifest_of(series, made.ref.run).rests_on, (made.folder / PAST).exists()) == ((), False)


@pytest.mark.parametrize(
    ("told", "runs"),
    [("all", MONTHS), ("none", ()), ({"last": 2}, MONTHS[1:]), (["month-3", "month-1"], ("month-1", "month-3"))],
)
def test_a_release_file_says_from_which(series: Path, told: object, runs: tuple[str, ...]) -> None:
    found = learn(config(series, learn_from=told), SCHEMA)
    assert tuple(earlier.run for earlier in found.releases) == runs


def test_a_run_that_the_account_did_not_pay_for_is_refused(series: Path) -> None:
    with pytest.raises(ConfigError, match="month-7 is none"):
        learn(config(series, learn_from=["month-7"]), SCHEMA)


def harmed(series: Path, harm: str) -> None:
    folder = folder_of(series, "month-2")
    if harm == "missing":
        shutil.rmtree(folder)
    elif harm == "changed":
        (folder / MODEL).write_bytes(b"nothing")
    else:
        data = (folder / MANIFEST).read_bytes()
        (folder / MANIFEST).write_bytes(data.replace(b"ppsyn-release-4", b"ppsyn-release-1"))


@pytest.mark.parametrize("harm", ["missing", "changed", "of another format"])
def test_a_release_that_cannot_be_learned_from_is_told_before_anything_is_spent(series: Path, harm: str) -> None:
    harmed(series, harm)
    before = sorted((series / "store").rglob("*"))
    with pytest.raises(ConfigError, match=r"Cannot learn from release month-2: .* Nothing was spent\."):
        release(series, "month-4")
    assert sorted((series / "store").rglob("*")) == before


@pytest.mark.parametrize("harm", ["missing", "changed", "of another format"])
def test_it_is_left_out_and_named_where_the_release_file_says_so(series: Path, harm: str) -> None:
    harmed(series, harm)
    found = learn(config(series, learn_from={"releases": "all", "unusable": "leave out"}), SCHEMA)
    assert [earlier.run for earlier in found.releases] == ["month-1", "month-3"]
    assert found.left_out[0].startswith("release month-2: ")


def test_a_release_that_was_retired_is_left_out_and_named_without_being_asked(series: Path) -> None:
    retire(open_store(config(series).stores.root), None, "month-2", Erasure(by="A. Person", reason="out of date"))
    found = learn(config(series), SCHEMA)
    assert [earlier.run for earlier in found.releases] == ["month-1", "month-3"]
    assert found.left_out == ("release month-2: It was retired.",)


def test_a_release_that_protects_another_unit_is_refused(series: Path) -> None:
    persons = {"privacy": {"epsilon": 2.0, "delta": 1e-6, "person": {"column": "who", "max_rows": 2}}}
    with pytest.raises(ConfigError, match="protects another unit"):
        learn(config(series, **persons), SCHEMA)


def test_an_abandoned_run_teaches_nothing(series: Path) -> None:
    run = begin(config(series), run="month-4")
    run.ask()
    run.absorb()
    give_up(open_store(run.ref.root), None, "month-4")
    assert [earlier.run for earlier in learn(config(series), SCHEMA).releases] == [*MONTHS]


def test_a_run_goes_on_with_what_it_learned_whatever_is_published_meanwhile(series: Path) -> None:
    run = begin(config(series), run="month-5")
    other = begin(config(series), run="month-6")
    for each in (other, run):
        done = finish(Run(each.ref))
        stage(done)
        publish(done)
    assert [earlier.run for earlier in manifest_of(series, "month-5").learned_from] == [*MONTHS]
    assert [earlier.run for earlier in manifest_of(series, "month-6").learned_from] == [*MONTHS]
    assert problems(folder_of(series, "month-5")) == problems(folder_of(series, "month-6")) == {}


def test_a_run_whose_past_is_gone_does_not_go_on(series: Path) -> None:
    run = begin(config(series), run="month-5")
    assert run.record.past is not None
    open_store(run.ref.root).delete(past_key("month-5", run.record.past).rpartition("/")[0])
    with pytest.raises(RunError, match=r"what it learned from earlier releases is gone or damaged"):
        Run(ref_of(config(series), "month-5"))


def test_a_schema_that_changed_is_learned_from_as_far_as_it_maps(series: Path) -> None:
    columns = [column.model_dump(exclude_defaults=True) | {"kind": column.kind} for column in SCHEMA.columns]
    columns[0] = {"name": "gender", "formerly": "sex", "kind": "categorical", "values": ["f", "m", "x"], "other": "m"}
    columns[3] = {"name": "height", "kind": "integer", "lower": 0, "upper": 3}
    changed = TableSchema.model_validate({"name": "people", "columns": columns})
    found = learn(config(series), changed)
    assert found.past is not None
    assert found.left_out == ("column 'score' is not in the schema any more", "column 'height' is new")


@pytest.mark.parametrize("told", ["some", {"last": 0}, {"releases": ["a b"]}, {"last": 1, "releases": "all"}, 3])
def test_a_choice_that_is_none_is_refused(told: object) -> None:
    with pytest.raises(ValueError, match="LearnFrom"):
        LearnFrom.model_validate(told)
