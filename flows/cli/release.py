"""The command that releases."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from io import RawIOBase
from pathlib import Path

import click

from ppsyn.flows.cli.locations import FilePath
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json
from ppsyn.flows.ephemeral_server import prefect_api


@click.command()
@click.argument("file", type=FilePath())
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: privacy.epsilon=0.5")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--new", is_flag=True, help="Begin a new run, even if one of the same inputs is unfinished.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--log", type=FilePath(Path), help="A file to add a plain line a round to.")
@JSON_OPTION
@handle_errors
def release(
    file: str,
    *,
    settings: tuple[str, ...],
    resume: str | None,
    new: bool,
    quiet: bool,
    log: Path | None,
    as_json: bool,
) -> None:
    """Release a synthetic table as FILE says.

    FILE is validated as a whole before anything starts. Progress goes to standard error: on a terminal a
    bar, elsewhere a line a round. Without a Prefect server (PREFECT_API_URL) one is started for as long
    as the release takes. A run of the same inputs that did not end, and that no process works on, is gone
    on with instead of paying for another.

    On a terminal, columns of which most values would be lost are named before anything is spent. That is
    private: nothing but the terminal is told, and nothing else depends on it.

    \b
    Examples:
      ppsyn release adult.yaml
      ppsyn release adult.yaml --set privacy.epsilon=0.5 --set stores.root=s3://bucket/ppsyn
      ppsyn release adult.yaml --quiet --log adult.log
      ppsyn release adult.yaml --resume 20260102-030405-9f8e7d6c
    """
    from ppsyn.flows.preflight import prepare, read_inputs

    config, table = read_inputs(file, settings)

    def begin() -> None:
        if prepare(config, table, resume=resume, is_new=new):
            from ppsyn.flows.cli.schema_check_view import warn

            warn(config.source, table)

    with _opened(log) as lines, prefect_api(meanwhile=begin):
        from prefect.exceptions import TerminationSignal

        from ppsyn.errors import ResumeRefusedError
        from ppsyn.flows.cli.release_view import Display, has_begun, summary
        from ppsyn.flows.release import release as flow
        from ppsyn.tasks.run_registry import watched_by
        from ppsyn.tasks.step import signal_in

        display = Display(is_quiet=quiet, log=lines)
        try:
            with display, watched_by(display):
                url = flow(str(Path(file).resolve()), settings=settings, resume=resume, new=new)
                display.note(f"published {url}")
        except (Exception, KeyboardInterrupt, TerminationSignal) as error:
            if not isinstance(error, ResumeRefusedError) and display.ref is not None and has_begun(display.ref):
                _say_how_to_resume(file, settings, display.ref.run)
            if signal_in(error):
                raise KeyboardInterrupt from None
            raise
        facts = summary(url, display.run)
    if as_json:
        print_json(facts.as_json())
    else:
        click.echo(facts.as_text())


@contextmanager
def _opened(log: Path | None) -> Generator[RawIOBase | None]:
    """The log file, to add lines to; without a buffer, so that a full disk is no matter when it is closed."""
    from ppsyn.errors import StoreError, translated

    with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {log}: {error.strerror}."):
        file = None if log is None else log.open("ab", buffering=0)
    with file or nullcontext():
        yield file


def _say_how_to_resume(file: str, settings: tuple[str, ...], run: str) -> None:
    changed = (part for setting in settings for part in ("--set", setting))
    command = shlex.join(["ppsyn", "release", file, *changed, "--resume", run])
    click.echo(f"What was paid for is kept. To go on: {command}", err=True)
