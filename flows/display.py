"""What a person sees of a release: progress on standard error, and at the end what was made and spent."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ppsyn.dp.account import StoredAccount
from ppsyn.errors import InvariantError, StoreError
from ppsyn.progress import describe
from ppsyn.releases.opened import read_manifest, released
from ppsyn.state import State
from ppsyn.storage import open_store
from schemas.manifest import Manifest
from schemas.run import RunRef


class Display:
    """A bar on a terminal, a line a round elsewhere, nothing if quiet."""

    def __init__(self, *, is_quiet: bool) -> None:
        """Show on standard error."""
        self.ref: RunRef | None = None
        self._is_quiet = is_quiet
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}% of the budget"))
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console, disable=not self._is_live)
        self._bar: TaskID | None = None
        self._rounds = -1

    @property
    def run(self) -> RunRef:
        """The run that is shown."""
        if self.ref is None:
            raise InvariantError("No run was opened.")
        return self.ref

    @property
    def _is_live(self) -> bool:
        return sys.stderr.isatty() and not self._is_quiet

    def __enter__(self) -> Self:
        """Begin to show."""
        self._progress.start()
        self._bar = self._progress.add_task("checking the release", total=1.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._progress.stop()

    def opened(self, ref: RunRef) -> None:
        """Say under which name the run can be resumed."""
        self.ref = ref
        self.entered(f"run {ref.run}")

    def entered(self, stage: str) -> None:
        """Say what is done now."""
        self._say(stage, None)

    def advanced(self, state: State) -> None:
        """Show what is spent; off a terminal, once a round."""
        if self._is_live:
            self._say(describe(state), float(state.spent / state.plan.rho))
        elif state.stage != "one-way" and state.chosen is None and len(state.rounds) != self._rounds:
            self._rounds = len(state.rounds)
            done = (
                f"round {self._rounds}: {' x '.join(state.rounds[-1].clique)}" if state.rounds else "one-way marginals"
            )
            self._say(f"{done}, {float(state.spent / state.plan.rho):.0%} of the budget spent", None)

    def _say(self, text: str, share: float | None) -> None:
        if self._is_live and self._bar is not None:
            self._progress.update(self._bar, description=text, completed=share)
        elif not self._is_quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished release."""

    url: str
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
        folder = _seen_from_here(self.url)
        return "\n".join(
            (
                f"released  {folder}",
                f"table     {folder}/synthetic.parquet: {manifest.rows} rows, {len(manifest.table.columns)} columns",
                f"report    {folder}/report.html",
                f"spent     {cost}, protecting {guarantee.unit}",
                f"account   {manifest.dataset}: rho {self.account_left:.6g} left of {self.account_cap:.6g}",
                f"audit     ppsyn audit {folder}",
            )
        )


def _seen_from_here(url: str) -> str:
    """A path below the current folder, told the short way."""
    path = Path(url)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else url


def summary(url: str, ref: RunRef) -> Summary:
    """What a release has made and spent."""
    book = StoredAccount(open_store(ref.root), ref.dataset).book
    return Summary(url, read_manifest(released(ref))[0], float(book.left), float(book.cap))


def has_begun(ref: RunRef) -> bool:
    """Whether there is a run that can be resumed."""
    try:
        book = StoredAccount(open_store(ref.root), ref.dataset).find()
    except StoreError:
        return True  # nobody can tell now; what the command was about to say matters more
    return book is not None and ref.run in book.parts and book.parts[ref.run].is_open
