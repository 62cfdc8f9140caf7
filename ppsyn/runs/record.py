"""What is written down of a run: its exact inputs, and where it keeps what."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from ppsyn.code_version import code_version
from ppsyn.domain import domain_of
from ppsyn.errors import (
    ConfigError,
    MissingError,
    ResumeRefusedError,
    RunError,
    translated,
)
from ppsyn.mechanisms.base import Plan
from ppsyn.mechanisms.loop import make_plan
from ppsyn.mechanisms.past import Past
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.files import other_format
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RUN_FORMAT, EarlierRelease, RunLocations, RunRecord, RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.serialization import unpack_past
from ppsyn.storage import Store, open_store

_ANY = {"run", "format", "code.machine", "code.ppsyn", "earlier", "rests_on", "past", "left_out"}
"""What may differ: the bits that follow from them are compared where they matter."""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a new run learns from.

    Attributes:
        rests_on: These and all that they rest on.
        past: What these releases tell together, as a file; None if they tell nothing.
        left_out: What is of no use, a sentence for each.
    """

    releases: tuple[EarlierRelease, ...] = ()
    rests_on: tuple[EarlierRelease, ...] = ()
    past: bytes | None = None
    left_out: tuple[str, ...] = ()


def private_folder(run: str) -> str:
    """Where the codes of the private table are kept while the run lasts."""
    return f"runs/{run}/private"


def ref_of(config: ReleaseConfig, run: str) -> RunRef:
    """A run of this release, by name and addresses."""
    stores = config.stores
    return RunRef(
        run=run,
        dataset=config.dataset,
        root=stores.root,
        private=stores.private or stores.root,
        releases=stores.releases or stores.root,
        runtime=config.runtime,
    )


def new_record(config: ReleaseConfig, table: TableSchema, run: str, learned: Learned | None = None) -> RunRecord:
    """The exact inputs of a run, with what it learns from when it begins."""
    learned = learned or Learned()
    return RunRecord(
        run=run,
        dataset=config.dataset,
        source=config.source,
        table=table,
        privacy=config.privacy,
        purpose=config.purpose,
        algorithm=config.algorithm,
        generation=config.generation,
        learn_from=config.learn_from,
        earlier=learned.releases,
        rests_on=learned.rests_on,
        past=None if learned.past is None else hashlib.sha256(learned.past).hexdigest(),
        left_out=learned.left_out,
        code=code_version(),
    )


def plan_of(record: RunRecord, past: Past | None = None) -> Plan:
    """What a run is going to do, from its public inputs and what it has learned."""
    person = record.privacy.person
    max_rows = person.max_rows if person else 1
    return make_plan(domain_of(record.table), rho_of(record.privacy), max_rows, record.algorithm, past=past)


def past_of_run(root: Store, record: RunRecord) -> tuple[bytes, Past] | None:
    """What a run has learned from earlier releases, as it was written down when it began.

    Raises:
        RunError: If that is gone or damaged.
    """
    if record.past is None:
        return None
    try:
        data = root.get(past_key(record.run, record.past))
        if hashlib.sha256(data).hexdigest() == record.past:
            return data, unpack_past(data, domain_of(record.table))
    except (MissingError, ConfigError):
        pass
    raise broken(record.run, "what it learned from earlier releases is gone or damaged")


def past_key(run: str, digest: str) -> str:
    """Where what a run has learned is."""
    return f"{run_folder(run)}/past/{digest}.npz"


def has_record(root: Store, run: str) -> bool:
    """Whether there is such a run."""
    return root.has(record_key(run))


def read_record(root: Store, run: str) -> RunRecord:
    """The inputs that a run began with.

    Raises:
        RunError: If there is no such run, or its record is damaged.
    """
    with translated(MissingError, to=RunError, message=f"There is no run {run} in {root.location.url}."):
        data = root.get(record_key(run))
    other = other_format(data, RUN_FORMAT)
    if other is not None:
        raise RunError(f"Run {run} cannot go on here. {other}")
    with translated(ValueError, to=partial(broken, run), message="its record is damaged"):
        return RunRecord.model_validate_json(data)


def broken(run: str, problem: str) -> RunError:
    """The error of a run that lacks what it has built on: it can only be given up."""
    return RunError(
        f"Run {run} cannot go on: {problem}. Nothing was charged. What it has spent stays spent; `ppsyn abandon {run}` "
        "frees the rest and removes its copy of the table."
    )


def quality_key(run: str) -> str:
    """Where the record of a run about the quality of a release is."""
    return f"runs/{run}/quality.json"


def check_unchanged(ref: RunRef, now: RunRecord) -> None:
    """See that a run would still be the same run. All that is compared is public.

    Privacy:
        A run is about its snapshot. Whether the table has changed since is not looked at,
        because whatever followed from it would be seen, and nobody has paid for it (C11).

    Raises:
        ResumeRefusedError: Saying all that differs.
    """
    found = list(differences(read_record(open_store(ref.root), ref.run), now))
    if found:
        raise ResumeRefusedError(ref.run, found)


def differences(before: RunRecord, now: RunRecord) -> Iterator[str]:
    """A sentence for each input that differs and must not."""
    old, new = dict(_leaves(before.model_dump(mode="json"))), dict(_leaves(now.model_dump(mode="json")))
    for name in sorted(old.keys() | new.keys()):
        if name not in _ANY and old.get(name) != new.get(name):
            yield f"{name} was {_value_text(old, name)} and is {_value_text(new, name)} now."


def _leaves(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if name == "columns":
            columns = cast("list[dict[str, object]]", value)
            yield f"{above}{name}", [column["name"] for column in columns]
            yield from _leaves({f"column {column['name']!r}": column for column in columns}, above)
        elif isinstance(value, dict):
            yield from _leaves(cast("dict[str, object]", value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _value_text(values: Mapping[str, object], name: str) -> str:
    return repr(values[name]) if name in values else "absent"


def is_known(ref: RunRef) -> bool:
    """Whether there is such a run: by its record or, if that is gone, by its account."""
    return has_record(open_store(ref.root), ref.run) or budget_of(ref) is not None


def budget_of(ref: RunRef) -> RunBudget | None:
    """The run's share of its account, if it has one."""
    account = StoredAccount(open_store(ref.root), ref.dataset)
    return None if account.find() is None else account.budget(ref.run)


def record_locations(root: Store, ref: RunRef) -> None:
    """Write down where the run keeps what, so that it can be given up by whoever knows its name alone."""
    private, releases = (None if location == ref.root else location for location in (ref.private, ref.releases))
    data = RunLocations(private=private, releases=releases).model_dump_json(indent=2).encode() + b"\n"
    root.put(_locations_key(ref.run), data)


def locations_of(root: Store, run: str) -> RunLocations | None:
    """Where a run keeps its copy of the table and what it makes, if that is written down."""
    try:
        return RunLocations.model_validate_json(root.get(_locations_key(run)))
    except (MissingError, ValueError):
        return None


def record_key(run: str) -> str:
    """Where the record of a run is."""
    return f"{run_folder(run)}/config.json"


def _locations_key(run: str) -> str:
    return f"{run_folder(run)}/locations.json"


def run_folder(run: str) -> str:
    """Where a run is kept.

    Raises:
        RunError: If that is not the name of a run.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+", run):
        raise RunError(f"There is no run {run}. Choose one that `ppsyn budget` lists.")
    return f"runs/{run}"
