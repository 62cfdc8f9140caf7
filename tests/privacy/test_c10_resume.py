"""Claim C10: a step is drawn once, whatever is killed and resumed. Here runs die and go on within one process."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from privacy.instruments import Watched
from privacy.releases import Script
from support.loops import replay
from support.small_release import write_release

from ppsyn.errors import ResumeRefusedError, RunError, RunTakenError
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.loop import next_request
from ppsyn.privacy import curator as gate
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.partition import equal_width
from ppsyn.privacy.requests import Answer, Lost, Measured, MeasureRequest, Request, Selected
from ppsyn.runs import run as run_module
from ppsyn.runs.checkpoints import Answers, Checkpoint, Checkpoints, freeze
from ppsyn.runs.preflight import begin, snapshot
from ppsyn.runs.record import plan_of, private_folder, ref_of
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import load_release
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.serialization import pack
from ppsyn.storage import open_store

RUN = "r1"
QUESTION = 64 * "0"
"""The digest of one."""


class Killed(BaseException):
    """The end of a life; nothing in the library catches it."""


class Drawn(NamedTuple):
    life: int
    step: int


@dataclass
class Lives:
    """A run that dies again and again.

    Attributes:
        limit: At which arrival at a point the life ends; None for a life that does not.
        charged: Who charged which step, in order.
        drawn: Who drew for which step, in order.
    """

    script: Watched
    limit: int | None = None
    life: int = 0
    arrivals: int = 0
    charged: list[Drawn] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)

    def arrive(self) -> None:
        self.arrivals += 1
        if self.arrivals == self.limit:
            raise Killed

    def begin(self, limit: int | None) -> None:
        self.life, self.arrivals, self.limit = self.life + 1, 0, limit

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put points where a life may end before and after all that is written or drawn."""
        for owner, name in ((Answers, "keep"), (Checkpoints, "save"), (Run, "_take")):
            patch.setattr(owner, name, self._guarded(getattr(owner, name)))
        charge = StoredAccount.charge

        def charge_and_note(account: StoredAccount, run: str, step: int, spend: object) -> None:
            self.arrive()
            charge(account, run, step, spend)
            self.charged.append(Drawn(self.life, step))
            self.arrive()

        patch.setattr(StoredAccount, "charge", charge_and_note)
        patch.setattr(gate, "add_discrete_gaussian", self._noted(self.script.measure))
        patch.setattr(gate, "draw_noisy_max", self._noted(self.script.select))

    def _guarded(self, inner: Callable[..., object]) -> Callable[..., object]:
        def guarded(*args: object) -> object:
            self.arrive()
            result = inner(*args)
            self.arrive()
            return result

        return guarded

    def _noted(self, inner: Callable[..., object]) -> Callable[..., object]:
        def noted(*args: object) -> object:
            self.drawn.append(self.charged[-1])
            return inner(*args)

        return noted


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that has read its table and asked nothing, and all that its store holds."""

    ref: RunRef
    kept: Mapping[str, bytes] = field(repr=False)

    def copied(self, location: Location | None = None) -> RunRef:
        """The same run in a store of its own."""
        location = location or Location(url=f"memory://{uuid4().hex}")
        for key, data in self.kept.items():
            open_store(location).put(key, data)
        return self.ref.model_copy(update={"root": location, "private": location, "releases": location})


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    file = write_release(tmp_path_factory.mktemp("c10"), f"memory://{uuid4().hex}", algorithm={"max_fit_steps": 5})
    config = load_release(file)
    ref = ref_of(config, RUN)
    begin(ref, config, TableSchema.load(config.table))
    snapshot(ref)
    store = open_store(ref.root)
    return Begun(ref, {key: store.get(key) for key in store.keys()})  # noqa: SIM118  not a dict


def go_on(run: Run, steps: int | None = None) -> None:
    """What the flow does, until nothing is left to ask or so many steps were made."""
    while run.state.stage != "done" and (steps is None or steps > 0):
        run.ask()
        run.absorb()
        if run.state.stage != "one-way" and run.state.chosen is None:
            run.checkpoint()
        steps = None if steps is None else steps - 1


def live(ref: RunRef, lives: Lives, limit: int | None) -> Run | None:
    """A life: the run, if it came to its end."""
    lives.begin(limit)
    try:
        run = Run(ref)
        go_on(run)
    except Killed:
        return None
    return run


def last_life(ref: RunRef, lives: Lives, deaths: Sequence[int]) -> Run:
    """The run at its end, after it has died so often."""
    with pytest.MonkeyPatch.context() as patch:
        lives.install(patch)
        for limit in deaths:
            live(ref, lives, limit)
        run = live(ref, lives, None)
    assert run is not None
    return run


def stored(ref: RunRef, steps: int) -> list[Answer]:
    answers = [Answers(open_store(ref.root), ref.run).find(step) for step in range(steps)]
    assert None not in answers
    return [kept.answer for kept in answers if kept is not None]


def bits(state: State) -> bytes:
    return pack(freeze(state, {}))


deaths = st.lists(st.integers(1, 60), max_size=6)
seeds = st.integers(0, 2**16)
many = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(deaths=deaths, seed=seeds)
@many
def test_c10_a_run_that_dies_anywhere_any_number_of_times_draws_each_step_at_most_once(
    begun: Begun, deaths: Sequence[int], seed: int
) -> None:
    ref, lives = begun.copied(), Lives(Script(seed=seed))
    run = last_life(ref, lives, deaths)
    assert [charge.step for charge in lives.charged] == list(range(run.step))
    assert set(Counter(draw.step for draw in lives.drawn).values()) <= {1}
    assert set(lives.drawn) <= set(lives.charged)  # by the life that charged it


@given(deaths=deaths, seed=seeds)
@many
def test_c10_the_end_of_a_run_that_died_is_bit_for_bit_what_its_stored_answers_imply(
    begun: Begun, deaths: Sequence[int], seed: int
) -> None:
    ref, lives = begun.copied(), Lives(Script(seed=seed))
    run = last_life(ref, lives, deaths)
    state, asked = replay(plan_of(run.record), stored(ref, run.step))
    assert bits(run.state) == bits(state)
    assert [spend.digest for spend in run.ledger.spends] == [request.digest() for request in asked]
    assert run.ledger.spent == run.ledger.total == run.plan.rho


@given(deaths=st.lists(st.integers(1, 60), min_size=1, max_size=6), seed=seeds)
@many
def test_c10_exactly_the_charged_steps_without_an_answer_are_lost_and_they_stay_charged(
    begun: Begun, deaths: Sequence[int], seed: int
) -> None:
    ref, lives, orphans = begun.copied(), Lives(Script(seed=seed)), set[int]()
    answers = Answers(open_store(ref.root), ref.run)
    with pytest.MonkeyPatch.context() as patch:
        lives.install(patch)
        for limit in (*deaths, None):
            run = live(ref, lives, limit)
            orphans |= {charge.step for charge in lives.charged if answers.find(charge.step) is None}
    assert run is not None
    found = stored(ref, run.step)
    assert {step for step, answer in enumerate(found) if isinstance(answer, Lost)} == orphans
    assert len(run.ledger.spends) == len(found) == run.step


@given(steps=st.integers(0, 13), seed=seeds)
@many
def test_c10_what_a_checkpoint_restores_equals_a_replay_of_all_answers(begun: Begun, steps: int, seed: int) -> None:
    ref, lives = begun.copied(), Lives(Script(seed=seed))
    with pytest.MonkeyPatch.context() as patch:
        lives.install(patch)
        go_on(Run(ref), steps)
    restored = Run(ref)
    state, _ = replay(restored.plan, stored(ref, restored.step))
    asked, expected = next_request(restored.state), next_request(state)
    assert (asked and asked.digest(), restored.state.spent) == (expected and expected.digest(), state.spent)
    if not state.one_way and state.chosen is None:
        assert bits(restored.state) == bits(state)


@given(turns=st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=24), seed=seeds)
@many
def test_c10_two_processes_in_any_order_of_steps_draw_each_step_at_most_once_and_leave_a_run_that_can_go_on(
    begun: Begun, turns: Sequence[tuple[int, bool]], seed: int
) -> None:
    ref, lives = begun.copied(), Lives(Script(seed=seed))
    both = [Run(ref), Run(ref)]
    with pytest.MonkeyPatch.context() as patch:
        lives.install(patch)
        for turn, is_reopened in turns:
            lives.life = turn
            try:
                go_on(both[turn], 1)
            except RunTakenError:
                both[turn] = Run(ref) if is_reopened else both[turn]
        lives.life = 1
        run = live(ref, lives, None)
    assert run is not None
    assert [charge.step for charge in lives.charged] == list(range(run.step))
    assert set(lives.drawn) <= set(lives.charged)
    assert bits(run.state) == bits(replay(run.plan, stored(ref, run.step))[0])


counts = st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5).map(lambda values: np.array(values, np.int64))
answers_of_a_step = (
    st.builds(Measured, counts, st.floats(0.1, 1e6))
    | st.builds(Selected, st.integers(0, 1000))
    | st.builds(Lost)
)  # fmt: skip


def same(one: Answer | None, other: Answer | None) -> bool:
    if isinstance(one, Measured) and isinstance(other, Measured):
        return one.sigma == other.sigma and one.noisy_counts.tolist() == other.noisy_counts.tolist()
    return one == other


@given(first=answers_of_a_step, later=st.lists(answers_of_a_step, max_size=4))
@settings(max_examples=60, deadline=None)
def test_c10_a_step_has_the_answer_that_was_kept_first_for_ever(first: Answer, later: Sequence[Answer]) -> None:
    answers = Answers(open_store(Location(url=f"memory://{uuid4().hex}")), RUN)
    assert answers.find(3) is None
    assert answers.keep(3, QUESTION, first)
    for answer in later:
        assert (answers.keep(3, QUESTION, answer) is not None) == same(answer, first)
        found = answers.find(3)
        assert found is not None
        assert (found.step, found.request) == (3, QUESTION)
        assert same(found.answer, first)


def test_c10_an_answer_that_comes_after_its_step_was_lost_is_thrown_away(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, lives = begun.copied(), Lives(Script())
    lives.install(monkeypatch)
    slow, late = Run(ref), list[tuple[int, str, Answer]]()
    monkeypatch.setattr(slow._answers, "keep", lambda *kept: late.append(kept))
    with pytest.raises(RunTakenError):
        slow.ask()  # charged and drawn, and not kept yet
    assert isinstance(Run(ref).answers()[0], Lost)
    assert Answers(open_store(ref.root), RUN).keep(*late[0]) is None
    assert isinstance(Run(ref).answers()[0], Lost)


def test_c10_a_process_that_was_overtaken_before_its_first_question_charges_nothing(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, lives = begun.copied(), Lives(Script())
    lives.install(monkeypatch)
    slow, quick = Run(ref), Run(ref)
    go_on(quick, 2)
    with pytest.raises(RunTakenError):
        slow.ask()
    assert [charge.step for charge in lives.charged] == [0, 1]
    go_on(quick)
    assert quick.ledger.spent == quick.plan.rho


def test_c10_a_run_whose_account_was_set_back_is_refused(begun: Begun, tmp_path: Path) -> None:
    ref = begun.copied(Location(url=str(tmp_path)))
    go_on(Run(ref), 3)
    sorted((tmp_path / "accounts" / ref.dataset / "charges" / RUN).iterdir())[-1].unlink()
    with pytest.raises(RunError, match="the account was set back"):
        Run(ref)


def test_c10_a_question_whose_answer_could_not_be_stored_is_not_asked_again_by_the_same_process(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, lives = begun.copied(), Lives(Script())
    lives.install(monkeypatch)
    run = Run(ref)
    lives.limit = 3  # charged, drawn, and the store fails
    with pytest.raises(Killed):
        run.ask()
    with pytest.raises(RunTakenError):
        run.ask()
    assert [charge.step for charge in lives.charged] == [draw.step for draw in lives.drawn] == [0]
    go_on(Run(ref))


def dearer(request: Request) -> Request:
    return replace(request, rho=2 * request.rho)


def of_less(request: Request) -> Request:
    """The question about another partition of the same marginal."""
    assert isinstance(request, MeasureRequest)
    return replace(request, partition=equal_width(request.partition.cells, 2))


def told_alike(request: Request) -> Request:
    """A question that costs something else, and has the same digest."""

    class Alike(MeasureRequest):
        def digest(self) -> str:
            return request.digest()

    assert isinstance(request, MeasureRequest)
    return Alike(request.clique, request.partition, 2 * request.rho)


@pytest.mark.parametrize("change", [dearer, of_less, told_alike])
def test_c10_a_run_that_would_ask_something_else_than_it_did_is_refused(
    begun: Begun, change: Callable[[Request], Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = begun.copied()
    go_on(Run(ref), 2)
    stored = open_store(ref.root)
    before = {key: stored.get(key) for key in stored.keys("")}

    def asks_otherwise(state: State) -> Request | None:
        request = next_request(state)
        return None if request is None else change(request)

    monkeypatch.setattr(run_module, "next_request", asks_otherwise)
    with pytest.raises(ResumeRefusedError, match="something else"):
        Run(ref)
    assert {key: stored.get(key) for key in stored.keys("")} == before


def test_c10_a_table_is_not_read_again_once_something_was_asked(begun: Begun) -> None:
    ref = begun.copied()
    go_on(Run(ref), 1)
    private = open_store(ref.private)
    private.delete(private_folder(ref.run))
    with pytest.raises(RunError, match="cannot be made again"):
        snapshot(ref)
    assert private.keys(private_folder(ref.run)) == []


@pytest.mark.parametrize(
    "changes", [{"privacy": {"epsilon": 5.0}}, {"algorithm": {"rounds": 5}}, {"algorithm": {"workload": {"degree": 1}}}]
)
def test_c10_a_run_is_not_resumed_under_another_record(
    begun: Begun, changes: Mapping[str, Mapping[str, object]], tmp_path: Path
) -> None:
    ref = begun.copied()
    go_on(Run(ref), 1)
    entries = StoredAccount(open_store(ref.root), ref.dataset).entries()
    quick = {"algorithm": {"max_fit_steps": 5, **changes.get("algorithm", {})}}
    config = load_release(write_release(tmp_path, f"memory://{uuid4().hex}", **{**changes, **quick}))
    with pytest.raises(ResumeRefusedError):
        begin(ref, config, TableSchema.load(config.table))
    assert StoredAccount(open_store(ref.root), ref.dataset).entries() == entries


@pytest.mark.parametrize("beyond", [0, 1])
def test_c10_a_checkpoint_of_another_history_is_refused(begun: Begun, beyond: int) -> None:
    ref = begun.copied()
    run = Run(ref)
    go_on(run)
    spends = run.ledger.spends
    history = "0" * 64 if beyond == 0 else run_module._history(spends[: len(spends) + beyond])
    digests = (*(kept.digest for kept in run._taken), *["0" * 64] * beyond)
    Checkpoints(open_store(ref.root), ref.run).save(Checkpoint(run.state, history, digests))
    with pytest.raises(RunError, match="does not fit its account"):
        Run(ref)
