"""A small run in a process of its own, whose disk fills up or is read-only; tells how it ended.

unshare -m python tests/troubled_run.py full FOLDER KILOBYTES        a disk of so many, enlarged for a resume
unshare -m python tests/troubled_run.py read-only FOLDER QUESTIONS   after so many, and writable for a resume
python tests/troubled_run.py clock FOLDER QUESTIONS JUMP             after so many; by libfaketime, which reads CLOCK
"""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.published import DATASET, RUN, SCHEMA, config_of, finish, people, stage

from ppsyn.errors import StoreError
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import release_folder
from ppsyn.releases.writer import is_published, publish
from ppsyn.runs import record as records
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import open_store


def release_in(folder: Path, root: Location) -> ReleaseConfig:
    """A small release of a table in the folder."""
    pq.write_table(pa.Table.from_pandas(people(), preserve_index=False), folder / "table.parquet")
    return config_of(folder / "table.parquet", root)


def go_on(config: ReleaseConfig, questions: int | None = None) -> None:
    """Begin the run or go on with it, as the flow does: for so many questions, or to its publication."""
    ref = records.ref_of(config, RUN)
    records.begin(ref, config, SCHEMA)
    run = Run(ref)
    if not is_published(run):
        records.snapshot(ref)
        if questions is not None:
            for _ in range(questions):
                run.ask()
                run.absorb()
            return
        run = finish(run)
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


def main(kind: str, folder: Path, number: int) -> dict[str, object]:
    """Run it; what is told is how it stood when it was refused, and how in the end."""
    root = folder / "store"
    root.mkdir()
    config = release_in(folder, Location(url=str(root)))
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


if __name__ == "__main__":
    told = main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(told) + "\n")
