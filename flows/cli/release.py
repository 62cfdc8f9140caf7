"""Making a release: `ppsyn release`."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from ppsyn.errors import InvariantError, PPSynError, ResumeRefusedError, StoreError, translated
from ppsyn.flows.cli.locations import FilePath, short_path
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json
from ppsyn.flows.ephemeral_server import prefect_api

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from io import RawIOBase
    from types import TracebackType

    from ppsyn.mechanisms.base import State
    from ppsyn.schemas.locations import Location
    from ppsyn.schemas.manifest import Manifest
    from ppsyn.schemas.run import RunRef


@click.command()
@click.argument("file", type=FilePath())
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: privacy.epsilon=0.5")
@click.option("--resume", metavar="RUN", help="Resume a run that was interrupted.")
@click.option("--new", is_flag=True, help="Start a new run, even if one with the same inputs is unfinished.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--log", type=FilePath(Path), help="A file to which a line for each round is added.")
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
    """Release a synthetic table from FILE, a release file.

    FILE is validated as a whole before anything starts. Progress is printed to standard error: a bar on a terminal,
    elsewhere a line for each round. If no Prefect server is configured (PREFECT_API_URL), one runs for as long as the
    release takes. An unfinished run with the same inputs, which no process works on, is resumed before a new one is
    paid for.

    On a terminal, columns that would lose most of their values are named before anything is spent. This is private:
    it is printed to the terminal alone, and nothing else depends on it.

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
            from ppsyn.flows.cli.schema import warn_of_lost_columns

            warn_of_lost_columns(config.source, table)

    with _open_log(log) as lines, prefect_api(meanwhile=begin):
        from prefect.exceptions import TerminationSignal

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
                _print_resume_command(file, settings, display.ref.run)
            if signal_in(error):
                raise KeyboardInterrupt from None
            raise
        summary = summarize(url, display.run)
    if as_json:
        print_json(summary.as_json())
    else:
        click.echo(summary.as_text())


@contextmanager
def _open_log(log: Path | None) -> Generator[RawIOBase | None]:
    """The log file, to add lines to; without a buffer, so that a full disk is no matter when it is closed."""
    with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {log}: {error.strerror}."):
        file = None if log is None else log.open("ab", buffering=0)
    with file or nullcontext():
        yield file


def _print_resume_command(file: str, settings: tuple[str, ...], run: str) -> None:
    changed = (part for setting in settings for part in ("--set", setting))
    command = shlex.join(["ppsyn", "release", file, *changed, "--resume", run])
    click.echo(f"Charges and answers so far are kept. To resume: {command}", err=True)


class Display:
    """Shows a run live on a terminal; elsewhere and in a log file by a line for each round. If quiet, in the log."""

    def __init__(self, *, is_quiet: bool, log: RawIOBase | None = None) -> None:
        """Show on standard error, and add lines to `log`."""
        from ppsyn.reports.terminal import Terminal, is_live_terminal

        self.ref: RunRef | None = None
        self._terminal = Terminal() if is_live_terminal() and not is_quiet else None
        self._is_quiet, self._rounds = is_quiet, -1
        self._log = log

    @property
    def run(self) -> RunRef:
        """The run that is shown."""
        if self.ref is None:
            raise InvariantError("No run was opened.")
        return self.ref

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._terminal is not None:
            self._terminal.start()
        self.entered("checking the release")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was, and how it ended in the log."""
        if self._terminal is not None:
            self._terminal.stop()
        if error is not None:
            self.note(f"stopped: {error}" if isinstance(error, PPSynError) else f"stopped: {type(error).__name__}")

    def opened(self, ref: RunRef) -> None:
        """Say under which name the run can be resumed."""
        self.ref = ref
        self.entered(f"run {ref.run}")

    def entered(self, stage: str) -> None:
        """Say what is done now."""
        if self._terminal is not None:
            self._terminal.say(stage)
        self._line(stage)

    def advanced(self, state: State) -> None:
        """Show what is spent; off a terminal and in the log, once a round."""
        if self._terminal is not None:
            self._terminal.advance(state)
        if state.stage != "one-way" and state.chosen is None and len(state.rounds) != self._rounds:
            self._rounds = len(state.rounds)
            from ppsyn.reports.progress import describe_last_round

            self._line(describe_last_round(state))

    def _line(self, text: str) -> None:
        if self._terminal is None and not self._is_quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        self.note(text)

    def note(self, text: str) -> None:
        """Add a line to the log; a disk that is full does not stop a release."""
        if self._log is not None:
            with suppress(OSError):
                self._log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n".encode())


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished release."""

    url: str
    location: Location
    manifest: Manifest
    account_left: float
    account_cap: float

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        guarantee = self.manifest.guarantee
        return {
            "dataset": self.manifest.dataset,
            "run": self.manifest.run,
            "release": self.url,
            "rows": self.manifest.rows,
            "rho": float(guarantee.rho),
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "learned_from": [release.run for release in self.manifest.learned_from],
            "left_out": list(self.manifest.left_out),
            "together": self.manifest.together.model_dump(mode="json"),
            "account": {"left": self.account_left, "cap": self.account_cap},
        }

    def as_text(self) -> str:
        """For a person."""
        manifest, guarantee = self.manifest, self.manifest.guarantee
        folder = short_path(self.url)
        return "\n".join(
            (
                f"released  {folder}",
                f"table     {folder}/synthetic.parquet: {manifest.rows} rows, {len(manifest.table.columns)} columns",
                f"report    {folder}/report.html",
                f"spent     {guarantee.cost}, protecting {guarantee.unit}",
                *self._learned(),
                f"account   {manifest.dataset}: rho {self.account_left:.6g} left of {self.account_cap:.6g}",
                f"audit     {audit_command(folder, self.location)}",
            )
        )

    def _learned(self) -> Iterator[str]:
        manifest = self.manifest
        if manifest.learned_from:
            yield f"learned   from {len(manifest.learned_from)} earlier releases, at no further cost"
            yield f"together  {manifest.together.cost}, with the {len(manifest.rests_on)} releases that it rests on"
        yield from (f"left out  {sentence}" for sentence in manifest.left_out)


def audit_command(release: str, location: Location) -> str:
    """The command that audits a release, with the options that reach its bucket, if it is in one."""
    from ppsyn.schemas.locations import Location

    usual = Location(url=location.url)
    given = [(name, getattr(location, name)) for name in ("endpoint", "region", "credentials")]
    options = (part for name, value in given if value != getattr(usual, name) for part in (f"--{name}", value))
    return shlex.join(["ppsyn", "audit", release, *options])


def summarize(url: str, ref: RunRef) -> Summary:
    """What a release has made and spent."""
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.releases.reader import published_store, read_manifest
    from ppsyn.storage import open_store

    state = StoredAccount(open_store(ref.root), ref.dataset).state
    return Summary(url, ref.releases, read_manifest(published_store(ref))[0], float(state.left), float(state.cap))


def has_begun(ref: RunRef) -> bool:
    """Whether there is a run that can be resumed."""
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.storage import open_store

    try:
        state = StoredAccount(open_store(ref.root), ref.dataset).find()
    except StoreError:
        return True  # nobody can tell now; what the command was about to say matters more
    return state is not None and ref.run in state.budgets and state.budgets[ref.run].is_open
