"""The real command, ended by the kernel at a chosen place: a launcher, and the story of a run that dies and is resumed.

    python -m support.killing POINT N -- release FILE ...    the command, ended at the N-th arrival at POINT
    python -m support.killing table                          every story, as a table

The launcher wraps a function of the program and then calls its command line; the program has no hooks. It notes every
draw of noise in the file that PPSYN_DRAWS names: process, step, step that was charged, mechanism.
"""

import atexit
import functools
import gc
import importlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import NoReturn

import pandas as pd
from support.small_release import DATASET, SCHEMA, table_text, write_release

from ppsyn import synthesize
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.ledger import Ledger
from ppsyn.privacy.requests import Lost
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import FILES, MANIFEST, SEAL, release_folder, staging_folder
from ppsyn.releases.reader import file_digest, read_manifest
from ppsyn.releases.validation import validate
from ppsyn.runs.checkpoints import Answers
from ppsyn.runs.record import private_folder
from ppsyn.schemas.locations import Location
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store

DRAWS = "PPSYN_DRAWS"
PPSYN = Path(sys.executable).parent / "ppsyn"
_OUT_OF_TIME = 124
_TORN_BYTES = 100
"""Of a file, that the kernel lets a process write before it ends it."""


def die() -> None:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)


def tear() -> None:
    """Be ended by the kernel in the middle of the next file that is written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (_TORN_BYTES, resource.RLIM_INFINITY))


def stop() -> None:
    """Stand still until someone says go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def fail() -> None:
    """Meet an error that nobody foresaw."""
    raise OSError("The disk is on fire.")


def interrupt() -> None:
    """Be told Ctrl-C."""
    raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the program: a function, and whether before it is called or after it has returned."""

    function: str
    is_after: bool = False
    act: Callable[[], None] = die


POINTS: Mapping[str, Point] = {
    "record": Point("ppsyn.runs.preflight:_write_record"),
    "tried": Point("ppsyn.storage.store:Store.delete"),
    "reserve": Point("ppsyn.privacy.account:StoredAccount.reserve"),
    "fragment": Point("ppsyn.data.ingest:write_codes"),
    "fragment-torn": Point("ppsyn.data.ingest:write_codes", act=tear),
    "charge": Point("ppsyn.privacy.account:StoredAccount.charge"),
    "charge-torn": Point("ppsyn.privacy.account:StoredAccount.charge", act=tear),
    "measure": Point("ppsyn.privacy.curator:add_discrete_gaussian"),
    "select": Point("ppsyn.privacy.curator:draw_noisy_max"),
    "answer": Point("ppsyn.runs.checkpoints:Answers.keep"),
    "answer-torn": Point("ppsyn.runs.checkpoints:Answers.keep", act=tear),
    "answer-kept": Point("ppsyn.runs.checkpoints:Answers.keep", is_after=True),
    "answer-stop": Point("ppsyn.runs.checkpoints:Answers.keep", act=stop),
    "answer-fail": Point("ppsyn.runs.checkpoints:Answers.keep", act=fail),
    "ask-stop": Point("ppsyn.runs.run:Run.ask", act=stop),
    "task-interrupt": Point("prefect.task_engine:_create_task_run_locally", act=interrupt),
    "fit": Point("ppsyn.model.kernel:descend"),
    "checkpoint": Point("ppsyn.runs.checkpoints:Checkpoints.save"),
    "checkpoint-torn": Point("ppsyn.runs.checkpoints:Checkpoints.save", act=tear),
    "checkpoint-kept": Point("ppsyn.runs.checkpoints:Checkpoints._steps"),
    "rows": Point("ppsyn.storage.store:_Sink.finish"),
    "rows-torn": Point("ppsyn.storage.store:_Sink.finish", act=tear),
    "validation": Point("ppsyn.releases.validation:judge"),
    "validation-stop": Point("ppsyn.releases.writer:stage_validation", act=stop),
    "artifacts": Point("ppsyn.releases.writer:pack_entries"),
    "move": Point("ppsyn.storage.store:Store.move_folder"),
    "move-stop": Point("ppsyn.storage.store:Store.move_folder", act=stop),
    "copy": Point("obstore:copy"),
    "copied": Point("obstore:copy", is_after=True),
    "copy-stop": Point("obstore:copy", act=stop),
    "close": Point("ppsyn.privacy.account:StoredAccount.close"),
    "sealed": Point("ppsyn.privacy.account:StoredAccount._seal", is_after=True),
    "closed": Point("ppsyn.privacy.account:StoredAccount.close", is_after=True),
    "latest": Point("ppsyn.releases.writer:private_folder"),
}


def wrap(function: str, wrapper: Callable[[Callable[..., object]], Callable[..., object]]) -> None:
    """Put a wrapper around `module:name` or `module:Class.name` where the program looks it up."""
    module, _, path = function.partition(":")
    owner: object = importlib.import_module(module)
    *above, name = path.split(".")
    for step in above:
        owner = getattr(owner, step)
    inner = getattr(owner, name)
    setattr(owner, name, functools.wraps(inner)(wrapper(inner)))


def arm(point: Point, nth: int) -> None:
    """Have the point's act happen at its n-th arrival."""
    arrivals = count(1)

    def wrapper(inner: Callable[..., object]) -> Callable[..., object]:
        def armed(*args: object, **kwargs: object) -> object:
            is_due = next(arrivals) == nth
            if is_due and not point.is_after:
                point.act()
            result = inner(*args, **kwargs)
            if is_due and point.is_after:
                point.act()
            return result

        return armed

    wrap(point.function, wrapper)


def note_draws(path: str) -> None:
    """Write a line for each draw, once it is made."""
    steps = {"asked": -1, "charged": -1}

    def asking(inner: Callable[..., object]) -> Callable[..., object]:
        def ask(run: object) -> object:
            steps["asked"] = getattr(run, "step")  # noqa: B009
            return inner(run)

        return ask

    def charging(inner: Callable[..., object]) -> Callable[..., object]:
        def charge(account: object, run: str, step: int, spend: object) -> object:
            result = inner(account, run, step, spend)
            steps["charged"] = step
            return result

        return charge

    def drawing(mechanism: str, inner: Callable[..., object]) -> Callable[..., object]:
        def draw(*args: object) -> object:
            result = inner(*args)
            line = f"{os.getpid()} {steps['asked']} {steps['charged']} {mechanism}\n"
            with Path(path).open("ab", buffering=0) as file:
                file.write(line.encode())
            return result

        return draw

    wrap("ppsyn.runs.run:Run.ask", asking)
    wrap("ppsyn.privacy.account:StoredAccount.charge", charging)
    for mechanism in ("add_discrete_gaussian", "draw_noisy_max"):
        wrap(f"ppsyn.privacy.curator:{mechanism}", functools.partial(drawing, mechanism))


def launch(point: str | None, nth: int, arguments: Sequence[str]) -> NoReturn:
    """Run the command line, ended at a point."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if path := os.environ.get(DRAWS):
        note_draws(path)
    if point is not None:
        arm(POINTS[point], nth)
    if arguments[0] == "retried":
        _release_with_a_retry(arguments[1])
    sys.argv = [str(PPSYN), *arguments]
    importlib.import_module("ppsyn.flows.cli.main").main()
    sys.exit(0)


def _release_with_a_retry(file: str) -> NoReturn:
    """As a deployment would run it: Prefect repeats the flow once if it fails."""
    flow = importlib.import_module("ppsyn.flows.release").release
    sys.stdout.write(f"{flow.with_options(retries=1)(file)}\n")
    sys.exit(0)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, or that it stands still: the exit code, or the signal below zero."""

    code: int
    stdout: str
    stderr: str
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A command that was started."""

    starter: "Starter"
    pid: int
    output: Path

    def wait(self, seconds: float = 120) -> Ended:
        """Wait until it ends or stands still; it is killed when the time is over."""
        told = self.starter.tell({"wait": self.pid, "seconds": seconds})
        texts = [self.output.with_suffix(f".{name}").read_text(encoding="utf-8") for name in ("out", "err")]
        return Ended(told["code"], *texts, is_stopped=told["stopped"])

    def go_on(self) -> None:
        """Let it go on after it stood still."""
        os.kill(self.pid, signal.SIGCONT)


class Starter:
    """Starts commands as processes of their own, by forking from one that has imported all they need.

    The imports take seconds and are the same for all; each command is otherwise the real one, from its arguments on.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """With these variables in the environment."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(settings),
            start_new_session=True,
        )

    def tell(self, message: Mapping[str, object]) -> dict[str, int]:
        """Ask the process that forks, and take its answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(
        self,
        folder: Path,
        settings: Mapping[str, str],
        arguments: Sequence[str],
        point: str | None = None,
        nth: int = 1,
    ) -> Job:
        """Start a command in a folder, to be ended at a point."""
        output = folder / f"{len(list(folder.glob('*.out'))):02d}"
        told = self.tell(
            {
                "arguments": arguments, "point": point, "nth": nth, "folder": str(folder), "output": str(output),
                "settings": environment(settings),
            }
        )  # fmt: skip
        return Job(self, told["pid"], output)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.wait(10)
            self._process.stdout.close()


@functools.cache
def starter_for(api_url: str) -> Starter:
    """The one of this process, for commands that use this Prefect server."""
    home = tempfile.mkdtemp(prefix="ppsyn-prefect-")
    starter = Starter({"PREFECT_API_URL": api_url, "PREFECT_HOME": home})
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    atexit.register(starter.close)
    return starter


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's, with settings; and where no bytecode may be kept beside the sources, elsewhere."""
    given = {**os.environ, **settings}
    if given.pop("PYTHONDONTWRITEBYTECODE", None):
        given.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "ppsyn-test-bytecode"))
    return given


def serve() -> None:
    """Fork a process for each line of standard input that asks for one; end with the input, and all of them."""
    running: set[int] = set()
    for name, value in importlib.import_module("ppsyn.flows.ephemeral_server").QUIET.items():
        os.environ.setdefault(name, value)
    for module in ("fastapi", "ppsyn.flows.cli.main", "ppsyn.reports.progress", "ppsyn.flows.release"):
        importlib.import_module(module)
    warm_up()
    importlib.import_module("ppsyn.code_version").code_version()  # whoever edits the sources meanwhile changes nothing
    gc.freeze()  # or each child would copy all of it to count its references
    for line in sys.stdin:
        message = json.loads(line)
        if "wait" in message:
            ended = _waited(message["wait"], message["seconds"])
            running -= set() if ended["stopped"] else {message["wait"]}
            _answer(ended)
        elif pid := os.fork():
            running.add(pid)
            _answer({"pid": pid})
        else:
            os.environ.clear()
            os.environ.update(message["settings"])
            os.chdir(message["folder"])
            for number, path in enumerate((os.devnull, f"{message['output']}.out", f"{message['output']}.err")):
                os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_CREAT | os.O_WRONLY), number)
            launch(message["point"], message["nth"], message["arguments"])
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def warm_up() -> None:
    """Have compiled code and the checks loaded, by a release of nothing in memory."""
    schema = TableSchema.model_validate(SCHEMA)
    made = synthesize(pd.read_csv(io.StringIO(table_text(20))), schema, rho=0.1, rounds=1, max_fit_steps=5)
    validate(iter([made.table]), schema)


def _answer(answer: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _waited(pid: int, seconds: float) -> dict[str, object]:
    give_up = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            return {"code": -os.WSTOPSIG(status), "stopped": True}
        if found:
            return {"code": os.waitstatus_to_exitcode(status), "stopped": False}
        if time.monotonic() > give_up:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"code": _OUT_OF_TIME, "stopped": False}
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a run dies, in words, as a point and by its number of arrivals; on a folder or in a bucket.

    Attributes:
        is_slow: Whether it differs so little from another that it may be left for later.
    """

    told: str
    point: str
    nth: int
    is_s3: bool = False
    is_slow: bool = False

    def __str__(self) -> str:
        """As an id of a test."""
        return f"{self.point}-{self.nth}-s3" if self.is_s3 else f"{self.point}-{self.nth}"


UNWRITTEN = Scene("before the record", "record", 1)
"""After which there is nothing to resume."""

SCENES = (
    Scene("while the private place is tried", "tried", 1, is_slow=True),
    Scene("while the place of releases is tried", "tried", 2, is_slow=True),
    Scene("between record and reservation", "reserve", 1, is_slow=True),
    Scene("ingest: before the second fragment", "fragment", 2, is_slow=True),
    Scene("ingest: in the file of the second fragment", "fragment-torn", 2, is_slow=True),
    Scene("before the first charge", "charge", 1, is_slow=True),
    Scene("before the charge of a fine one-way", "charge", 5, is_slow=True),
    Scene("before the charge of a selection", "charge", 6, is_slow=True),
    Scene("in the file of a charge", "charge-torn", 7),
    Scene("charged, not drawn: one-way", "measure", 2, is_slow=True),
    Scene("charged, not drawn: selection", "select", 1, is_slow=True),
    Scene("charged, not drawn: measurement of round 2", "measure", 7),
    Scene("drawn, not kept: fine one-way", "answer", 5),
    Scene("drawn, not kept: selection of round 2", "answer", 8, is_slow=True),
    Scene("in the file of an answer", "answer-torn", 7, is_slow=True),
    Scene("kept, not absorbed: selection", "answer-kept", 6, is_slow=True),
    Scene("kept, not absorbed: measurement", "answer-kept", 7, is_slow=True),
    Scene("in the fit after coarse one-way", "fit", 1, is_slow=True),
    Scene("in the fit of round 1", "fit", 3, is_slow=True),
    Scene("before the first checkpoint", "checkpoint", 1, is_slow=True),
    Scene("in the file of the second checkpoint", "checkpoint-torn", 2),
    Scene("third checkpoint written, first not removed", "checkpoint-kept", 4, is_slow=True),
    Scene("rows made, file not closed", "rows", 1, is_slow=True),
    Scene("in the file of the rows", "rows-torn", 1, is_slow=True),
    Scene("during validation", "validation", 2, is_slow=True),
    Scene("while artifacts are staged", "artifacts", 1, is_slow=True),
    Scene("before the folder is moved", "move", 1, is_slow=True),
    Scene("moved, account not closed", "close", 1),
    Scene("charges sealed, account not closed", "sealed", 1, is_slow=True),
    Scene("account closed, nothing after it", "closed", 1, is_slow=True),
    Scene("right before the private copy is removed", "latest", 1, is_slow=True),
    Scene("drawn, not kept: measurement", "answer", 7, is_s3=True, is_slow=True),
    Scene("rows made, file not closed", "rows", 1, is_s3=True, is_slow=True),
    Scene("before the folder is moved", "move", 1, is_s3=True, is_slow=True),
    Scene("between the copies of the folder", "copy", 4, is_s3=True, is_slow=True),
    Scene("before the manifest is copied", "copy", 8, is_s3=True),
    Scene("all copied, staging not removed", "copied", 8, is_s3=True, is_slow=True),
    Scene("moved, account not closed", "close", 1, is_s3=True, is_slow=True),
)


@dataclass(frozen=True, slots=True)
class Look:
    """What a store holds of a run.

    Attributes:
        budget: Its budget in the account, if it has one; that the account could be read is that it is valid.
        kept: The steps that have an answer.
        lost: Those of them whose answer is that it was lost.
        torn: What is wrong with what is visible of the release.
        leftovers: What there is of the copy of the private table and of the staging folder.
    """

    budget: RunBudget | None
    ledger: Ledger | None
    kept: frozenset[int]
    lost: frozenset[int]
    torn: tuple[str, ...]
    leftovers: tuple[str, ...]

    @property
    def steps(self) -> frozenset[int]:
        """The steps that are charged."""
        return frozenset(range(len(self.ledger.spends))) if self.ledger else frozenset()

    @property
    def spent(self) -> Fraction:
        """What they cost."""
        return self.ledger.spent if self.ledger else Fraction(0)


def look(root: Location, run: str) -> Look:
    """Look at a run from outside."""
    store = open_store(root)
    account = StoredAccount(store, DATASET)
    budget = account.budget(run) if account.find() else None
    ledger = account.chain(run).ledger if budget else None
    kept = frozenset(Answers(store, run).steps())
    answers = {step: Answers(store, run).find(step) for step in kept}
    lost = frozenset(step for step, found in answers.items() if found and isinstance(found.answer, Lost))
    return Look(budget, ledger, kept, lost, tuple(_torn(store, run)), tuple(_leftovers(store, run)))


def _torn(store: Store, run: str) -> Iterator[str]:
    """A release is there with all that its manifest names, and a folder of this machine only as a whole."""
    folder = release_folder(DATASET, run)
    if not store.has(f"{folder}/{MANIFEST}"):
        if store.location.is_local and Path(store.url(folder)).exists():
            yield "a folder without a manifest"
        return
    manifest, _ = read_manifest(open_store(store.location.child(folder)))
    for name, digest in manifest.files.items():
        if not store.has(f"{folder}/{name}") or file_digest(store, f"{folder}/{name}") != digest:
            yield f"{name} is not what the manifest says"
    yield from (f"{name} does not belong there" for name in set(_names(store, folder)) - {*FILES, MANIFEST, SEAL})


def _leftovers(store: Store, run: str) -> Iterator[str]:
    for folder in (private_folder(run), staging_folder(run)):
        yield from (f"{folder}/{name}" for name in _names(store, folder))


def _names(store: Store, folder: str) -> list[str]:
    """All files of a folder; of this machine's also those that obstore does not list."""
    if not store.location.is_local:
        return [key.removeprefix(f"{folder}/") for key in store.keys(folder)]
    root = Path(store.url(folder))
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw of noise, as the launcher noted it."""

    process: int
    step: int
    charged: int
    mechanism: str


@dataclass(frozen=True, slots=True)
class Story:
    """A run that died, and what became of it."""

    root: Location
    run: str
    died: Ended
    at_death: Look
    resumed: Ended
    after: Look
    draws: tuple[Draw, ...]
    findings: tuple[str, ...] = field(default=())

    @property
    def orphans(self) -> frozenset[int]:
        """The steps that were charged and had no answer when the run died."""
        return self.at_death.steps - self.at_death.kept


@dataclass(frozen=True, slots=True)
class Stage:
    """Where stories are played: a folder, a store, and how commands are started."""

    starter: Starter
    folder: Path
    root: Location
    settings: Mapping[str, str] = field(default_factory=dict)

    def write(self, **changes: Mapping[str, object]) -> Path:
        """Write the release file."""
        return write_release(self.folder, self.root, **changes)

    def start(self, *arguments: str, point: str | None = None, nth: int = 1) -> Job:
        """Start a command, with its draws noted."""
        settings = {**self.settings, DRAWS: str(self.folder / "draws")}
        return self.starter.start(self.folder, settings, arguments, point, nth)

    def draws(self) -> tuple[Draw, ...]:
        """All draws so far."""
        path = self.folder / "draws"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return tuple(Draw(int(a), int(b), int(c), name) for a, b, c, name in map(str.split, lines))

    def findings(self, run: str) -> tuple[str, ...]:
        """What an audit finds wrong, the account included."""
        release = open_store(self.root.child(release_folder(DATASET, run)))
        found = audit(release, StoredAccount(open_store(self.root), DATASET))
        return tuple(f"{finding.subject}: {finding.problem}" for finding in found if finding.problem is not None)

    def play(self, point: str, nth: int) -> Story:
        """Let a run die at a point, and resume it."""
        file = str(self.write())
        died = self.start("release", file, point=point, nth=nth).wait()
        run = run_of(died)
        at_death = look(self.root, run)
        resumed = self.start("release", file, "--resume", run).wait()
        findings = self.findings(run) if resumed.code == 0 else ("not resumed",)
        return Story(self.root, run, died, at_death, resumed, look(self.root, run), self.draws(), findings)


def objects(location: Location) -> dict[str, bytes]:
    """All that is in a folder, by its path."""
    root = Path(location.url)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def run_of(ended: Ended) -> str:
    """The run that a command told of."""
    return next(line.removeprefix("run ") for line in ended.stderr.splitlines() if line.startswith("run "))


def table() -> None:
    """Play all scenes and print what became of the runs."""
    servers = importlib.import_module("support.servers")
    _say(_LINE.format("killed", "store", "charged then", "lost", "charged in all", "sum", "result equals replay"))
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        prefect = stack.enter_context(servers.prefect_server(Path(folder) / "prefect"))
        bucket = stack.enter_context(servers.seaweedfs(Path(folder) / "seaweedfs"))
        os.environ |= {"PREFECT_API_URL": prefect.api_url, "PREFECT_HOME": f"{folder}/home", "DO_NOT_TRACK": "1"}
        os.environ |= {"TABLE_ACCESS_KEY_ID": bucket.access_key, "TABLE_SECRET_ACCESS_KEY": bucket.secret_key}
        starter = Starter({})
        stack.callback(starter.close)
        for number, scene in enumerate((UNWRITTEN, *SCENES)):
            s3 = Location(url=f"s3://{servers.BUCKET}/{number}", endpoint=bucket.endpoint, credentials="TABLE")
            home = Path(folder) / str(number)
            root = s3 if scene.is_s3 else Location(url=str(home / "out"))
            _say(_row(scene, Stage(starter, home, root).play(scene.point, scene.nth)))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


_LINE = "{:<46} {:<6} {:>12} {:>5} {:>14} {:>10}  {}"


def _row(scene: Scene, story: Story) -> str:
    budget = story.after.budget
    if budget is None and story.resumed.code == 4:
        return _LINE.format(scene.told, "folder", 0, 0, 0, "none reserved", "nothing to resume, exit 4")
    is_whole = budget is not None and budget.spent == budget.total
    is_equal = story.resumed.code == 0 and not story.findings
    return _LINE.format(
        scene.told, "s3" if scene.is_s3 else "folder", len(story.at_death.steps), len(story.after.lost),
        len(story.after.steps), "the budget" if is_whole else "NOT BUDGET", "yes" if is_equal else "NO",
    )  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Do as the command line says."""
    match arguments:
        case ["serve"]:
            serve()
        case ["table"]:
            table()
        case [point, nth, "--", *command] if point in POINTS:
            launch(point, int(nth), command)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
