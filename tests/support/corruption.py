"""Objects of a run are damaged at random: it is resumed to a release that passes its audit, or refused unspent."""

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.published import RUN, SCHEMA, begin, config_of, finish, people, stage

from ppsyn.errors import InvariantError, PPSynError
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import release_folder
from ppsyn.releases.writer import is_published, publish
from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.runs.cleanup import give_up
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import Store, open_store


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


def kept_in(folder: Path) -> Kept:
    """A run in each of its stages, in folders below this one."""
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
    preflight.begin(ref, config, SCHEMA)
    run = Run(ref)
    if not is_published(run):
        preflight.snapshot(ref)
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
        assert (found.reserved, found.stuck) == (True, ()), told
        assert not other.holds(records.private_folder(RUN)), told
        assert StoredAccount(other, "people").state.committed == found.spent, told
    return "published" if refusal is None else "refused"
