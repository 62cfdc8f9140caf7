"""What a Prefect server knows of releases: those it is going to start, and those that ended and should not have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from httpx import HTTPError
from prefect import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import PrefectException

from ppsyn.errors import PPSynError, translated
from ppsyn.flows.cli.output import ServerError
from ppsyn.flows.run_choice import dataset_in
from ppsyn.privacy.budget import rho_of
from ppsyn.reports.overview import Planned, Trouble
from ppsyn.schemas.files import SchemaFileError
from ppsyn.schemas.release import load_release

_FLOW = FlowFilter(name=FlowFilterName(any_=["release"]))
_MOST = 200
"""Flow runs that are looked at: a server gives no more at once."""
_SHOWN = 5
"""Starts of a schedule."""

_REMEDIES: Mapping[str, str] = {
    "Refused": "Read the sentence; then start it again.",
    "Failed": "Its next run goes on with it; or `ppsyn abandon`.",
    "Crashed": "Its next run goes on with it; or `ppsyn abandon`.",
    "Cancelled": "Its next run goes on with it; or `ppsyn abandon`.",
    "Paused": "It waits for somebody to resume it in Prefect.",
    "Suspended": "It waits for somebody to resume it in Prefect.",
    "Late": "No worker takes it: see that one runs.",
}
"""States that need somebody, and what to do."""


@dataclass(frozen=True, slots=True)
class View:
    """What the server knows."""

    planned: tuple[Planned, ...]
    troubles: tuple[Trouble, ...]


def look() -> View:
    """Ask the configured server.

    Raises:
        ServerError: If it does not answer, or not as Prefect does.
    """
    caught = HTTPError, PrefectException, OSError
    with translated(
        caught, to=ServerError, message=lambda error: f"The Prefect server does not answer: {type(error).__name__}."
    ):
        return _look()


def _look() -> View:
    started = FlowRunFilter(start_time=FlowRunFilterStartTime(is_null_=False))
    waiting = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])))
    with get_client(sync_client=True) as client:
        names = {one.id: one.name for one in client.read_deployments(flow_filter=_FLOW, limit=_MOST)}
        past = client.read_flow_runs(
            flow_filter=_FLOW, flow_run_filter=started, sort=FlowRunSort.START_TIME_DESC, limit=_MOST
        )
        coming = client.read_flow_runs(
            flow_filter=_FLOW, flow_run_filter=waiting, sort=FlowRunSort.EXPECTED_START_TIME_ASC, limit=_MOST
        )
    datasets = _datasets(past)
    return View(tuple(_planned(coming, names, datasets)), tuple(_troubles(past, coming, names, datasets)))


def _datasets(past: Sequence[FlowRun]) -> dict[UUID, str]:
    """The dataset of each deployment, as the last of its runs was called."""
    told = [(one.deployment_id, dataset_in(one.name)) for one in reversed(past)]
    return {deployment: dataset for deployment, dataset in told if deployment is not None and dataset is not None}


def _planned(coming: Sequence[FlowRun], names: Mapping[UUID, str], datasets: Mapping[UUID, str]) -> Iterator[Planned]:
    shown = dict[UUID, int]()
    for one in coming:
        if one.deployment_id is None or one.deployment_id not in names or one.run_count or one.state_name == "Late":
            continue  # what starts again is paid for, and what is late is told as a trouble
        shown[one.deployment_id] = shown.get(one.deployment_id, 0) + 1
        if shown[one.deployment_id] <= _SHOWN:
            dataset, rho = _asked(one)
            source = f"deployment {names[one.deployment_id]}"
            yield Planned(dataset or datasets.get(one.deployment_id), source, one.expected_start_time, rho)


def _asked(one: FlowRun) -> tuple[str | None, Fraction | None]:
    """The dataset and the cost of a flow run, if its release file can be read here."""
    file, settings = one.parameters.get("file"), one.parameters.get("settings") or ()
    try:
        config = load_release(str(file), tuple(map(str, settings)))
    except (SchemaFileError, PPSynError):
        return None, None
    return config.dataset, rho_of(config.privacy)


def _troubles(
    past: Sequence[FlowRun], coming: Sequence[FlowRun], names: Mapping[UUID, str], datasets: Mapping[UUID, str]
) -> Iterator[Trouble]:
    """What the last flow run of each deployment tells, or of each dataset without one; what came before it is over."""
    seen = set[UUID | str | None]()
    late = [one for one in coming if one.state_name == "Late"]
    for one in (*late, *past):
        dataset = dataset_in(one.name) or (datasets.get(one.deployment_id) if one.deployment_id else None)
        about = one.deployment_id or dataset
        if about in seen or about is None:
            continue
        seen.add(about)
        state = one.state_name or ""
        if state in _REMEDIES:
            said = f": {one.state.message}" if one.state is not None and one.state.message else "."
            name = names.get(one.deployment_id) if one.deployment_id else None
            by = f" of deployment {name}" if name else ""
            yield Trouble(dataset, f"The flow run {one.name}{by} is {state}{said}", _REMEDIES[state])
