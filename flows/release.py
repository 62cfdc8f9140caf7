"""The release flow: check, reserve the budget, ingest, synthesize round by round, validate, publish."""

from contextlib import ExitStack

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from ppsyn.errors import InvariantError, PPSynError, RunError
from ppsyn.flows.preflight import read_inputs
from ppsyn.flows.run_choice import choose
from ppsyn.runs.heartbeat import beating
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store
from ppsyn.tasks import artifacts, dask
from ppsyn.tasks import release as steps
from ppsyn.tasks.run_registry import failed_state, tell, tell_errors_in_a_sentence, watchers

_MOST_STARTS = 10
"""Of one flow run, by whoever resumes it: one that dies each time does not do so for ever."""


@flow(name="release", persist_result=False, log_prints=False)
def release(file: str, settings: tuple[str, ...] = (), resume: str | None = None, new: bool = False) -> str:
    """Release a differentially private synthetic table; returns its address.

    A flow run that starts again goes on with the run it began. Of the runs that began with the same inputs, one that
    is unfinished is gone on with before a new one is paid for.

    Args:
        file: The release file.
        settings: Fields of it to change, as `field.field=value`.
        resume: The run to go on with.
        new: Begin a new run, even if one of the same inputs is unfinished.
    """
    tell_errors_in_a_sentence()
    flow_run = _flow_run()
    try:
        if flow_run.run_count > _MOST_STARTS:
            raise RunError(f"This was started {_MOST_STARTS} times and did not end; see why, and resume it by hand.")
        config, table = read_inputs(file, settings)
        ref = choose(flow_run, config, table, resume, is_new=new)
        for watcher in watchers():
            watcher.opened(ref)
        return _release(ref, config, table)
    except InvariantError:
        raise
    except PPSynError as error:
        return failed_state(error)  # pyright: ignore[reportReturnType]  # Prefect takes it for the state, and raises the error


def _flow_run() -> FlowRun:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise InvariantError("A release was started outside its flow.")
    return context.flow_run


def _release(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> str:
    steps.check_inputs(ref, config, table)
    steps.open_account(ref, config, table)
    with beating(open_store(ref.root), ref.run):
        steps.restore(ref)
        if not steps.is_published(ref):
            tell("reading the table")
            steps.ingest(ref)
            with ExitStack() as workers:
                if steps.stage(ref) != "done":
                    runner = workers.enter_context(dask.start_workers(ref.runtime))
                    workers.enter_context(dask.count_on(ref, runner))
                    tell("counting marginals")
                    steps.count_marginals(ref)
                _synthesize(ref)
            tell("generating rows")
            steps.generate(ref)
            tell("checking rows")
            steps.validate(ref)
            tell("writing the release")
            steps.write_artifacts(ref)
        url = steps.publish(ref)
    artifacts.show_release(ref, url)
    artifacts.warn_if_short(ref)
    get_run_logger().info(f"published {url}")
    return url


def _synthesize(ref: RunRef) -> None:
    """One-way marginals, then rounds, until the budget is used."""
    logger, bar = get_run_logger(), artifacts.ProgressBar(ref)
    steps.measure_one_way(ref)
    while (stage := steps.stage(ref)) != "done":
        number = steps.round_number(ref)
        if stage == "select":
            steps.select(ref, number)
        steps.measure(ref, number)
        steps.fit(ref, number)
        steps.checkpoint(ref, number)
        bar.move()
        logger.info(steps.describe(ref))
    artifacts.show_rounds(ref)
