"""Claim C9 for releases that learn: what one rests on was paid for by the same account, and is named with its cost."""

from pathlib import Path

import pytest
from support.published import SCHEMA, Published, config_of, make_release, people

from ppsyn import synthesize
from ppsyn.errors import ConfigError
from ppsyn.releases.audit import audit
from ppsyn.releases.reader import read_manifest
from ppsyn.runs.earlier import learn
from ppsyn.schemas.locations import Location

ROOM: dict[str, object] = {"account": {"cap": {"epsilon": 20.0, "delta": 1e-6}}, "learn_from": "all"}


def released(folder: Path, run: str, **changes: object) -> Published:
    root = Location(url=str(folder / "store"))
    return make_release(folder, people(), root=root, run=run, changes={**ROOM, **changes})


def test_c9_a_release_costs_what_its_answers_and_all_that_it_rests_on_cost(tmp_path: Path) -> None:
    for run in ("r1", "r2"):
        released(tmp_path, run, learn_from="all")
    last = released(tmp_path, "r3", learn_from={"last": 1})
    manifest, budgets = read_manifest(last.store)[0], last.account.state.budgets
    assert [release.run for release in manifest.learned_from] == ["r2"]
    assert {release.run for release in manifest.rests_on} == {"r1", "r2"}
    assert manifest.together.rho == sum(budget.spent for budget in budgets.values())
    assert manifest.together.rho <= last.account.state.cap
    assert not [finding for finding in audit(last.store, last.account) if finding.problem or finding.unchecked]


def test_c9_a_release_of_another_unit_is_not_learned_from(tmp_path: Path) -> None:
    released(tmp_path, "r1")
    person = {"column": "who", "max_rows": 2}
    changes = {**ROOM, "privacy": {"epsilon": 2.0, "delta": 1e-6, "person": person}}
    with pytest.raises(ConfigError, match="protects another unit"):
        learn(config_of(tmp_path / "table.parquet", Location(url=str(tmp_path / "store")), changes), SCHEMA)


def test_c9_the_library_refuses_earlier_releases_of_another_unit() -> None:
    rows = synthesize(people(), SCHEMA, rho=0.1)
    with pytest.raises(ConfigError, match=r"earlier\[0\]"):
        synthesize(people().assign(who="a"), SCHEMA, rho=0.1, person=("who", 2), earlier=[rows])
