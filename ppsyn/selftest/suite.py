"""All cases, in several processes, and what is told of them."""

import multiprocessing
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ppsyn.errors import ConfigError, InvariantError, PPSynError, translated
from ppsyn.selftest.attacks import Batch, Finding, Seen, Way, compare_folders, judge, see
from ppsyn.selftest.cases import CASES, Case
from ppsyn.worker_process import prepare

_BATCH = 50
_TWINS = 3
_TABLES_SHARE = 4
"""Of one release in so many the synthetic table is made and attacked, too."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many releases to make, a side.

    Attributes:
        runs: Whose answers are attacked; a case may need several times as many.
        folders: That go on to a published folder, besides.
        jobs: Processes at a time.
        seed: Of the synthetic rows; the noise has none.
    """

    runs: int
    folders: int
    jobs: int = 2
    seed: int = 0


DEFAULT, THOROUGH = Effort(runs=400, folders=30), Effort(runs=12_000, folders=200)

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")


class _Map(Protocol):
    """As `map`, here or in other processes."""

    def __call__(self, function: Callable[[_Task], _Found], tasks: Sequence[_Task], /) -> Iterator[_Found]:
        """What the function makes of each, in order."""
        ...


def check_cases(names: Sequence[str]) -> list[Case]:
    """The cases of these names; all of them if there is none.

    Raises:
        ConfigError: If there is no such case.
    """
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no case {name!r}. There are {', '.join(known)}.")
    return [case for case in CASES if not names or case.name in names]


def audit(cases: Sequence[Case], effort: Effort, together: int = len(CASES)) -> Iterator[Finding]:
    """Attack the cases, one after another. A verdict holds for so many cases together as `together` says."""
    with _workers(effort.jobs) as do:
        for case in cases:
            batches = list(_batches(case, effort))
            sides = {(is_published, side): Seen() for is_published in (False, True) for side in (False, True)}
            for batch, seen in zip(batches, do(_see, batches), strict=True):
                sides[batch.way == "folder", batch.has_canary] += seen
            seeds = range(effort.seed, effort.seed + (0 if case.quality else _TWINS))
            leaking_files = {
                name for names in do(_compare_folders, [(case.name, seed) for seed in seeds]) for name in names
            }
            plain, published = ([sides[which, side] for side in (False, True)] for which in (False, True))
            yield judge(case, plain, published, sorted(leaking_files), together)


def _batches(case: Case, effort: Effort) -> Iterator[Batch]:
    runs = effort.runs * case.times
    tables = runs // _TABLES_SHARE
    plain: dict[Way, int] = {"stores": runs} if case.needs_stores else {"table": tables, "loop": runs - tables}
    counts: dict[Way, int] = {"folder": effort.folders, **plain}
    for way, count in counts.items():
        for first in range(0, count, _BATCH):
            for side in (False, True):
                yield Batch(case.name, way, side, first, min(_BATCH, count - first), effort.seed)


@contextmanager
def _workers(jobs: int) -> Generator[_Map]:
    """One job is done here, more in processes of their own."""
    if jobs == 1:
        yield map
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), prepare)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _see(batch: Batch) -> Seen:
    with _travelling():
        return see(batch)


def _compare_folders(task: tuple[str, int]) -> list[str]:
    with _travelling():
        return compare_folders(*task)


def _travelling() -> AbstractContextManager[None]:
    """Errors with facts of their own do not arrive from another process; what they say does."""
    return translated(PPSynError, to=InvariantError, message=str)
