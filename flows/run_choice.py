"""Choose the run that a release continues: the one named, the one it began, an unfinished one, or a new one."""

import re

from prefect import get_client
from prefect.client.schemas.objects import FlowRun

from ppsyn.errors import RunError
from ppsyn.runs.heartbeat import is_beating
from ppsyn.runs.preflight import unfinished_runs
from ppsyn.runs.record import has_record, is_known, ref_of
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store
from ppsyn.tasks.run_registry import tell


def choose(flow_run: FlowRun, config: ReleaseConfig, table: TableSchema, resume: str | None, *, is_new: bool) -> RunRef:
    """The run to go on with; the flow run bears its name from now on.

    Budget that is reserved is used before more is asked for: a run of the same inputs that has not ended is
    preferred to a new one, unless a process goes on with it right now.

    Args:
        flow_run: Who asks.
        config: The release.
        table: The schema.
        resume: The run that was named.
        is_new: Whether an unfinished run is to be left alone.

    Raises:
        RunError: If there is no run of that name.
    """
    root = open_store(config.stores.root)
    if resume is not None and not is_known(ref_of(config, resume)):
        raise RunError(f"There is no run {resume} in {root.location.url}.")
    run = resume or _begun(flow_run, config.dataset, root)
    if run is None and not is_new:
        run = _left_behind(config, table, root)
    ref = ref_of(config, run or _new_name(flow_run))
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=_title(config.dataset, ref.run))
    return ref


def _title(dataset: str, run: str) -> str:
    return f"{dataset} {run}"


def dataset_in(title: str) -> str | None:
    """The dataset of a flow run that has begun a run; None if its name is another's."""
    found = re.fullmatch(r"(.+) \d{8}-\d{6}-[0-9a-f]{8}", title)
    return None if found is None else found[1]


def _begun(flow_run: FlowRun, dataset: str, root: Store) -> str | None:
    """The run whose name the flow run bears since it was started before; once nobody else goes on with it."""
    run = flow_run.name.removeprefix(_title(dataset, ""))
    if run == flow_run.name or flow_run.run_count <= 1 or not has_record(root, run):
        return None
    tell(f"This is start {flow_run.run_count} of run {run}; it goes on once no other process works on it.")
    while is_beating(root, run):
        pass
    return run


def _left_behind(config: ReleaseConfig, table: TableSchema, root: Store) -> str | None:
    """The oldest unfinished run of the same inputs that nobody works on."""
    for run in unfinished_runs(config, table):
        tell(f"Run {run} of the same inputs is unfinished; looking whether another process works on it.")
        if not is_beating(root, run):
            tell(f"Going on with run {run}, which has reserved its budget, instead of paying for a new one.")
            return run
        tell(f"Another process works on run {run}; this is a release of its own.")
    return None


def _new_name(flow_run: FlowRun) -> str:
    """When it starts, and a part of its number, so that the same flow run makes the same run if it starts again."""
    began = flow_run.start_time or flow_run.expected_start_time
    if began is None:
        raise RunError("Expected the flow run to have begun.")
    return f"{began:%Y%m%d-%H%M%S}-{flow_run.id.hex[-8:]}"
