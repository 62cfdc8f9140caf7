"""A real session, written down: a schedule set up by docs/scheduling.md and docs/operations.md, on PostgreSQL and S3.

`make recording` writes docs/results/schedule.txt. It takes half an hour, of which it waits for most, needs
Linux, root and jq, and ends without a file if anything is otherwise than the page says. Folders and ports are those of
the pages, since all of it runs in namespaces of its own (`unshare`), which end with it.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pexpect
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from support.servers import HOST, OWNED, new_weed, postgresql, postgresql_programs, seaweedfs

from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs/results/schedule.txt"
PROJECT = Path("/opt/ppsyn")
"""Where the pages have the project."""
SECRETS = Path("/etc/ppsyn-secrets")
NAMES = ("PPSYN_STATE", "PPSYN_PRIVATE", "PPSYN_PUBLIC")
S3_PORT = 8333
WITHIN_SECONDS = 900
ENDPOINT = f"http://{HOST}:{S3_PORT}"
STATE = f"'s3://ppsyn-state/prod?credentials=PPSYN_STATE&endpoint={ENDPOINT}'"
PUBLIC = f"'s3://ppsyn-public/prod/releases/adult/{{run}}?credentials=PPSYN_PUBLIC&endpoint={ENDPOINT}'"

RELEASE = f"""dataset: adult
source: {{kind: parquet, path: /opt/ppsyn/examples/adult/adult.parquet}}
schema: /opt/ppsyn/schemas/tables/adult.yaml
privacy: {{epsilon: 1.0, delta: 1.0e-9}}
account:
  cap: {{epsilon: 1.8, delta: 1.0e-9}}
algorithm: {{rounds: 10, max_fit_steps: 50}}
stores:
  root: {{url: s3://ppsyn-state/prod, endpoint: "{ENDPOINT}", credentials: PPSYN_STATE}}
  private: {{url: s3://ppsyn-private/prod, endpoint: "{ENDPOINT}", credentials: PPSYN_PRIVATE}}
  releases: {{url: s3://ppsyn-public/prod, endpoint: "{ENDPOINT}", credentials: PPSYN_PUBLIC}}
"""
CRON = "*/5 * * * *"
PARTS = "[.releases[] | {run, state, spent: .spent.rho}]"
WORKER = "prefect --no-prompt worker start --pool ppsyn --type process --limit 1"
PROCESSES = "worker start|prefect.engine|_workspace_runtime"
BEGUN = '.[] | select(.start_time) | [.expected_start_time[11:16], .state_name, .name] | join("  ")'
STATES = '.[] | [.timestamp[11:19], .name, .message] | join("  ")'
_PROMPT = "ready-for-the-next-command "
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass
class Transcript:
    """What was typed and seen, with the time."""

    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """What was typed or seen."""
        self.lines.append(text)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def tell(self, text: str) -> None:
        """What happens."""
        self.add(f"\n# {now()}  {text}\n")


@dataclass
class Terminal:
    """A shell that somebody types into; a command that does not end well ends the session."""

    transcript: Transcript
    name: str
    shell: "pexpect.spawn[str]" = field(init=False)

    def __post_init__(self) -> None:
        bare = ["--norc", "--noprofile", "--noediting"]
        self.shell = pexpect.spawn("bash", bare, encoding="utf-8", dimensions=(50, 118), cwd=PROJECT, timeout=400)
        self.shell.setecho(False)
        self.shell.sendline(f"stty -echo; PS1='{_PROMPT}'")
        self.shell.sendline("echo begin")
        self.shell.expect(f"begin\r\n{_PROMPT}")

    def type(self, command: str, answers: Sequence[str] = ()) -> str:
        """What was seen. Answers are typed where the command asks, and not shown."""
        self.transcript.add(f"{now()} {self.name}$ {command}")
        self.shell.sendline(command)
        seen = ""
        for answer in answers:
            self.shell.expect(": $")
            seen += f"{self.shell.before}:\n"
            self.shell.sendline(answer)
        seen += self._until_prompt()
        self.shell.sendline("echo $?")
        code = self._until_prompt().splitlines()[-1]
        if seen:
            self.transcript.add("\n".join(f"    {line}" for line in seen.splitlines()))
        if code != "0":
            sys.exit(f"{command} ended with {code}")
        return seen

    def _until_prompt(self) -> str:
        self.shell.expect_exact(_PROMPT)
        lines = _ESCAPES.sub("", self.shell.before or "").splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n")


def now() -> str:
    """The time, as a clock on the wall shows it."""
    return f"{datetime.now(UTC):%H:%M:%S}"


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    """Wait, or end the session without a recording."""
    give_up = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        if time.monotonic() > give_up:
            sys.exit(f"Nothing came of this: {what}.")
        time.sleep(1)


def is_up() -> bool:
    """Whether the server answers."""
    with suppress(OSError), urllib.request.urlopen(f"http://{HOST}:4200/api/health", timeout=5) as answer:
        return answer.status == 200
    return False


def runs(state: str) -> list[FlowRun]:
    """The flow runs in a state of that name, the earliest first."""
    with SyncPrefectClient(f"http://{HOST}:4200/api", auth_string=os.environ["PREFECT_API_AUTH_STRING"]) as client:
        found = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_ASC)
    return [run for run in found if run.state_name == state]


def is_in(state: str, number: UUID) -> bool:
    """Whether a flow run is in a state of that name."""
    return any(run.id == number for run in runs(state))


def answers() -> int:
    """How many questions of all runs have had their answer."""
    store = open_store(Location(url="s3://ppsyn-state/prod", endpoint=ENDPOINT, credentials="PPSYN_STATE"))
    return sum("/answers/" in key for key in store.keys("runs"))


def main() -> None:
    """Go into namespaces, or play the session there and write it down."""
    if sys.argv[1:] != ["inside"]:
        namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        os.execvp("unshare", ["unshare", *namespaces, sys.executable, __file__, "inside"])
    with ExitStack() as stack:
        words = furnish(Path(stack.enter_context(tempfile.TemporaryDirectory())), stack)
        transcript = play(words)
    text = "\n".join(transcript.lines).strip().replace(str(ROOT), str(PROJECT))
    OUT.write_text(text + "\n", encoding="utf-8")


def furnish(folder: Path, stack: ExitStack) -> str:
    """Folders as the pages have them, an S3 server with three buckets, and a PostgreSQL server; the role's password."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/srv"], check=True)
    for name in ("etc", "opt"):
        upper, work = Path(f"/srv/.{name}/upper"), Path(f"/srv/.{name}/work")
        upper.mkdir(parents=True)
        work.mkdir()
        layers = f"lowerdir=/{name},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, f"/{name}"], check=True)
    for made in (PROJECT, SECRETS, Path("/etc/ppsyn"), Path("/srv/home")):
        made.mkdir(mode=0o700)
    subprocess.run(["mount", "--bind", str(ROOT), str(PROJECT)], check=True)
    Path("/etc/ppsyn/adult.yaml").write_text(RELEASE, encoding="utf-8")
    weed = new_weed()
    weed = replace(weed, ports=[*weed.ports[:-2], S3_PORT, S3_PORT + 10_000])
    storage = stack.enter_context(seaweedfs(folder / "objects", weed))
    database = stack.enter_context(postgresql(folder / "database", 5432))
    word, password = f"ppsyn:{secrets.token_hex(16)}", secrets.token_hex(16)
    url = f"postgresql+asyncpg://prefect:{password}@{HOST}:5432/prefect"
    write("server.env", {"PREFECT_SERVER_API_AUTH_STRING": word, "PREFECT_SERVER_DATABASE_CONNECTION_URL": url})
    keys = {
        f"{name}_{part}": value
        for name, bucket in zip(NAMES, OWNED, strict=True)
        for part, value in zip(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"), storage.owners[bucket], strict=True)
    }
    write("worker.env", {"PREFECT_API_AUTH_STRING": word, **keys})
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "PPSYN_"))]:
        del os.environ[name]
    path = f"{PROJECT}/.venv/bin:{postgresql_programs()}:{os.environ['PATH']}"
    os.environ |= {"HOME": "/srv/home", "PATH": path, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "118"}
    os.environ |= {"PGHOST": HOST, "PGUSER": "postgres", "PGPASSWORD": re.split("[:@]", database.url)[2]}
    return password


def write(name: str, values: Mapping[str, str]) -> None:
    """A file of secrets, for its owner alone."""
    (SECRETS / name).touch(mode=0o600)
    (SECRETS / name).write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")


def play(password: str) -> Transcript:
    """The session, of three terminals."""
    transcript = Transcript()
    server, worker, owner = (Terminal(transcript, name) for name in ("server", "worker", "owner"))
    for line in (SECRETS / "worker.env").read_text(encoding="utf-8").splitlines():  # for us, who look on
        name, _, value = line.partition("=")
        os.environ[name] = value
    set_up(transcript, server, password)
    deploy(transcript, owner, worker)
    wait_for(lambda: len(runs("Running")) > 0, "a first run")
    transcript.tell("The schedule fires for the first time.")
    wait_for(lambda: len(runs("Completed")) == 1, "a first release")
    show(owner)
    kill(transcript, owner)
    wait_for(lambda: len(runs("Completed")) == 3, "a third release")
    transcript.tell("The schedule has fired for the third time.")
    show(owner)
    refuse(transcript, owner)
    check(transcript, owner)
    return transcript


def set_up(transcript: Transcript, server: Terminal, password: str) -> None:
    """A server."""
    transcript.tell("A server on PostgreSQL (docs/operations.md).")
    server.type("createuser --pwprompt prefect", [password, password])
    server.type("createdb --owner prefect prefect")
    server.type("set -a; . deployments/prod.env; . /etc/ppsyn-secrets/server.env; set +a")
    server.type("prefect server start --host 127.0.0.1 > /srv/server.log 2>&1 &")
    wait_for(is_up, "a server")


def deploy(transcript: Transcript, owner: Terminal, worker: Terminal) -> None:
    """A deployment, automations and a worker."""
    transcript.tell("A pool, the deployment, which for this recording runs every five minutes, and automations.")
    owner.type("set -a; . deployments/prod.env; . /etc/ppsyn-secrets/worker.env; set +a")
    owner.type("cat /etc/ppsyn/adult.yaml")
    owner.type("prefect --no-prompt work-pool create ppsyn --type process")
    owner.type(f"sed 's|0 4 \\* \\* 1|{CRON}|' deployments/prefect.prod.yaml > /etc/ppsyn/prefect.yaml")
    owner.type("grep cron /etc/ppsyn/prefect.yaml")
    owner.type("prefect --no-prompt deploy --prefect-file /etc/ppsyn/prefect.yaml --all")
    owner.type("prefect automation create --from-file deployments/automations.yaml")
    transcript.tell("A worker that is started again when it ends, as deployments/ppsyn-worker.service has it.")
    worker.type("set -a; . deployments/prod.env; . /etc/ppsyn-secrets/worker.env; set +a")
    worker.type(f"while true; do {WORKER}; sleep 10; done > /srv/worker.log 2>&1 &")


def kill(transcript: Transcript, owner: Terminal) -> None:
    """Worker and flow at once, in the middle of a run, which goes on by itself."""
    before = answers()
    wait_for(lambda: len(runs("Running")) > 0, "a second run")
    transcript.tell("The schedule fires for the second time. In the middle of the run, worker and flow are killed.")
    (killed,) = runs("Running")
    wait_for(lambda: answers() > before + 15, "answers of the second run")
    owner.type(f"pgrep --list-full --full '{PROCESSES}' | cut -c 1-110")
    owner.type(f"kill -9 $(pgrep --full '{PROCESSES}')")
    owner.type(f"ppsyn budget adult --store {STATE}")
    wait_for(lambda: is_in("Crashed", killed.id), "that Prefect misses its signs of life")
    transcript.tell("Prefect has missed the heartbeats.")
    wait_for(lambda: is_in("Completed", killed.id), "that it goes on")
    transcript.tell("The run went on by itself, and is published.")
    owner.type(f"prefect api GET '/flow_run_states/?flow_run_id={killed.id}' | jq --raw-output '{STATES}'")
    show(owner)


def refuse(transcript: Transcript, owner: Terminal) -> None:
    """One more than the account has room for."""
    wait_for(lambda: len(runs("Refused")) > 0, "a refused run")
    transcript.tell("The schedule fires for the fourth time: what is left is not enough.")
    (refused, *_) = runs("Refused")
    owner.type(f"prefect api GET '/flow_run_states/?flow_run_id={refused.id}' | jq --raw-output '{STATES}'")
    owner.type(f"ppsyn budget adult --store {STATE}")


def check(transcript: Transcript, owner: Terminal) -> None:
    """That the account and the releases are as told."""
    transcript.tell("Every release is published once and holds what it says; nothing private is left.")
    parts = json.loads(owner.type(f"ppsyn budget adult --store {STATE} --json | jq --compact-output '{PARTS}'"))
    if [part["state"] for part in parts] != ["published"] * 3 or len({part["spent"] for part in parts}) != 1:
        sys.exit("Expected three published releases, each paid for once.")
    for part in parts:
        owner.type(f"ppsyn audit {PUBLIC.format(run=part['run'])} --account {STATE}")
    owner.type("ppsyn clean /etc/ppsyn/adult.yaml --yes --json")
    owner.type("prefect --no-prompt work-pool pause ppsyn")


def show(owner: Terminal) -> None:
    """What runs there were, and what they cost."""
    asked = """prefect api POST /flow_runs/filter --data '{"sort": "EXPECTED_START_TIME_ASC"}'"""
    owner.type(f"{asked} | jq --raw-output '{BEGUN}'")
    owner.type(f"ppsyn budget adult --store {STATE}")


if __name__ == "__main__":
    main()
