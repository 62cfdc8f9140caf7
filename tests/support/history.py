"""What Prefect's database keeps of releases, on SQLite and on PostgreSQL, and what is left once it forgot the old.

python -m support.history --releases 6

Prints the bytes of the database in use: with nothing, after so many releases, and after a server with the settings of
`deployments/prod.env` forgot them, since they had become 91 days old; and so on for some quarters.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from support.servers import PrefectServer, new_database, postgresql, prefect_server
from support.sites import DEPLOYMENTS, PREFECT, ROOT, shipped_settings, wait_for
from support.small_release import write_release

DAYS = 91
"""One more than flow runs are kept."""
TABLES = ("flow_run", "flow_run_state", "task_run", "task_run_state", "log", "artifact", "events", "event_resources")
"""Those that grow with releases."""
_OFTEN = {"PREFECT_SERVER_SERVICES_DB_VACUUM_LOOP_SECONDS": "5"}
_RELEASES = """
import sys
from prefect import tags
from ppsyn.flows.release import release
with tags("ppsyn"):
    for _ in range(int(sys.argv[2])):
        release(sys.argv[1])
"""
_AGE = {
    "sqlite": "UPDATE {table} SET {column} = strftime('%Y-%m-%d %H:%M:%f', {column}, '-{days} days')",
    "postgresql": "UPDATE {table} SET {column} = {column} - INTERVAL '{days} days'",
}
_AGES = (("flow_run", "end_time"), ("events", "occurred"), ("event_resources", "occurred"))
"""What Prefect judges by whether something is old."""


@dataclass(frozen=True, slots=True)
class History:
    """A server's database, seen from beside it."""

    server: PrefectServer
    database_url: str | None

    def ask(self, statement: str) -> list[tuple[int, ...]]:
        """The rows of an answer; a change is kept."""
        if self.database_url is None:
            with closing(sqlite3.connect(str(self.server.database), timeout=60)) as lite, lite:
                return lite.execute(statement).fetchall()
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def counts(self) -> dict[str, int]:
        """The rows of each table."""
        return {table: self.ask(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}

    def used(self) -> int:
        """The bytes that hold something; what is free, later rows take."""
        if self.database_url is not None:
            self.ask("VACUUM FULL")
            return self.ask("SELECT pg_database_size(current_database())")[0][0]
        ((pages,), (free,), (size,)) = (
            self.ask(f"PRAGMA {name}")[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def age(self) -> None:
        """Have all that is there happened 91 days earlier."""
        kind = "sqlite" if self.database_url is None else "postgresql"
        for table, column in _AGES:
            self.ask(_AGE[kind].format(table=table, column=column, days=DAYS))

    def release(self, file: Path, count: int = 1) -> None:
        """So many releases, one after the other."""
        command = [sys.executable, "-c", _RELEASES, str(file), str(count)]
        subprocess.run(command, cwd=ROOT, env=environment(self.server, file.parent), check=True, timeout=1800)
        self._wait_until_quiet()

    def _wait_until_quiet(self) -> None:
        """The server writes down events and states of tasks after they happened."""
        before, since = self.counts(), time.monotonic()
        while time.monotonic() < since + 5:
            time.sleep(1)
            if (now := self.counts()) != before:
                before, since = now, time.monotonic()

    def wait_until_forgotten(self, flow_runs: int) -> None:
        """Until so many flow runs are left, and nothing else goes away."""
        wait_for(lambda: self.counts()["flow_run"] == flow_runs, 120)
        self._wait_until_quiet()


def environment(server: PrefectServer, folder: Path) -> dict[str, str]:
    """Of a command that uses the server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    told = {"PREFECT_API_URL": server.api_url, "PREFECT_HOME": str(folder / "home"), "DO_NOT_TRACK": "1"}
    return kept | shipped_settings("prod.env") | told | {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL"}


@contextmanager
def opened(folder: Path, database_url: str | None) -> Generator[History]:
    """A server with the settings and automations that ship, which looks for what is old more often."""
    with prefect_server(folder / "server", database_url, shipped_settings("prod.env") | _OFTEN) as server:
        command = [PREFECT, "--no-prompt", "automation", "create", "--from-file", str(DEPLOYMENTS / "automations.yaml")]
        subprocess.run(command, env=environment(server, folder), check=True, capture_output=True, timeout=300)
        yield History(server, database_url)


def release_file(folder: Path, rounds: int) -> Path:
    """Of a small table, with room for many releases."""
    cap = {"epsilon": 100.0, "delta": 1e-6}
    return write_release(folder, algorithm={"rounds": rounds}, account={"cap": cap})


def main() -> None:
    """Print bytes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=6, help="of each quarter of a year")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quarters", type=int, default=2, help="how often it forgets")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in ("sqlite", "postgresql"):
            database = new_database(stack.enter_context(postgresql(folder))) if kind == "postgresql" else None
            with opened(folder / kind, database) as history:
                file = release_file(folder / kind, arguments.rounds)
                say(kind, "nothing", history)
                for quarter in range(arguments.quarters):
                    history.release(file, arguments.releases)
                    say(kind, f"quarter {quarter + 1}, released", history)
                    history.age()
                    history.wait_until_forgotten(0)
                    say(kind, f"quarter {quarter + 1}, forgotten", history)


def say(kind: str, when: str, history: History) -> None:
    """A line of figures."""
    counts = " ".join(f"{table} {count}" for table, count in history.counts().items())
    sys.stdout.write(f"{kind:<11} {when:<24} {history.used():>12,} bytes  {counts}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
