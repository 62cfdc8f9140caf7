"""Objects of a run are damaged at random: it is resumed to a release that passes its audit, or refused unspent."""

import random
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.published import RUN, SCHEMA, begin, config_of, finish, people, stage

from ppsyn.errors import InvariantError, PPSynError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.requests import Answer, Measured
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import FILES, release_folder
from ppsyn.releases.writer import is_published, publish
from ppsyn.runs import record as records
from ppsyn.runs.cleanup import give_up
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import Store, open_store

FAST = range(30)
SLOW = range(1000, 1400)
FOUND = (1010,)
"""Seeds of others that found something, to be tried for ever."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Stores of a run that is open, in each of its stages, and of one that is published."""

    folders: Mapping[str, Path]
    config: ReleaseConfig

    def copied(self, stage: str, target: Path) -> ReleaseConfig:
        """The release in a copy of the store."""
        shutil.copytree(self.folders[stage], target)
        stores = self.config.stores.model_copy(update={"root": Location(url=str(target))})
        return self.config.model_copy(update={"stores": stores})


def saved(run: Run, steps: int) -> None:
    """What the flow does, for so many questions."""
    while run.state.stage != "done" and steps:
        run.ask()
        run.absorb()
        if run.state.stage != "one-way" and run.state.chosen is None:
            run.checkpoint()
        steps -= 1


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("corruption")
    table = pa.Table.from_pandas(people(), preserve_index=False)
    pq.write_table(table, folder / "table.parquet")
    root, folders = folder / "store", dict[str, Path]()
    config = config_of(folder / "table.parquet", Location(url=str(root)))
    run = begin(config)
    for name, steps in (("early", 3), ("selected", 6), ("measured", 2), ("done", -1)):
        saved(run, steps)
        folders[name] = Path(shutil.copytree(root, folder / name))
    stage(run)
    folders["staged"] = Path(shutil.copytree(root, folder / "staged"))
    publish(run)
    folders["published"] = root
    return Kept(folders, config)


# What happens to objects


def flip(chance: random.Random, path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def truncate(chance: random.Random, path: Path, _: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data) + 1)])


def delete(_: random.Random, path: Path, __: Path) -> None:
    path.unlink()


def swap(_: random.Random, path: Path, other: Path) -> None:
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def duplicate(_: random.Random, path: Path, other: Path) -> None:
    other.write_bytes(path.read_bytes())


def stray(chance: random.Random, path: Path, _: Path) -> None:
    name = chance.choice((".DS_Store", f"{path.name}~", "Thumbs.db", "000999.npz", "000002/x", "notes.txt"))
    (path.parent / name).parent.mkdir(exist_ok=True)
    (path.parent / name).write_bytes(chance.randbytes(chance.choice((0, 10, 4096))))


def append(chance: random.Random, path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(5))


def noise(chance: random.Random, path: Path, _: Path) -> None:
    path.write_bytes(chance.randbytes(path.stat().st_size))


HARMS: tuple[Callable[[random.Random, Path, Path], None], ...] = (
    flip, flip, truncate, delete, swap, duplicate, stray, append, noise,
)  # fmt: skip


def harmed(chance: random.Random, root: Path) -> str:
    """Do harm to one object of the run, or to two; the account has tests of its own. Returns what was done."""
    folders = [root / "runs" / RUN, root / "staging", root / "releases"]
    kinds: dict[Path, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                kinds.setdefault(path.parent, []).append(path)
    done: list[str] = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        beside = chance.choice([paths for paths in kinds.values() if paths])
        path, other, harm = chance.choice(beside), chance.choice(beside), chance.choice(HARMS)
        if path.exists() and other.exists():
            harm(chance, path, other)
            done.append(f"{harm.__name__} {path.relative_to(root)} {other.name}")
    return "; ".join(done)


# What becomes of the run


def resumed(config: ReleaseConfig) -> None:
    """What the flow does."""
    ref = records.ref_of(config, RUN)
    assert records.is_known(ref)
    records.begin(ref, config, SCHEMA)
    run = Run(ref)
    if not is_published(run):
        records.snapshot(ref)
        run = finish(run)
        stage(run)
    publish(run)


def problems(store: Store) -> list[str]:
    folder = store.location.child(release_folder("people", RUN))
    found = audit(open_store(folder), StoredAccount(store, "people"))
    return [f"{finding.subject}: {finding.problem}" for finding in found if finding.problem is not None]


def check(kept: Kept, folder: Path, seed: int) -> str:
    """One corruption, resumed and given up; returns what became of it."""
    chance = random.Random(seed)
    name = chance.choice(list(kept.folders))
    config = kept.copied(name, folder / "resumed")
    store = open_store(config.stores.root)
    told = f"seed {seed}, {name}: {harmed(chance, folder / 'resumed')}"
    shutil.copytree(folder / "resumed", folder / "given up")
    before = StoredAccount(store, "people").chain(RUN).ledger.spends
    refusal: Exception | None = None
    try:
        resumed(config)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is looked at
        refusal = error
    if refusal is None:
        assert problems(store) == [], told
    else:
        assert isinstance(refusal, PPSynError), f"{told}: {refusal!r}"
        assert not isinstance(refusal, InvariantError), f"{told}: {refusal!r}"
        assert StoredAccount(store, "people").chain(RUN).ledger.spends == before, f"{told}: {refusal}"
    other = open_store(Location(url=str(folder / "given up")))
    if name != "published":
        found = give_up(other, [], RUN)
        assert (found.held, found.stuck) == (True, ()), told
        assert not other.holds(records.private_folder(RUN)), told
        assert StoredAccount(other, "people").book.committed == found.spent, told
    return "published" if refusal is None else "refused"


@pytest.mark.parametrize("seed", [*FAST, *FOUND])
def test_a_damaged_run_ends_in_a_release_that_passes_or_is_refused_before_a_charge(
    kept: Kept, tmp_path: Path, seed: int
) -> None:
    check(kept, tmp_path, seed)


@pytest.mark.slow
def test_hundreds_of_damaged_runs(kept: Kept, tmp_path: Path) -> None:
    fates = [check(kept, tmp_path / str(seed), seed) for seed in SLOW if not (tmp_path / str(seed)).mkdir()]
    sys.stdout.write(f"{fates.count('published')} published, {fates.count('refused')} refused\n")
    assert fates.count("published") > len(fates) // 10
    assert fates.count("refused") > len(fates) // 10


def test_an_old_answer_that_is_gone_stops_the_run_by_its_number(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("measured", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "answers" / "000002.npz").unlink()
    with pytest.raises(PPSynError, match=r"the answers to step 2 are gone.*ppsyn abandon"):
        resumed(config)


def test_two_answers_that_changed_places_stop_the_run(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("measured", tmp_path / "store")
    answers = tmp_path / "store" / "runs" / RUN / "answers"
    swap(random.Random(0), answers / "000001.npz", answers / "000002.npz")
    with pytest.raises(PPSynError, match=r"step 1 .* is damaged, or is that to another step"):
        resumed(config)


def test_the_last_answer_that_no_checkpoint_has_taken_in_is_lost(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("early", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "answers" / "000002.npz").unlink()
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


@pytest.mark.parametrize("name", [".DS_Store", "x/state.npz", "000001/.DS_Store"])
def test_a_stray_file_among_the_checkpoints_is_none_of_ours(kept: Kept, tmp_path: Path, name: str) -> None:
    config = kept.copied("measured", tmp_path / "store")
    path = tmp_path / "store" / "runs" / RUN / "checkpoints" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"stray")
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


def test_a_record_that_is_gone_is_written_again_from_the_same_release_file_and_from_no_other(
    kept: Kept, tmp_path: Path
) -> None:
    config = kept.copied("measured", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "config.json").unlink()
    other = config.model_copy(update={"generation": config.generation.model_copy(update={"seed": 5})})
    before = StoredAccount(open_store(config.stores.root), "people").entries()
    with pytest.raises(PPSynError, match=r"its record is gone.*ppsyn abandon"):
        resumed(other)
    assert StoredAccount(open_store(config.stores.root), "people").entries() == before
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


def test_answers_that_the_model_does_not_follow_from_are_not_published(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kept.copied("measured", tmp_path / "store")

    def other(run: Run) -> list[Answer]:
        first, *rest = (one.answer for one in run._taken)
        assert isinstance(first, Measured)
        return [replace(first, noisy_counts=first.noisy_counts + 1), *rest]

    monkeypatch.setattr(Run, "answers", other)
    with pytest.raises(PPSynError, match=r"would not pass an audit and is not published\. (model|replay)"):
        resumed(config)
    assert not open_store(config.stores.root).keys("releases")


@pytest.mark.parametrize("name", FILES)
def test_a_staged_file_that_is_not_what_was_written_is_not_published(kept: Kept, tmp_path: Path, name: str) -> None:
    config = kept.copied("done", tmp_path / "store")
    run = Run(records.ref_of(config, RUN))
    stage(run)
    (path,) = (tmp_path / "store" / "staging" / RUN).glob(f"*/{name}")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        PPSynError, match=rf"would not pass an audit and is not published\. {name}: The file was changed"
    ):
        publish(run)
    assert not open_store(config.stores.root).keys("releases")
    assert run.part.is_open
