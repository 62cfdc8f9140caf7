"""What a person sees of a release: progress on standard error, and at the end what was made and spent."""

import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import RawIOBase
from pathlib import Path
from types import TracebackType
from typing import Self

from ppsyn.errors import InvariantError, PPSynError, StoreError
from ppsyn.mechanisms.base import State
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.reader import read_manifest, released
from ppsyn.reports.progress import Terminal, describe_last_round, is_live_terminal
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store


class Display:
    """A live display on a terminal, a line a round elsewhere and in a log file; on the screen nothing if quiet."""

    def __init__(self, *, is_quiet: bool, log: RawIOBase | None = None) -> None:
        """Show on standard error, and add lines to `log`."""
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
            "account": {"left": self.account_left, "cap": self.account_cap},
        }

    def as_text(self) -> str:
        """For a person."""
        manifest, guarantee = self.manifest, self.manifest.guarantee
        cost = f"rho {float(guarantee.rho):.6g}"
        if guarantee.epsilon is not None:
            cost = f"epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:g} ({cost})"
        folder = seen_from_here(self.url)
        return "\n".join(
            (
                f"released  {folder}",
                f"table     {folder}/synthetic.parquet: {manifest.rows} rows, {len(manifest.table.columns)} columns",
                f"report    {folder}/report.html",
                f"spent     {cost}, protecting {guarantee.unit}",
                f"account   {manifest.dataset}: rho {self.account_left:.6g} left of {self.account_cap:.6g}",
                f"audit     {audit_command(folder, self.location)}",
            )
        )


def audit_command(release: str, location: Location) -> str:
    """The command that audits a release, with how its bucket is reached, if it is in one."""
    usual = Location(url=location.url)
    told = [(name, getattr(location, name)) for name in ("endpoint", "region", "credentials")]
    options = (part for name, value in told if value != getattr(usual, name) for part in (f"--{name}", value))
    return shlex.join(["ppsyn", "audit", release, *options])


def seen_from_here(url: str) -> str:
    """A path below the current folder, told the short way."""
    path = Path(url)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else url


def summary(url: str, ref: RunRef) -> Summary:
    """What a release has made and spent."""
    state = StoredAccount(open_store(ref.root), ref.dataset).state
    return Summary(url, ref.releases, read_manifest(released(ref))[0], float(state.left), float(state.cap))


def has_begun(ref: RunRef) -> bool:
    """Whether there is a run that can be resumed."""
    try:
        state = StoredAccount(open_store(ref.root), ref.dataset).find()
    except StoreError:
        return True  # nobody can tell now; what the command was about to say matters more
    return state is not None and ref.run in state.budgets and state.budgets[ref.run].is_open
