"""What the sandbox runs: the command line, and the library's own doors, told as the command line would."""

import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fuzzing.stage import CANARY_TEXT, SCHEMA

import ppsyn
from ppsyn.data.ingest import ingest as read_all
from ppsyn.data.sources import reading
from ppsyn.errors import SourceError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import handle_errors
from ppsyn.flows.preflight import read_inputs
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store


@click.command()
@click.argument("folder")
@handle_errors
def load(folder: str) -> None:
    """Load a saved synthesis and make rows of it."""
    ppsyn.load(folder).generate(50)


@click.command()
@click.argument("file")
@handle_errors
def ingest(file: str) -> None:
    """Read a private table to codes, as a release does after it has reserved its budget."""
    config, table = read_inputs(file, ())
    read_all(config.source, table, config.privacy.person, open_store(Location(url="memory://codes")), "codes")


def run(arguments: list[str]) -> None:
    """A command of ppsyn, or one of these."""
    for command in (load, ingest):
        if arguments[:1] == [command.name]:
            command.main(arguments[1:], "ppsyn", standalone_mode=True)
    main.main(arguments, "ppsyn", standalone_mode=True)


def warm_up() -> None:
    """Have what is compiled or read on first use in memory, before any case; nothing here starts a thread."""
    rows = np.arange(60)
    frame = pd.DataFrame({"sex": np.where(rows % 2, "f", "m"), "age": rows % 24, "member": rows % 3 == 0})
    frame["score"], frame["joined"] = (rows % 10) / 10, pd.to_datetime("2020-01-01") + pd.to_timedelta(rows, unit="D")
    settings = {"rounds": 3, "max_fit_steps": 10, "workload": {"degree": 2}}
    ppsyn.synthesize(frame, SCHEMA, rho=0.5, progress=False, **settings).generate(50)


def _fail(*_: object) -> object:
    raise RuntimeError(f"cannot read {CANARY_TEXT}")


def _sleep(*_: object) -> object:
    time.sleep(60)
    return []


def _turn(*_: object) -> object:
    while True:
        pass


def _eat(*_: object) -> object:
    held = np.ones(3 * 2**26)  # of 8 bytes: half as much again as is allowed
    return [str(held.sum())]


def _leak(*_: object) -> object:
    raise SourceError(f"Expected a number, got {CANARY_TEXT}.")


def _spend(*_: object) -> object:
    for entry in Path("store/accounts").rglob("*"):
        if entry.is_file() and b'"kind":"charge"' in (data := entry.read_bytes()):
            (entry.parent / f"{entry.name}.again").write_bytes(data)
            break
    raise SourceError("Expected another file.")


FAULTS = {"raise": _fail, "sleep": _sleep, "turn": _turn, "eat": _eat, "leak": _leak, "spend": _spend}


def plant(fault: str) -> None:
    """Break what looks into a table, as a careless change would: the fuzzer has to find it."""
    reading.csv_names = reading.parquet_names = FAULTS[fault]
