"""What a person and a log file are told of a release."""

import re
from io import RawIOBase
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.loops import ScriptedCurator, small_plan
from support.small_release import write_release

from ppsyn.errors import SourceError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.flows.cli.release import Display
from ppsyn.mechanisms.loop import run, start
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef

PLACE = Location(url="memory://display")
REF = RunRef(run="20260102-030405-9f8e7d6c", dataset="people", root=PLACE, private=PLACE, releases=PLACE)
TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (.+)")


class Lines(RawIOBase):
    """A log in memory."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, data: bytes) -> int:
        self.text += data.decode()
        return len(data)


def shown(*, is_quiet: bool, log: RawIOBase | None = None) -> int:
    """Show a whole run; returns how many rounds it had."""
    with Display(is_quiet=is_quiet, log=log) as display:
        display.opened(REF)
        state = run(ScriptedCurator(), start(small_plan()), display.advanced)
        display.entered("generating rows")
    return len(state.rounds)


def test_off_a_terminal_there_is_a_line_a_round(capfd: pytest.CaptureFixture[str]) -> None:
    rounds = shown(is_quiet=False)
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[:2] == ["checking the release", f"run {REF.run}"]
    assert re.fullmatch(r"one-way marginals, \d+% of the budget spent", lines[2])
    assert len(lines) == rounds + 4
    assert all(re.match(rf"round {n}: \w( x \w)* in \d+ groups, ", lines[n + 2]) for n in range(1, rounds + 1))
    assert lines[-2].endswith("100% of the budget spent")
    assert "\x1b" not in err


def test_quiet_is_silent_and_the_log_has_its_lines_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    log = Lines()
    rounds = shown(is_quiet=True, log=log)
    assert capfd.readouterr() == ("", "")
    lines = [TIMED.fullmatch(line) for line in log.text.splitlines()]
    assert all(lines)
    assert sum(line is not None and line[1].startswith("round ") for line in lines) == rounds


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SourceError("The table is not there."), "stopped: The table is not there."),
        (ValueError("secret"), "ValueError"),
    ],
)
def test_the_log_says_how_it_ended_without_what_may_be_private(error: Exception, told: str) -> None:
    log = Lines()
    with pytest.raises(type(error)), Display(is_quiet=True, log=log):
        raise error
    assert log.text.rstrip().endswith(told)
    assert "secret" not in log.text


def test_a_disk_that_is_full_does_not_stop_a_release() -> None:
    with Path("/dev/full").open("ab", buffering=0) as log, Display(is_quiet=True, log=log) as display:
        display.opened(REF)
    with Path("/dev/full").open("ab", buffering=0) as log, pytest.raises(OSError, match="space"):
        log.write(b"x")


def test_a_log_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    file = write_release(tmp_path)
    done = CliRunner().invoke(main, ["release", str(file), "--log", str(tmp_path / "no" / "where.log")])
    assert (done.exit_code, done.stdout) == (Exit.STORE, "")
    assert "Cannot write" in done.stderr
    assert not (tmp_path / "out").exists()
