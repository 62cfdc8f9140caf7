"""Do to runs what happens to them in years, and tell what became of each: `make faults`.

python -m support.faults               all of it, and write the table to docs/results/faults.md
python -m support.faults kills clocks  only these; no page is written

Kinds: kills, stores, disks, clocks, damage, resumes. As root, since disks are mounted; clocks take libfaketime.
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
from support.troubled_run import JUMPS, clock_in, go_on, outcome, release_in, told_by

from ppsyn.errors import StoreError
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "faults.md"
SEEDS = 5
DAMAGED = 400
RESUMED_AT_ONCE = 8
BUDGET = float(rho_of(Budget.model_validate(TINY["privacy"])))
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
        stopped: How often a command ended and was given again.
        published: Those that ended in a release that passes its audit, paid for once.
        refused: Those that were refused for good before a charge, and whose budget came back.
        overspent: Those that were charged more than they were granted.
    """

    what: str
    tried: int = 0
    stopped: int = 0
    published: int = 0
    refused: int = 0
    overspent: int = 0
    wrong: list[str] = field(default_factory=list[str])

    @property
    def lost(self) -> int:
        """Those that neither were published nor could be given up."""
        return self.tried - self.published - self.refused

    def add(self, stopped: int, ended: Mapping[str, Any]) -> None:
        """A run of `troubled_run`, and how often it was stopped."""
        self.tried += 1
        self.stopped += stopped
        is_paid_once = ended["charged"] == ended["granted"] == BUDGET and ended["answers"] == ended["charges"]
        self.overspent += ended["charged"] > ended["granted"]
        if ended["published"] and not ended["problems"] and is_paid_once:
            self.published += 1
        else:
            self.wrong.append(f"{self.what}: {ended}")


def kills() -> Iterator[Row]:
    """The real command, ended by the kernel at every kind of place, then resumed."""
    row = Row("the command is killed, once at each of its steps, on a folder or a bucket")
    with _stages() as stage_at:
        for scene in (killing.UNWRITTEN, *killing.SCENES):
            story = stage_at(scene.is_s3).play(scene.point, scene.nth)
            part = story.after.part
            row.tried += 1
            row.stopped += 1
            row.overspent += part is not None and story.after.spent > part.total
            if part is None and story.resumed.code == 4:
                row.refused += 1
            elif part is not None and part.spent == part.total and story.resumed.code == 0 and not story.findings:
                row.published += 1
            else:
                row.wrong.append(f"{scene}: {story.resumed}, {story.findings}")
    yield row


def resumes() -> Iterator[Row]:
    """A run that was killed is resumed three times at once."""
    row = Row("three processes resume one run at once")
    with _stages() as stage_at:
        for trial in range(RESUMED_AT_ONCE):
            stage = stage_at(False)
            file = str(stage.write())
            point, nth = ("answer", "artifacts")[trial % 2], (7, 1)[trial % 2]
            run = run_of(stage.start("release", file, point=point, nth=nth).wait())
            jobs = [stage.start("release", file, "--resume", run) for _ in range(3)]
            codes = [job.wait(300).code for job in jobs]
            after = killing.look(stage.root, run)
            row.tried += 1
            row.stopped += sum(code != 0 for code in codes)
            row.overspent += after.part is not None and after.spent > after.part.total
            charged = [draw.charged for draw in stage.draws()]
            is_sound = set(codes) <= {0, 4, 6} and len(charged) == len(set(charged))
            if 0 in codes and is_sound and not stage.findings(run):
                row.published += 1
            else:
                row.wrong.append(f"three at once, trial {trial}: {codes}")
    yield row


def stores() -> Iterator[Row]:
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
            for seed in range(SEEDS):
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


def disks() -> Iterator[Row]:
    """A disk that is full and then larger, and one that is read-only and then not."""
    rows = {
        "full": Row("the disk is full, and larger when the run is resumed"),
        "read-only": Row("the disk is read-only in a run, and not any more when it is resumed"),
    }
    cases = [*(("full", size) for size in (20, 40, 60, 80, 120, 160, 200, 240, 300))]
    cases += [("read-only", asked) for asked in (0, 3, 7)]
    for kind, number in cases:
        with _folder() as home:
            told = told_by(kind, str(home), str(number), before=("unshare", "-m"))
            rows[kind].add(int(told["refused"] is not None), told["ended"])
    yield from rows.values()


def clocks() -> Iterator[Row]:
    """The clock of a process jumps by a minute to ten years in a run, to and fro, or until its end."""
    row = Row("the clock jumps by 61 s, an hour, a day or ten years, forward or back")
    for question in (3, 14):
        for jump in JUMPS:
            with _folder() as home:
                told = told_by("clock", str(home), str(question), str(jump), settings=clock_in(home))
                row.add(0, told["ended"])
    yield row


def damage() -> Iterator[Row]:
    """One or two objects of a run are damaged, swapped, deleted or joined by others."""
    row = Row("objects of a run are damaged, swapped, deleted, doubled, or joined by strays")
    with _folder() as home:
        kept = kept_in(home / "kept")
        for seed in range(1000, 1000 + DAMAGED):
            (home / str(seed)).mkdir()
            row.tried += 1
            try:
                became = check(kept, home / str(seed), seed)
            except AssertionError as error:
                row.wrong.append(str(error))
            else:
                row.published += became == "published"
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


KINDS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "kills": kills, "resumes": resumes, "stores": stores, "disks": disks, "clocks": clocks, "damage": damage,
}  # fmt: skip
_HEAD = (
    "| what happens to a run | tried | resumed | published, paid once | refused unspent | lost | overspent |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n"
)


def main(words: Sequence[str]) -> int:
    """Try the kinds; 0 if no run was lost and none overspent."""
    rows = list[Row]()
    for name in words or KINDS:
        for row in KINDS[name]():
            rows.append(row)
            sys.stdout.write(_line(row))
            sys.stdout.writelines(f"  WRONG: {one}\n" for one in row.wrong)
            sys.stdout.flush()
    if not words:
        PAGE.write_text(_HEAD + "".join(map(_line, rows)), encoding="utf-8")
    return int(any(row.lost or row.overspent or row.wrong for row in rows))


def _line(row: Row) -> str:
    numbers = (row.tried, row.stopped, row.published, row.refused, row.lost, row.overspent)
    return f"| {row.what} | {' | '.join(map(str, numbers))} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
