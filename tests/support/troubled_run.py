"""A small run in a process of its own, whose disk fills up or is read-only, or whose clock jumps; tells how it ended.

python -m support.troubled_run full FOLDER KILOBYTES         a disk of so many, enlarged for a resume; with `unshare -m`
python -m support.troubled_run read-only FOLDER QUESTIONS    after so many, and writable for a resume; with `unshare -m`
python -m support.troubled_run clock FOLDER QUESTIONS JUMP   after so many, and back after two more; with `clock_in`
python -m support.troubled_run clocks FOLDER                 all jumps early and late, one run after another; the same
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.published import DATASET, RUN, SCHEMA, config_of, people, stage

from ppsyn.errors import StoreError
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import release_folder
from ppsyn.releases.writer import is_published, publish
from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import open_store


def release_in(folder: Path, root: Location) -> ReleaseConfig:
    """A small release of a table in the folder."""
    pq.write_table(pa.Table.from_pandas(people(), preserve_index=False), folder / "table.parquet")
    return config_of(folder / "table.parquet", root)


_CLOCK = "PPSYN_TEST_CLOCK"
_DAY = 86_400
JUMPS = (3650 * _DAY, -3650 * _DAY, _DAY, -_DAY, 3600, -3600, 61, -61)
"""Of a clock, in seconds."""


def clock_in(folder: Path) -> Mapping[str, str] | None:
    """An environment whose clock is off by what the folder's file `clock` says; None where there is no C compiler."""
    compiler, library = shutil.which("cc"), folder / "clock.so"
    if compiler is None:
        return None
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    set_clock(folder, 0)
    return {**os.environ, "LD_PRELOAD": str(library), _CLOCK: str(folder / "clock")}


def set_clock(folder: Path, offset: int) -> None:
    """Set the clock of `clock_in`, also while processes run."""
    (folder / "clock.new").write_text(f"{offset}\n", encoding="utf-8")
    (folder / "clock.new").replace(folder / "clock")


def go_on(config: ReleaseConfig, questions: int | None = None, before: Callable[[int], None] | None = None) -> None:
    """Begin the run or go on with it, as the flow does: for so many questions, or to its publication.

    Args:
        before: Called with the number of each question before it is asked.
    """
    ref = records.ref_of(config, RUN)
    preflight.begin(ref, config, SCHEMA)
    run = Run(ref)
    if not is_published(run):
        preflight.snapshot(ref)
        while run.state.stage != "done" and questions != 0:
            if before is not None:
                before(run.step)
            run.ask()
            run.absorb()
            questions = None if questions is None else questions - 1
        if questions is not None:
            return
        stage(run)
    publish(run)


def outcome(config: ReleaseConfig) -> dict[str, object]:
    """What the stores say of the run."""
    root = open_store(config.stores.root)
    account = StoredAccount(root, DATASET)
    budget, folder = account.budget(RUN) if account.find() else None, release_folder(DATASET, RUN)
    is_whole = root.has(f"{folder}/manifest.json")
    found = audit(open_store(config.stores.root.child(folder)), account) if is_whole else ()
    return {
        "charged": 0.0 if budget is None else float(budget.spent),
        "granted": 0.0 if budget is None else float(budget.total),
        "charges": 0 if budget is None else budget.charges,
        "answers": len(root.keys(f"runs/{RUN}/answers")),
        "published": is_whole,
        "problems": [f"{one.subject}: {one.problem}" for one in found if one.problem is not None],
        "left": [key for key in root.keys("") if "/private/" in key or key.startswith("staging/")],
    }


def _mounted(options: str, root: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(root)], check=True)


def _tried(config: ReleaseConfig) -> str | None:
    try:
        go_on(config)
    except StoreError as error:
        return str(error)
    return None


def meet(kind: str, folder: Path, number: int, jump: int = 0) -> dict[str, Any]:
    """Have a new run meet it; what is told is how it stood when it was refused, and how in the end."""
    root = folder / "store"
    root.mkdir()
    config = release_in(folder, Location(url=str(root)))
    if kind == "clock":
        return _with_a_clock(config, number, jump)
    if kind == "full":
        _mounted(f"size={number}k", root)
        refused = _tried(config)
        stood = outcome(config)
        _mounted("remount,size=64m", root)
    else:
        _mounted("size=64m", root)
        go_on(config, number)
        _mounted("remount,ro", root)
        refused = _tried(config)
        stood = outcome(config)
        _mounted("remount,rw", root)
    go_on(config)
    return {"refused": refused, "stood": stood, "ended": outcome(config)}


def unmount(folder: Path) -> None:
    """Take away the disk that a run met, so that its folder can be removed."""
    subprocess.run(["umount", str(folder / "store")], check=True)


def _with_a_clock(config: ReleaseConfig, number: int, jump: int) -> dict[str, Any]:
    folder, clocks = Path(os.environ[_CLOCK]).parent, list[str]()

    def before(question: int) -> None:
        if question in {number, number + 2}:
            set_clock(folder, jump if question == number else 0)
        clocks.append(datetime.now(UTC).isoformat())

    go_on(config, before=before)
    ended = outcome(config)
    set_clock(folder, 0)
    return {"clocks": clocks, "ended": ended}


def _with_all_clocks(folder: Path) -> list[dict[str, Any]]:
    cases = [(number, jump) for number in (3, 14) for jump in JUMPS]
    for place, _ in enumerate(cases):
        (folder / str(place)).mkdir()
    return [meet("clock", folder / str(place), *case) for place, case in enumerate(cases)]


def main(kind: str, folder: Path, *numbers: int) -> object:
    """Do as the command line says."""
    return _with_all_clocks(folder) if kind == "clocks" else meet(kind, folder, *numbers)


def told_by(*words: str, before: Sequence[str] = (), settings: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401
    """What a run in a process of its own tells, which other words may start."""
    command = [*before, sys.executable, "-m", "support.troubled_run", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=3600, env=settings, cwd=Path(__file__).parents[1]
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    told = main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
    sys.stdout.write(json.dumps(told) + "\n")
