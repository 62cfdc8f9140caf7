import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

_USER = """
import json, os, sys
from ppsyn.flows.ephemeral_server import prefect_api

def say(**facts):
    print(json.dumps(facts), flush=True)

def children():
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]

try:
    with prefect_api():
        say(url=os.environ["PREFECT_API_URL"], servers=children(), password=os.environ["PREFECT_API_AUTH_STRING"])
        for line in iter(sys.stdin.readline, ""):
            if line == "fail\\n":
                raise LookupError("the block failed")
            if line == "leave\\n":
                break
            try:
                say(waits=True)
                sys.stdin.readline()
            except KeyboardInterrupt:
                say(interrupted=True)
except LookupError as error:
    say(error=str(error))
say(url=os.environ.get("PREFECT_API_URL"), servers=children())
"""

_CHECK = "import os; from ppsyn.flows.ephemeral_server import prefect_api\n" + (
    "with prefect_api():\n"
    "    pid = os.getpid()\n"
    "    print(os.environ.get('PREFECT_API_URL'), open(f'/proc/{pid}/task/{pid}/children').read().split())"
)


SECRET = "a-key-that-the-server-has-no-use-for"


class User:
    """A process that uses `prefect_api`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def hears(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def says(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        return json.loads(line)


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    keys = {"PPSYN_STATE_ACCESS_KEY_ID": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "SOURCE_PASSWORD": SECRET}
    return {**kept, **keys, "PREFECT_HOME": str(home), **more}


@contextlib.contextmanager
def user(home: Path) -> Generator[User]:
    process = subprocess.Popen(
        [sys.executable, "-c", _USER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home),
        start_new_session=True,
    )
    with process:
        try:
            yield User(process)
        finally:
            if process.poll() is None:
                process.kill()


def make_flow(begun: Mapping[str, object], name: str) -> int:
    """Write something through the API."""
    return ask(begun, "flows/", {"name": name})


def ask(begun: Mapping[str, object], path: str, body: Mapping[str, object], *, is_known: bool = True) -> int:
    """Ask the API something, with the password or without; returns the status."""
    headers = {"Content-Type": "application/json", "Origin": "http://elsewhere.example"}
    if is_known:
        headers["Authorization"] = f"Basic {base64.b64encode(str(begun['password']).encode()).decode()}"
    request = urllib.request.Request(f"{begun['url']}/{path}", json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        assert answer.headers["Access-Control-Allow-Origin"] is None
        assert answer.status is not None
        return answer.status


def answers(url: object) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def is_gone(pid: int, seconds: float) -> bool:
    """Whether a process ends in time; one that nobody has waited for counts."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_two_at_once_on_a_new_home_both_work_and_stop_after_the_block_and_after_an_error(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with user(home) as one, user(home) as other:
        begun = [one.says(), other.says()]
        urls = [begun_one["url"] for begun_one in begun]
        assert len(set(map(str, urls))) == 2
        assert begun[0]["password"] != begun[1]["password"]
        for number, begun_one in enumerate(begun):
            assert urlsplit(str(begun_one["url"])).hostname == "127.0.0.1"
            assert make_flow(begun_one, f"flow-{number}") in (200, 201)
            assert_closed_to_others(begun_one, home)
        one.hears("leave")
        other.hears("fail")
        assert one.says() == {"url": None, "servers": []}
        assert other.says() == {"error": "the block failed"}
        assert other.says() == {"url": None, "servers": []}
        assert not any(map(answers, urls))
        assert [member.process.wait(30) for member in (one, other)] == [0, 0]
    servers = [pid for begun_one in begun for pid in begun_one["servers"]]  # type: ignore[attr-defined]
    assert len(servers) == 2
    assert all(is_gone(pid, 1) for pid in servers)


def assert_closed_to_others(begun: Mapping[str, object], home: Path) -> None:
    """Another user of the machine can neither ask nor read, and the server knows no keys of stores."""
    for path in ("flow_runs/filter", "flows/", "flow_runs/00000000-0000-0000-0000-000000000000/set_state"):
        assert ask(begun, path, {}, is_known=False) == 401
    stranger = {**begun, "password": "ppsyn:another"}
    assert ask(stranger, "flow_runs/filter", {}) == 401
    assert ask(begun, "flow_runs/filter", {}) == 200
    (server,) = begun["servers"]  # type: ignore[misc]
    told = Path(f"/proc/{server}/environ").read_bytes()
    assert b"PATH=" in told
    assert SECRET.encode() not in told
    assert not any(str(begun["password"]).encode() in line for line in _command_lines())
    private = [path for path in home.iterdir() if path.name.startswith(("prefect.db", "embedded.log"))]
    assert {"prefect.db", "embedded.log"} <= {path.name for path in private}
    assert [path.name for path in (home, *private) if path.stat().st_mode & 0o077] == []


def _command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            yield path.read_bytes()


@pytest.mark.slow
def test_files_that_an_older_version_left_open_are_closed(tmp_path: Path) -> None:
    log = tmp_path / "embedded.log"
    log.touch(mode=0o644)
    log.chmod(0o644)
    with user(tmp_path) as one:
        one.says()
        assert log.stat().st_mode & 0o777 == 0o600
        one.hears("leave")
        one.says()


@pytest.mark.slow
def test_an_interrupt_does_not_reach_the_server_and_a_kill_takes_it_along(tmp_path: Path) -> None:
    with user(tmp_path / "home") as one:
        begun = one.says()
        (server,) = begun["servers"]  # type: ignore[misc]
        one.hears("wait")
        assert one.says() == {"waits": True}
        os.killpg(one.process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
        assert one.says() == {"interrupted": True}
        time.sleep(1)
        assert answers(begun["url"])
        assert not is_gone(server, 0.2)
        one.process.kill()
        one.process.wait(30)
        assert is_gone(server, 30)
        assert not answers(begun["url"])


def told(home: Path, **more: str) -> str:
    """The API that is used, and the processes that were started."""
    command = [sys.executable, "-c", _CHECK]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=environment(home, **more)
    )
    return found.stdout.strip()


@pytest.fixture
def somewhere() -> Generator[str]:
    """The address of a server that answers, if only that there is nothing."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()


def test_an_api_of_the_environment_is_used_and_none_started(tmp_path: Path, somewhere: str) -> None:
    assert told(tmp_path, PREFECT_API_URL=somewhere) == f"{somewhere} []"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("profiles", "more"),
    [
        ('active = "a"\n[profiles.a]\nPREFECT_API_URL = "http://there/api"', {}),
        ('active = "b"\n[profiles.a]\nPREFECT_API_URL = "http://there/api"\n[profiles.b]', {"PREFECT_PROFILE": "a"}),
    ],
)
def test_an_api_of_the_active_profile_is_used_and_none_started(
    tmp_path: Path, profiles: str, more: dict[str, str]
) -> None:
    (tmp_path / "profiles.toml").write_text(profiles, encoding="utf-8")
    assert told(tmp_path, **more) == "None []"  # Prefect reads the profile by itself
    assert [path.name for path in tmp_path.iterdir()] == ["profiles.toml"]


@pytest.mark.slow
def test_an_api_of_another_profile_does_not_count(tmp_path: Path) -> None:
    profiles = 'active = "b"\n[profiles.a]\nPREFECT_API_URL = "http://there/api"\n[profiles.b]'
    (tmp_path / "profiles.toml").write_text(profiles, encoding="utf-8")
    with user(tmp_path) as one:
        assert str(one.says()["url"]).startswith("http://127.0.0.1:")
        one.hears("leave")
        assert one.says() == {"url": None, "servers": []}


@pytest.mark.slow
def test_a_server_that_cannot_start_is_told_with_where_its_log_is(tmp_path: Path) -> None:
    bad = environment(tmp_path, PREFECT_SERVER_DATABASE_CONNECTION_URL="sqlite+aiosqlite:////nowhere/at/all.db")
    found = subprocess.run(
        [sys.executable, "-c", _CHECK], capture_output=True, text=True, check=False, timeout=240, env=bad
    )
    assert found.returncode != 0
    assert str(tmp_path / "embedded.log") in found.stderr
