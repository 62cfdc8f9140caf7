"""The tasks of the loop and of the end, one after the other and without Prefect."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from support.published import SCHEMA, begin, config_of, people

from ppsyn.mechanisms.base import State
from ppsyn.releases.audit import audit
from ppsyn.releases.reader import published_store
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store
from ppsyn.tasks import release
from ppsyn.tasks.run_registry import forget, run_of, watched_by, watchers


@dataclass
class Notes:
    """A watcher that remembers."""

    states: list[State] = field(default_factory=list)

    def opened(self, ref: RunRef) -> None:
        pass

    def entered(self, stage: str) -> None:
        pass

    def advanced(self, state: State) -> None:
        self.states.append(state)


@pytest.fixture
def ref(tmp_path: Path) -> Iterator[RunRef]:
    """A run that has its table and has asked nothing."""
    people().to_parquet(tmp_path / "table.parquet")
    made = begin(config_of(tmp_path / "table.parquet", Location(url=f"memory://{uuid4().hex}")), SCHEMA).ref
    yield made
    forget(made)


def one_round(ref: RunRef) -> None:
    number = release.round_number(ref)
    release.select.fn(ref, number)
    release.measure.fn(ref, number)
    release.fit.fn(ref, number)
    release.checkpoint.fn(ref, number)


def checkpoints(ref: RunRef) -> int:
    return len([key for key in open_store(ref.root).keys("runs") if "/checkpoints/" in key])


def test_a_new_run_has_no_answers(ref: RunRef) -> None:
    assert release.restore.fn(ref) == 0
    assert release.stage(ref) == "one-way"
    assert release.round_number(ref) == 1


def test_one_way_marginals_are_measured_and_kept(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    assert release.stage(ref) == "select"
    assert checkpoints(ref) == 1
    assert {measured.clique for measured in run_of(ref).state.measurements} == {(c.name,) for c in SCHEMA.columns}
    assert release.describe(ref).endswith("% of the budget spent")


def test_measuring_one_way_marginals_again_asks_nothing(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    asked = run_of(ref).step
    release.measure_one_way.fn(ref)
    assert run_of(ref).step == asked


def test_a_round_selects_measures_fits_and_keeps(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    asked = run_of(ref).step
    one_round(ref)
    assert run_of(ref).step == asked + 2
    assert release.round_number(ref) == 2
    assert release.describe(ref).startswith("round 1: ")


def test_a_run_that_is_forgotten_is_restored_as_it_was(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    one_round(ref)
    before = run_of(ref)
    assert release.restore.fn(ref) == before.step
    assert run_of(ref) is not before
    assert run_of(ref).state.spent == before.state.spent
    assert run_of(ref).state.rounds == before.state.rounds


def test_a_run_that_stopped_before_it_measured_measures_what_it_had_selected(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    release.select.fn(ref, 1)
    chosen = run_of(ref).state.chosen
    release.restore.fn(ref)
    assert release.stage(ref) == "measure"
    assert chosen is not None
    release.measure.fn(ref, 1)
    release.fit.fn(ref, 1)
    assert run_of(ref).state.rounds[0].clique == chosen.clique


def test_watchers_see_every_answer_while_they_watch(ref: RunRef) -> None:
    with watched_by(notes := Notes()):
        release.measure_one_way.fn(ref)
        one_round(ref)
    seen = len(notes.states)
    assert seen == run_of(ref).step
    one_round(ref)
    assert len(notes.states) == seen
    assert watchers() == ()


def test_a_watcher_that_sees_an_error_is_let_go() -> None:
    with pytest.raises(ValueError, match="any"), watched_by(Notes()):
        raise ValueError("any")
    assert watchers() == ()


def test_the_tasks_in_order_publish_a_release_that_audits(ref: RunRef) -> None:
    release.measure_one_way.fn(ref)
    while release.stage(ref) != "done":
        one_round(ref)
    release.generate.fn(ref)
    release.validate.fn(ref)
    release.write_artifacts.fn(ref)
    assert not release.is_published(ref)
    url = release.publish.fn(ref)
    assert release.is_published(ref)
    assert release.publish.fn(ref) == url == published_store(ref).location.url
    assert [finding for finding in audit(published_store(ref)) if finding.problem] == []
    assert [key for key in open_store(ref.private).keys("runs") if "/private/" in key] == []
