"""What an account costs after years: whole commands and the account's part of them, by how many charges it has.

python -m performance.years examples/adult/release.yaml --charges 100,10000,100000
python -m performance.years examples/adult/release.yaml --days 1096

Each account begins with a release. Then come runs that are made up, with entries, charges and records as the pipeline
writes them, an empty answer and an empty manifest. Seconds are those of the processor.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

from ppsyn.flows.cli.accounts import read_statement
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import AccountState, Chain
from ppsyn.privacy.ledger import Spend
from ppsyn.releases.audit import audit
from ppsyn.releases.writer import publish, stage_records, stage_rows, stage_validation
from ppsyn.runs.account_check import check_known
from ppsyn.runs.preflight import begin, check_possible, snapshot
from ppsyn.runs.record import ref_of
from ppsyn.runs.run import Run
from ppsyn.schemas.account import Charge, Close, Reservation, Seal, Spent, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig, load_release
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store

A_RELEASE = 230
"""Charges of a release of 100 rounds and some tens of columns."""
_GRAIN = Fraction(1, 2**200)
_DIGEST = "5e" * 32
_SETTINGS = ("algorithm.rounds=10", "algorithm.max_fit_steps=50", "account.cap.epsilon=100")
_START = datetime(2027, 1, 1, 2, 0, tzinfo=UTC)


def main() -> None:
    """Print seconds by the number of charges, with their ratio to the first, and what the stores hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a release file")
    parser.add_argument("--charges", default="100,10000,100000", help="how many, of other runs")
    parser.add_argument("--days", type=int, help="instead: a release a day, of 230 charges, for so many days")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    sizes = [arguments.days * A_RELEASE] if arguments.days else [int(size) for size in arguments.charges.split(",")]
    sizes = [100, *sizes] if arguments.days else sizes
    first: dict[str, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            measured = _measured(Path(folder), arguments.file, size, arguments.repeats)
            first = first or measured
            for name, seconds in measured.items():
                _say(f"{size:>7} charges  {name:<28} {seconds:8.3f} s   ratio {seconds / first[name]:.2f}")
            _tell_growth(Path(folder) / "store", size)


def _measured(folder: Path, file: str, size: int, repeats: int) -> dict[str, float]:
    """CPU seconds of each operation on an account of that size: the median."""
    place = Location(url=str(folder / "store"))
    settings = [*_SETTINGS, f"stores.root={place.url}"]
    config = load_release(file, settings)
    store, dataset = open_store(place), config.dataset
    first = make_release(config)
    _fill(store, dataset, first, size)
    at = f"{place.url}/releases/{dataset}/{first}"
    changed = [part for setting in settings for part in ("--set", setting)]
    works: dict[str, Callable[[], float]] = {
        "ppsyn release": lambda: _run(["release", file, *changed, "--quiet"], folder),
        "ppsyn budget": lambda: _run(["budget", dataset, "--store", place.url], folder),
        "ppsyn audit --account": lambda: _run(["audit", at, "--account", place.url], folder),
        "reserve, first charge, close": lambda: _seconds(lambda: _open(store, dataset)),
        "budget": lambda: _seconds(lambda: read_statement(store, dataset).as_json()),
        "audit": lambda: _seconds(lambda: _audit(place, dataset, first)),
    }
    return {name: statistics.median(work() for _ in range(repeats)) for name, work in works.items()}


def make_release(config: ReleaseConfig) -> str:
    """A whole release by the functions that the pipeline calls; the run."""
    ref = ref_of(config, f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}")
    table = TableSchema.load(config.table)
    check_possible(config, table)
    begin(ref, config, table)
    snapshot(ref)
    run = Run(ref)
    while run.state.stage != "done":
        run.ask()
        run.absorb()
    stage_rows(run)
    stage_validation(run)
    stage_records(run)
    publish(run)
    return ref.run


def _audit(place: Location, dataset: str, run: str) -> None:
    release = open_store(place.child(f"releases/{dataset}/{run}"))
    problems = [found.problem for found in audit(release, StoredAccount(open_store(place), dataset)) if found.problem]
    if problems:
        sys.exit("; ".join(problems))


def _open(store: Store, dataset: str) -> None:
    """What a release does before its first draw, as far as the account is concerned."""
    run = f"{_START:%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"
    account = StoredAccount(store, dataset)
    check_known(account, store, store)
    account.reserve(run, _GRAIN, _DIGEST)
    RunAccount(account, run).charge(Spend("measure", _GRAIN, _DIGEST, ("age",)))
    account.close(run, None)


def _fill(store: Store, dataset: str, example: str, size: int) -> None:
    """Add closed runs of 230 charges each, the last of fewer, with as many objects as a run leaves."""
    state = StoredAccount(store, dataset).state
    record = store.get(f"runs/{example}/config.json")
    left, number = size, 0
    while left > 0:
        run, charges = f"{_START + timedelta(days=number):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}", min(left, A_RELEASE)
        _add_run(store, state, run, charges)
        store.put(f"runs/{run}/config.json", record)
        store.put(f"runs/{run}/answers/000000.npz", b"")
        store.put(f"releases/{dataset}/{run}/manifest.json", b"{}")
        left, number = left - charges, number + 1


def _add_run(store: Store, state: AccountState, run: str, charges: int) -> None:
    """A run's budget in the account, as its process would have written it, but without waiting for the disk."""
    folder, at = f"accounts/{state.opening.dataset}", _START

    def post(entry: Reservation | Close) -> None:
        data = to_bytes(entry)
        store.put(f"{folder}/{entry.number:06d}.json", data)
        state.post(data)

    def place(of: AccountState | Chain) -> dict[str, object]:
        return {"number": of.count, "previous": of.head, "nonce": uuid4().hex, "run": run}

    reserved = {"rho": charges * _GRAIN, "inputs": _DIGEST, "at": at, "is_chained": True}
    post(Reservation.model_validate(place(state) | reserved))
    chain = Chain(state.budgets[run].grant)
    about = {"mechanism": "measure", "clique": ("age", "education", "income"), "rho": _GRAIN, "request": _DIGEST}
    for step in range(charges + 1):
        entry = Charge.model_validate(place(chain) | about | {"step": step}) if step < charges else None
        data = to_bytes(entry or Seal.model_validate(place(chain)))
        store.put(f"{folder}/charges/{run}/{step:06d}.json", data)
        chain.post(data)
    spent = Spent(rho=chain.ledger.spent, charges=charges, seal=chain.head)
    post(Close.model_validate(place(state) | {"manifest": _DIGEST, "at": at, "spent": spent}))


def _tell_growth(root: Path, size: int) -> None:
    """What the account has, and what one release by the pipeline left beside it."""
    account = next((root / "accounts").iterdir())
    for name, files in (
        ("accounts: entries", list(account.glob("*.json"))),
        ("accounts: charges", list(account.glob("charges/*/*.json"))),
        ("one release: runs/RUN", _largest(root / "runs")),
        ("one release: releases/DATASET/RUN", _largest(next((root / "releases").iterdir()))),
    ):
        total = sum(file.stat().st_size for file in files)
        _say(f"{size:>7} charges  {name:<34} {len(files):>7} objects {total / 1e6:9.2f} MB")


def _largest(folder: Path) -> list[Path]:
    """The files of the run in this folder that has most."""
    return max(
        ([file for file in run.rglob("*") if file.is_file()] for run in folder.iterdir() if run.is_dir()), key=len
    )


def _run(command: Sequence[str], home: Path) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PREFECT_HOME": str(home / "prefect")}
    ppsyn = str(Path(sys.executable).parent / "ppsyn")
    subprocess.run([ppsyn, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
