"""The release flow: check, set the budget aside, ingest, synthesize round by round, validate, publish."""

from contextlib import ExitStack

from prefect import flow, get_client, get_run_logger
from prefect.context import FlowRunContext

from flows.inputs import read_inputs
from ppsyn.errors import InvariantError, RunError
from ppsyn.runs.records import has_record, ref_of
from ppsyn.storage import open_store
from schemas.release import ReleaseConfig
from schemas.run import RunRef
from tasks import artifacts, cluster, counting, ingest, publish, synthesize
from tasks.runs import watchers


@flow(name="release", persist_result=False, log_prints=False)
def release(file: str, settings: tuple[str, ...] = (), resume: str | None = None) -> str:
    """Release a differentially private synthetic table; returns its address.

    A flow run that Prefect retries goes on with the run it began.

    Args:
        file: The release file.
        settings: Fields of it to change, as `field.field=value`.
        resume: The run to go on with.
    """
    config, table = read_inputs(file, settings)
    ref = _named(config, resume)
    ingest.check_inputs(ref, config, table)
    ingest.open_account(ref, config, table)
    synthesize.restore(ref)
    if not publish.is_published(ref):
        _enter("reading the table")
        ingest.ingest(ref)
        with ExitStack() as workers:
            if synthesize.stage(ref) != "done":
                runner = workers.enter_context(cluster.opened(ref.runtime))
                workers.enter_context(counting.spread_over(ref, runner))
                _enter("counting marginals")
                synthesize.count_marginals(ref)
            _synthesize(ref)
        _enter("generating rows")
        publish.generate(ref)
        _enter("checking rows")
        publish.validate(ref)
        _enter("writing the release")
        publish.write_artifacts(ref)
    url = publish.publish(ref)
    artifacts.show_release(ref, url)
    return url


def _named(config: ReleaseConfig, resume: str | None) -> RunRef:
    """The run to go on with, or a new one that bears the flow run's name, so that a retry finds it again."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise InvariantError("A release was started outside its flow.")
    began = context.flow_run.created or context.flow_run.expected_start_time
    if began is None:
        raise InvariantError("A flow run without a time of its own.")
    ref = ref_of(config, resume or f"{began:%Y%m%d-%H%M%S}-{context.flow_run.id.hex[-8:]}")
    if resume is not None and not has_record(open_store(ref.root), resume):
        raise RunError(f"There is no run {resume} in {ref.root.url}.")
    with get_client(sync_client=True) as client:
        client.update_flow_run(context.flow_run.id, name=f"{ref.dataset} {ref.run}")
    for watcher in watchers():
        watcher.opened(ref)
    return ref


def _synthesize(ref: RunRef) -> None:
    """One-way marginals, then rounds, until the budget is used."""
    logger, bar = get_run_logger(), artifacts.ProgressBar(ref)
    synthesize.measure_one_way(ref)
    while (stage := synthesize.stage(ref)) != "done":
        number = synthesize.round_number(ref)
        if stage == "select":
            synthesize.select(ref, number)
        synthesize.measure(ref, number)
        synthesize.fit(ref, number)
        synthesize.checkpoint(ref, number)
        bar.move()
        logger.info(synthesize.describe(ref))
    artifacts.show_rounds(ref)


def _enter(stage: str) -> None:
    for watcher in watchers():
        watcher.entered(stage)
