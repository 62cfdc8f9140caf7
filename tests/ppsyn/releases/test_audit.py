import os
import shutil
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support import knots
from support.published import SCHEMA, Published, copied, in_memory, make_release, people, shared_release

from ppsyn.errors import ConfigError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.accountant import accounted_epsilon
from ppsyn.privacy.budget import epsilon_from, rho_from
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.releases.audit import Finding, audit
from ppsyn.releases.layout import ANSWERS, FILES, LEDGER, MANIFEST, SEAL, SYNTHETIC, VALIDATION
from ppsyn.releases.reader import open_release
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

EVERY_FILE = (*FILES, MANIFEST, SEAL)
STAGES = ("chain", "budget", "replay", "model", "rows", "validation", "report")


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def folder(release: Published, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return copied(release.folder, tmp_path / "copy")


def check(folder: Path, account: StoredAccount | None = None) -> list[Finding]:
    return list(audit(open_store(Location(url=str(folder))), account))


def problems(findings: list[Finding]) -> dict[str, str]:
    return {finding.subject: finding.problem for finding in findings if finding.problem is not None}


def names(findings: list[Finding], file: str) -> bool:
    return any(file in f"{finding.subject} {finding.problem}" for finding in findings if finding.problem)


# A release as it was published


def test_nothing_is_found_in_a_release_that_nobody_touched(release: Published) -> None:
    findings = check(release.folder)
    assert problems(findings) == {}
    assert [finding.subject for finding in findings] == [MANIFEST, *sorted(FILES), *STAGES]


def test_nothing_is_found_with_the_account_either(release: Published) -> None:
    findings = check(release.folder, release.account)
    assert problems(findings) == {}
    assert findings[-1].subject == "account"


def test_a_release_with_what_its_tree_has_no_room_for_is_replayed_like_any_other(tmp_path: Path) -> None:
    algorithm = {"privacy": knots.BUDGET, "account": {"cap": knots.BUDGET}, "algorithm": knots.SETTINGS}
    made = make_release(tmp_path, knots.ring(), knots.SCHEMA, changes=algorithm)
    assert problems(check(made.folder, made.account)) == {}
    assert open_release(open_store(Location(url=str(made.folder)))).model.off_tree


def test_neither_the_table_nor_the_private_store_nor_the_run_is_needed(tmp_path: Path) -> None:
    private = tmp_path / "private"
    stores = {"root": str(tmp_path / "root"), "private": str(private), "releases": str(tmp_path / "out")}
    made = make_release(tmp_path / "made", changes={"stores": stores})
    shutil.rmtree(tmp_path / "made")
    shutil.rmtree(private)
    shutil.rmtree(tmp_path / "root" / "runs")
    assert problems(check(made.folder, made.account)) == {}


def test_an_audit_writes_nothing(release: Published, folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    check(folder, release.account)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_a_release_in_a_bucket_is_audited_too(tmp_path: Path, s3: Location) -> None:
    made = make_release(tmp_path, root=s3)
    assert problems(list(audit(made.store, made.account))) == {}
    made.store.put(VALIDATION, made.store.get(VALIDATION).replace(b"true", b"True", 1))
    assert names(list(audit(made.store)), VALIDATION)


def test_a_release_that_was_paid_in_rho_for_persons_audits(tmp_path: Path) -> None:
    frame = people().assign(who=np.arange(200) % 70)
    schema = SCHEMA.model_copy(update={"excluded": ("who",)})
    changes = {
        "privacy": {"rho": 0.2, "person": {"column": "who", "max_rows": 2}},
        "account": {"cap": {"rho": 1.0}},
    }
    made = make_release(tmp_path, frame, schema, changes=changes)
    assert problems(check(made.folder, made.account)) == {}


# Any byte of any file


def places(file: str, size: int) -> Iterable[int]:
    """All places of the manifest and its seal; of a larger file its head, its foot and some hundred between them."""
    if file in (MANIFEST, SEAL):
        return range(size)
    return sorted({*range(48), *range(0, size, size // 120), *range(size - 64, size)})


def altered(data: bytes, place: int, pattern: int) -> bytes:
    return data[:place] + bytes([data[place] ^ pattern]) + data[place + 1 :]


def check_every_change(release: Published, file: str, where: Iterable[int]) -> None:
    store = in_memory(release.folder, f"{os.getpid()}-{file}")
    data = store.get(file)
    for place in where:
        for pattern in (1, 0xFF ^ (place % 255)):
            store.put(file, altered(data, place, pattern))
            assert names(list(audit(store)), file), f"byte {place} of {file}"


@pytest.mark.parametrize("file", EVERY_FILE)
def test_a_single_changed_byte_is_found_and_its_file_named(release: Published, file: str) -> None:
    check_every_change(release, file, places(file, (release.folder / file).stat().st_size))


@pytest.mark.slow
@pytest.mark.parametrize("file", EVERY_FILE)
def test_whichever_byte_is_changed_it_is_found(release: Published, file: str) -> None:
    check_every_change(release, file, range((release.folder / file).stat().st_size))


HARMS: dict[str, Callable[[Path], object]] = {
    "cut by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "longer by a byte": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "longer by a null": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "begun by a byte": lambda path: path.write_bytes(b" " + path.read_bytes()),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("file", EVERY_FILE)
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_file_is_found_and_named(folder: Path, file: str, harm: str) -> None:
    HARMS[harm](folder / file)
    assert names(check(folder), file)


@pytest.mark.parametrize("extra", ["notes.txt", ".hidden", "deep/er.parquet", "synthetic.parquet.bak"])
def test_a_file_that_was_not_published_is_found_and_named(folder: Path, extra: str) -> None:
    (folder / extra).parent.mkdir(exist_ok=True)
    (folder / extra).write_text("x", encoding="utf-8")
    assert names(check(folder), extra)


@pytest.mark.parametrize("other", [file for file in EVERY_FILE if file != SYNTHETIC])
def test_two_files_that_were_swapped_are_found_and_named(folder: Path, other: str) -> None:
    first, second = (folder / SYNTHETIC).read_bytes(), (folder / other).read_bytes()
    (folder / SYNTHETIC).write_bytes(second)
    (folder / other).write_bytes(first)
    assert names(check(folder), other)


def test_an_empty_folder_has_no_release(tmp_path: Path) -> None:
    assert names(check(tmp_path), MANIFEST)


def test_files_of_another_release_do_not_pass(folder: Path, tmp_path: Path) -> None:
    other = make_release(tmp_path / "other", people(seed=1))
    for file in (MANIFEST, SEAL):
        shutil.copy(other.folder / file, folder / file)
    assert set(problems(check(folder))) >= {SYNTHETIC, ANSWERS, LEDGER}


# The guarantee by another accountant


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0.01, 100),
    delta=st.floats(-30, -3).map(lambda power: 10**power),
    weights=st.lists(st.integers(1, 1000), min_size=1, max_size=8),
)
def test_the_other_accountant_agrees_whatever_the_budget(epsilon: float, delta: float, weights: list[int]) -> None:
    rho = rho_from(epsilon, delta)
    spends = tuple(Spend("measure", rho * Fraction(weight, sum(weights)), "") for weight in weights)
    ledger = Ledger(rho, spends)
    assert ledger.spent == rho
    assert accounted_epsilon(ledger, delta) == pytest.approx(epsilon_from(rho, delta), rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-4, 0.1), pytest.param(1e-5, 1e-100, marks=pytest.mark.slow), (1.0, 0.9), (100.0, 0.999)],
)
def test_an_odd_budget_is_refused_or_passes_its_own_audit(tmp_path: Path, epsilon: float, delta: float) -> None:
    budget = {"epsilon": epsilon, "delta": delta}
    try:
        made = make_release(tmp_path, changes={"privacy": budget, "account": {"cap": budget}})
    except (ValidationError, ConfigError):
        return
    assert problems(check(made.folder)) == {}
