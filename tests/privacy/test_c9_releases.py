"""Claim C9: a release, and the figures about one, tell nothing of other runs that the same account pays for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from privacy.releases import Script
from support.published import OPEN, RUN, SCHEMA, begin, config_of, finish, people, stage

from ppsyn.arrays import Ints
from ppsyn.domain import domain_of
from ppsyn.privacy import account as accounts
from ppsyn.privacy import curator as gate
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.quality import run as quality
from ppsyn.quality.questions import cliques_of, sets_of
from ppsyn.releases import writer as publishing
from ppsyn.releases.layout import release_folder
from ppsyn.releases.reader import published_counts, read_manifest
from ppsyn.releases.writer import publish
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import AccountPart
from ppsyn.schemas.quality import QualityRecord
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store

NAMES = UUID(int=7)
SMALL: Mapping[str, object] = {"privacy": {"epsilon": 0.5, "delta": 1e-6}}
FIGURES = f"{RUN}-q0a1b2c"


class Clock(datetime):
    """Stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime(2031, 2, 3, 4, 5, 6, tzinfo=tz or UTC)


@dataclass
class Turns:
    """Whose turn it is; nonces and answers are those of whoever's turn it is, and no one else's."""

    scripts: dict[str, Script]
    whose: str = RUN
    nonces: dict[str, int] = field(default_factory=dict)
    between: list[Callable[[], object]] = field(default_factory=list)

    @contextmanager
    def of(self, whose: str) -> Iterator[None]:
        before, self.whose = self.whose, whose
        yield
        self.whose = before

    def nonce(self) -> UUID:
        self.nonces[self.whose] = self.nonces.get(self.whose, 0) + 1
        return uuid5(NAMES, f"{self.whose} {self.nonces[self.whose]}")

    def measure(self, counts: Ints, rho: Fraction, sensitivity: int) -> tuple[Ints, float]:
        self.interrupt()
        return self.scripts[self.whose].measure(counts, rho, sensitivity)

    def select(self, scores: list[int], rho: Fraction, sensitivity: int) -> int:
        self.interrupt()
        return self.scripts[self.whose].select(scores, rho, sensitivity)

    def interrupt(self) -> None:
        """After a charge of the one run, and before its draw, have the other do something."""
        if self.whose == RUN and self.between:
            self.between.pop(0)()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(accounts, "uuid4", self.nonce)
        patch.setattr(accounts, "_now", lambda: Clock.now(UTC))
        for module in (publishing, quality):
            patch.setattr(module, "datetime", Clock)
        patch.setattr(gate, "add_discrete_gaussian", self.measure)
        patch.setattr(gate, "draw_noisy_max", self.select)


@dataclass(frozen=True)
class Other:
    """Another run of the same account.

    Attributes:
        seed: Of its answers.
        rows: Of its table, which has another seed, too.
        end: What becomes of it while the first run goes on.
        is_before: Whether it begins before the first run.
    """

    seed: int
    rows: int
    end: str
    is_before: bool


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, rows in (("first", 200), ("other-100", 100), ("other-300", 300)):
        table = pa.Table.from_pandas(people(rows, seed=rows), preserve_index=False)
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def one_step(run: Run) -> None:
    run.ask()
    run.absorb()


def actions(turns: Turns, config: ReleaseConfig, other: Other) -> list[Callable[[], object]]:
    """What the other run does, in order: begin, three steps, its end, and the owner's change of the cap."""
    runs: list[Run] = []

    def end() -> None:
        run = runs[0]
        match other.end:
            case "published":
                finish(run)
                stage(run)
                publish(run)
            case "abandoned":
                run.account.close(OPEN, None)
            case "dead between its seal and its close":
                run.account._seal(OPEN)
            case _:
                pass
        run.account.set_cap(run.account.state.cap + other.seed)

    steps = [lambda: runs.append(begin(config, run=OPEN)), *[lambda: one_step(runs[0])] * 3, end]

    def taken(step: Callable[[], object]) -> Callable[[], object]:
        def take() -> None:
            with turns.of(OPEN):
                step()

        return take

    return [taken(step) for step in steps]


def world(tables: Path, other: Other | None) -> tuple[Turns, ReleaseConfig, list[Callable[[], object]]]:
    location = Location(url=f"memory://{uuid4().hex}")
    turns = Turns({RUN: Script(seed=1), OPEN: Script(seed=other.seed if other else 0)})
    steps: list[Callable[[], object]] = []
    if other is not None:
        steps = actions(turns, config_of(tables / f"other-{other.rows}.parquet", location, SMALL), other)
    return turns, config_of(tables / "first.parquet", location), steps


def released(config: ReleaseConfig, turns: Turns, steps: list[Callable[[], object]], *, is_before: bool) -> RunRef:
    """Publish the first run; the other takes its steps between the first one's charges and draws."""
    run = begin_after(config, turns, steps if is_before else [])
    turns.between = steps
    finish(run)
    stage(run)
    publish(run)
    assert turns.between == []
    return run.ref


def begin_after(config: ReleaseConfig, turns: Turns, steps: list[Callable[[], object]]) -> Run:
    """Begin the first run in an account that is open, after the first step of the other."""
    cap = config.account.cap
    assert cap is not None
    with turns.of("the owner"):
        StoredAccount(open_store(config.stores.root), config.dataset).open(rho_of(cap), cap.delta, "a row")
    if steps:
        steps.pop(0)()
    return begin(config)


def contents(ref: RunRef) -> dict[str, bytes]:
    store = open_store(ref.releases.child(release_folder(ref.dataset, ref.run)))
    return {key: store.get(key) for key in store.keys()}  # noqa: SIM118  not a dict


def folder_beside(tables: Path, other: Other | None) -> dict[str, bytes]:
    """The published folder of the first run, with the other one beside it."""
    turns, config, steps = world(tables, other)
    with pytest.MonkeyPatch.context() as patch:
        turns.install(patch)
        return contents(released(config, turns, steps, is_before=other is not None and other.is_before))


def figures_beside(tables: Path, other: Other | None) -> dict[str, bytes]:
    """The same with figures about it, which are asked for while the other run goes on."""
    turns, config, steps = world(tables, other)
    with pytest.MonkeyPatch.context() as patch:
        turns.install(patch)
        ref = released(config, turns, [], is_before=False)
        if other is not None and other.is_before:
            steps.pop(0)()
        store = open_store(ref.releases.child(release_folder(ref.dataset, ref.run)))
        manifest, digest = read_manifest(store)
        sets = sets_of(domain_of(SCHEMA), manifest.algorithm.workload, [("sex", "age")])
        record = QualityRecord(
            run=FIGURES, dataset=ref.dataset, release=RUN, manifest=digest, rho=Fraction(1, 100), delta=1e-6,
            person=None, sets=sets,
        )  # fmt: skip
        turns.between = [lambda: [step() for step in steps[:2]], lambda: [step() for step in steps[2:]]]
        synthetic = published_counts(store, manifest, cliques_of(sets))
        asked = ref.model_copy(update={"run": FIGURES})
        quality.publish(store, quality.measure(asked, record, config.source, SCHEMA, synthetic))
        assert turns.between == []
        return contents(ref)


ENDS = ("published", "abandoned", "open", "dead between its seal and its close")
OTHERS = [
    Other(seed, rows, end, is_before)
    for seed, rows, end, is_before in zip(
        (2, 3, 4, 5), (100, 300, 100, 300), ENDS, (True, False, True, False), strict=True
    )
]
ids = [other.end for other in OTHERS]


@pytest.fixture(scope="module")
def alone(tables: Path) -> dict[str, bytes]:
    return folder_beside(tables, None)


@pytest.fixture(scope="module")
def figures_alone(tables: Path) -> dict[str, bytes]:
    return figures_beside(tables, None)


@pytest.mark.parametrize("other", OTHERS, ids=ids)
def test_c9_not_a_byte_of_a_release_depends_on_what_another_run_asked_and_was_answered_or_that_there_was_one(
    tables: Path, alone: Mapping[str, bytes], other: Other
) -> None:
    assert folder_beside(tables, other) == alone


@pytest.mark.parametrize("other", OTHERS[:2], ids=ids[:2])
def test_c9_not_a_byte_of_figures_depends_on_another_run(
    tables: Path, figures_alone: Mapping[str, bytes], other: Other
) -> None:
    assert f"quality/{FIGURES}.json" in figures_alone
    assert figures_beside(tables, other) == figures_alone


def test_c9_other_answers_of_the_run_itself_do_change_its_release(tables: Path, alone: Mapping[str, bytes]) -> None:
    turns, config, steps = world(tables, None)
    turns.scripts[RUN] = Script(seed=9)
    with pytest.MonkeyPatch.context() as patch:
        turns.install(patch)
        changed = contents(released(config, turns, steps, is_before=False))
    assert {name for name in changed if changed[name] != alone[name]} >= {"ledger.json", "measurements.parquet"}


def test_c9_a_release_that_told_what_the_account_has_left_would_be_found(
    tables: Path, alone: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = publishing.account_part

    def telling(account: StoredAccount, run: str) -> AccountPart:
        return told(account, run).model_copy(update={"cap": account.state.left + account.state.budgets[run].total})

    monkeypatch.setattr(publishing, "account_part", telling)
    assert folder_beside(tables, OTHERS[1]) != alone


def test_c9_a_chain_that_named_an_entry_of_the_account_would_be_found(
    tables: Path, alone: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = accounts.Reservation.grant

    def naming(hold: accounts.Reservation, dataset: str) -> object:
        return granted(hold, dataset).model_copy(update={"at": hold.at + timedelta(seconds=hold.number)})

    monkeypatch.setattr(accounts.Reservation, "grant", naming)
    assert folder_beside(tables, OTHERS[0])["ledger.json"] != alone["ledger.json"]
