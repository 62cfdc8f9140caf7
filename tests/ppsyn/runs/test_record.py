"""What is written down of a run, and which records are read."""

from pathlib import Path

import pytest

from ppsyn.errors import RunError
from ppsyn.runs.record import read_record
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

SOURCE = "0123456789ab" + "c" * 52
OLD = f"""{{
  "format": "ppsyn-run-1",
  "run": "r1",
  "dataset": "people",
  "code": {{"ppsyn": "0.1.0", "source": "{SOURCE}"}}
}}
"""


def test_a_run_of_an_earlier_format_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    root = open_store(Location(url=str(tmp_path)))
    root.put("runs/r1/config.json", OLD.encode())
    with pytest.raises(RunError) as caught:
        read_record(root, "r1")
    assert str(caught.value) == (
        "Run r1 cannot go on here. Expected format ppsyn-run-3, got ppsyn-run-1. "
        "Read it with ppsyn 0.1.0 (source 0123456789ab), which wrote it."
    )


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1}', b'{"format": "other-run-1"}', b"[" * 100_000])
def test_what_is_no_record_at_all_is_damaged(tmp_path: Path, data: bytes) -> None:
    root = open_store(Location(url=str(tmp_path)))
    root.put("runs/r1/config.json", data)
    with pytest.raises(RunError, match="its record is damaged"):
        read_record(root, "r1")
