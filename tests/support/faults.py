"""Do to runs what happens to them in years, and tell what became of each: `make faults`.

unshare -m python -m support.faults                     all of it; as root, since disks are mounted
python -m support.faults kills clocks damage=100        these kinds, of which one may be told how often

What is found is printed, and takes the place of the same rows in docs/research-log.md.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from support import killing
from support.corruption import check, kept_in
from support.faulty import FAULTS, faulty
from support.killing import Stage, Starter, run_of
from support.published import TINY
from support.servers import BUCKET, SeaweedFS, Weed, new_weed, prefect_server, seaweedfs
from support.troubled_run import clock_in, go_on, meet, outcome, release_in, told_by, unmount

from ppsyn.errors import StoreError
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "research-log.md"
BUDGET = float(rho_of(Budget.model_validate(TINY["privacy"])))
_HEAD = (
    "| what happens to a run | tried | recovered alone | recovered by a resume | refused, unspent | lost | overspent |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
_TRIES = 20
_PART = 0.15
"""Of all that a store is asked."""
_AWAY_SECONDS = 6
_KEYS = "PPSYN_FAULTS_S3"


@dataclass
class Row:
    """What became of runs that the same happened to.

    Attributes:
        what: What happened to them.
        tried: How many.
        alone: Those that ended in a release which passes its audit and was paid for once, by the command that began.
        resumed: Those that did so after they were resumed.
        refused: Those that were refused for good before another charge, and can be given up.
        overspent: Those that were charged more than they were granted, or twice for an answer.
        wrong: What was found of all others.
    """

    what: str
    tried: int = 0
    alone: int = 0
    resumed: int = 0
    refused: int = 0
    overspent: int = 0
    wrong: list[str] = field(default_factory=list[str])

    @property
    def lost(self) -> int:
        """Those that neither were published nor can be given up."""
        return self.tried - self.alone - self.resumed - self.refused

    def line(self) -> str:
        """As a row of a table."""
        numbers = (self.tried, self.alone, self.resumed, self.refused, self.lost, self.overspent)
        return f"| {self.what} | {' | '.join(map(str, numbers))} |"

    def published(self, stopped: int) -> None:
        """One ended well."""
        self.alone += not stopped
        self.resumed += bool(stopped)

    def add(self, stopped: int, ended: Mapping[str, Any]) -> None:
        """A run of `troubled_run`, and how often it was stopped."""
        self.tried += 1
        is_paid_once = ended["charged"] == ended["granted"] == BUDGET and ended["answers"] == ended["charges"]
        self.overspent += ended["charged"] > ended["granted"]
        if ended["published"] and not ended["problems"] and not ended["left"] and is_paid_once:
            self.published(stopped)
        else:
            self.wrong.append(str(ended))


def kills(_: int) -> Iterator[Row]:
    """The real command, ended by the kernel at every kind of place, then resumed."""
    row = Row("the command is killed, once at each of its steps, on a folder or a bucket")
    with _stages() as stage_at:
        for scene in (killing.UNWRITTEN, *killing.SCENES):
            story = stage_at(scene.is_s3).play(scene.point, scene.nth)
            budget = story.after.budget
            row.tried += 1
            row.overspent += budget is not None and story.after.spent > budget.total
            if budget is None and story.resumed.code == 4:
                row.refused += 1
            elif budget is not None and budget.spent == budget.total and story.resumed.code == 0 and not story.findings:
                row.published(1)
            else:
                row.wrong.append(f"{scene}: {story.resumed}, {story.findings}")
    yield row


def resumes(trials: int) -> Iterator[Row]:
    """A run that was killed is resumed three times at once."""
    row = Row("three processes resume one run at once")
    with _stages() as stage_at:
        for trial in range(trials):
            stage = stage_at(False)
            file = str(stage.write())
            point, nth = ("answer", "artifacts")[trial % 2], (7, 1)[trial % 2]
            run = run_of(stage.start("release", file, point=point, nth=nth).wait())
            jobs = [stage.start("release", file, "--resume", run) for _ in range(3)]
            codes = [job.wait(300).code for job in jobs]
            after = killing.look(stage.root, run)
            row.tried += 1
            charged = [draw.charged for draw in stage.draws()]
            is_twice = len(charged) > len(set(charged))
            row.overspent += is_twice or (after.budget is not None and after.spent > after.budget.total)
            if 0 in codes and set(codes) <= {0, 4, 6} and not is_twice and not stage.findings(run):
                row.published(1)
            else:
                row.wrong.append(f"trial {trial}: {codes}")
    yield row


def stores(seeds: int) -> Iterator[Row]:
    """An S3 server in trouble, and one that is killed."""
    told: Mapping[str, str] = {
        "slow": "the store is slow: 15% of its answers take half a second more",
        "refused": "the store says 503 to 15% of what it is asked",
        "failed after it was done": "the store does it and says 500, 15% of the time",
        "cut before": "the connection is cut before it is done, 15% of the time",
        "cut after it was done": "the connection is cut in the answer, 15% of the time",
    }
    with _folder() as home, seaweedfs(home / "weed") as server:
        for number, fault in enumerate(FAULTS):
            row = Row(told[fault])
            for seed in range(seeds):
                with faulty(server, fault, _PART, seed) as between, _folder() as table:
                    stopped, _ = _ended(release_in(table, _in_bucket(between.endpoint, f"{number}-{seed}", server)))
                    row.add(
                        stopped, outcome(release_in(table, _in_bucket(server.endpoint, f"{number}-{seed}", server)))
                    )
            yield row
    yield from _killed_store()


def _killed_store() -> Iterator[Row]:
    row = Row("the store is killed in a run, and is back six seconds later")
    for question in (1, 6, 12):
        weed, done = new_weed(), threading.Event()
        with _folder() as home, ExitStack() as first, ThreadPoolExecutor() as others:
            server = first.enter_context(seaweedfs(home / "weed", weed))
            place = _in_bucket(server.endpoint, "killed", server)

            def come_back(home: Path = home, weed: Weed = weed, done: threading.Event = done) -> None:
                time.sleep(_AWAY_SECONDS)
                with seaweedfs(home / "weed", weed):  # the kernel ends it with the thread that began it
                    done.wait(600)

            def before(asked: int, question: int = question, stack: ExitStack = first, pid: int = server.pid) -> None:
                if asked == question:
                    os.killpg(pid, signal.SIGKILL)
                    stack.close()
                    others.submit(come_back)

            try:
                row.add(*_ended(release_in(home, place), before))
            finally:
                done.set()
    yield row


def disks(_: int) -> Iterator[Row]:
    """A disk that is full and then larger, and one that is read-only and then not."""
    sizes, questions = (20, 40, 60, 80, 120, 160, 200, 240, 300), (0, 3, 7)
    full = Row("the disk is full, and is enlarged")
    read_only = Row("the disk is read-only in the middle of it, and then not any more")
    for row, kind, numbers in ((full, "full", sizes), (read_only, "read-only", questions)):
        for number in numbers:
            with _folder() as home:
                told = meet(kind, home, number)
                row.add(told["refused"] is not None, told["ended"])
                unmount(home)
        yield row


def clocks(_: int) -> Iterator[Row]:
    """The clock of a process jumps in a run, to and fro, or until its end."""
    row = Row("the clock jumps by 61 s, an hour, a day or ten years, forward or back, and back again or not")
    with _folder() as home:
        for told in told_by("clocks", str(home), settings=clock_in(home)):
            row.add(0, told["ended"])
    yield row


def damage(seeds: int) -> Iterator[Row]:
    """One or two objects of a run are damaged, swapped, deleted or joined by others."""
    row = Row(
        "one or two objects of an open or published run are damaged, cut, swapped, doubled or deleted, or others join"
    )
    with _folder() as home:
        (home / "kept").mkdir()
        kept = kept_in(home / "kept")
        for seed in range(1000, 1000 + seeds):
            (home / str(seed)).mkdir()
            row.tried += 1
            try:
                became = check(kept, home / str(seed), seed)
            except AssertionError as error:
                row.wrong.append(str(error))
            else:
                row.resumed += became == "published"
                row.refused += became == "refused"
            shutil.rmtree(home / str(seed))
    yield row


def _ended(config: ReleaseConfig, before: Callable[[int], None] | None = None) -> tuple[int, Mapping[str, Any]]:
    """How often a release was stopped, and how it stands once it was not."""
    for stopped in range(_TRIES):
        try:
            go_on(config, before=before)
        except StoreError:
            continue
        return stopped, outcome(config)
    return _TRIES, outcome(config)


def _in_bucket(endpoint: str, folder: str, server: SeaweedFS) -> Location:
    os.environ |= {f"{_KEYS}_ACCESS_KEY_ID": server.access_key, f"{_KEYS}_SECRET_ACCESS_KEY": server.secret_key}
    return Location(url=f"s3://{BUCKET}/{folder}", endpoint=endpoint, credentials=_KEYS)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def _stages() -> Generator[Callable[[bool], Stage]]:
    """What plays stories on a folder or in a bucket, each time another."""
    with ExitStack() as stack:
        home = stack.enter_context(_folder())
        prefect = stack.enter_context(prefect_server(home / "prefect"))
        bucket = stack.enter_context(seaweedfs(home / "weed"))
        os.environ |= {"PREFECT_API_URL": prefect.api_url, "PREFECT_HOME": f"{home}/home", "DO_NOT_TRACK": "1"}
        names = count()

        def make(is_s3: bool) -> Stage:
            name = f"stage-{next(names)}"
            root = _in_bucket(bucket.endpoint, name, bucket) if is_s3 else Location(url=str(home / name / "out"))
            (home / name).mkdir()
            return Stage(starter, home / name, root)

        _in_bucket(bucket.endpoint, "", bucket)  # sets the keys, which what is started inherits
        starter = Starter({})
        stack.callback(starter.close)
        yield make


KINDS: Mapping[str, tuple[Callable[[int], Iterator[Row]], int]] = {
    "kills": (kills, 1), "resumes": (resumes, 8), "stores": (stores, 5), "disks": (disks, 1), "clocks": (clocks, 1),
    "damage": (damage, 400),
}  # fmt: skip
"""How each is tried, and how often by itself, where that can be told."""


def main(words: Sequence[str]) -> int:
    """Try the kinds; 0 if no run was lost and none overspent."""
    is_well = True
    for word in words or KINDS:
        name, _, times = word.partition("=")
        attempt, usual = KINDS[name]
        for row in attempt(int(times or usual)):
            sys.stdout.write("\n  WRONG: ".join([row.line(), *row.wrong]) + "\n")
            sys.stdout.flush()
            _write(row)
            is_well = is_well and not (row.lost or row.overspent or row.wrong)
    return 0 if is_well else 1


def _write(row: Row) -> None:
    """Put a row in its place of the page's table, or below the others."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = last = lines.index(_HEAD[0]) + len(_HEAD)
    while lines[last].startswith("|"):
        last += 1
    rows = {line.split("|")[1].strip(): line for line in lines[first:last]}
    rows[row.what] = row.line()
    PAGE.write_text("\n".join([*lines[:first], *rows.values(), *lines[last:], ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
