"""A forger makes the digests fit what was changed; computing everything again finds it all the same."""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.published import (
    RUN,
    Published,
    copied,
    edit_parquet,
    entries_of,
    make_release,
    manifest_of,
    people,
    reseal,
    retell,
    seal,
    shared_release,
    write_entries,
)

from ppsyn.errors import ConfigError
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.budget_checks import guarantee_of
from ppsyn.releases.layout import ANSWERS, FILES, LEDGER, LEDGER_JSON, MANIFEST, MODEL, REPORT, SYNTHETIC, VALIDATION
from ppsyn.releases.reader import read_manifest
from ppsyn.releases.tables import entries_to_json, pack_entries, unpack_entries
from ppsyn.schemas.account import (
    FIRST,
    Charge,
    Close,
    Grant,
    Line,
    Seal,
    from_bytes,
    to_bytes,
)
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import Manifest, Validation
from ppsyn.serialization import pack_arrays, unpack_arrays
from ppsyn.storage import open_store

ANOTHER = "20310101-000000-00000000"
"""A run that never was."""

Row = dict[str, object]
Rows = list[Row]
Entries = list[Line]
Forge = Callable[[Path], None]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def folder(release: Published, tmp_path: Path) -> Path:
    """A copy to forge."""
    return copied(release.folder, tmp_path / "copy")


def problems(folder: Path, account: StoredAccount | None = None) -> dict[str, str]:
    findings = audit(open_store(Location(url=str(folder))), account)
    return {finding.subject: finding.problem for finding in findings if finding.problem is not None}


# What a forger changes


def answers(change: Callable[[Rows], object]) -> Forge:
    """Changes rows of the answers in place."""
    return rows_of(ANSWERS, change)


def rows_of(file: str, change: Callable[[Rows], object]) -> Forge:
    def forge(folder: Path) -> None:
        def changed(rows: Rows) -> Rows:
            change(rows)
            return rows

        edit_parquet(folder / file, changed)
        reseal(folder)

    return forge


def measured(at: int, **changes: object) -> Forge:
    """Changes an answer that is counts."""
    return answers(lambda rows: [row for row in rows if row["noisy_counts"] is not None][at].update(changes))


def counts(at: int, change: Callable[[list[int]], list[int | None]]) -> Forge:
    """Changes the counts of an answer."""

    def changed(rows: Rows) -> None:
        row = [row for row in rows if row["noisy_counts"] is not None][at]
        row["noisy_counts"] = change(row["noisy_counts"])

    return answers(changed)


def selected(change: Callable[[int], int | None]) -> Forge:
    """Changes the first answer that is a choice."""

    def changed(rows: Rows) -> None:
        row = next(row for row in rows if row["selected"] is not None)
        row["selected"] = change(row["selected"])

    return answers(changed)


def manifest(path: str, value: object) -> Forge:
    """Changes a field of the manifest."""

    def forge(folder: Path) -> None:
        document = manifest_of(folder).model_dump()
        inner, (*above, last) = document, path.split(".")
        for step in above:
            inner = inner[step]
        inner[last] = value
        reseal(folder, Manifest.model_validate(document))

    return forge


def entries(change: Callable[[Entries], object], *, adjust: bool = False) -> Forge:
    """Changes entries in place, chains them anew and, if asked, lets the guarantee follow."""

    def forge(folder: Path) -> None:
        found = entries_of(folder)
        change(found)
        write_entries(folder, found)
        if adjust:
            said = manifest_of(folder)
            spent = sum((found[at].rho for at in charges(found)), Fraction(0))
            reseal(folder, said.model_copy(update={"guarantee": guarantee_of(spent, said.privacy)}))

    return forge


def charges(found: Entries) -> list[int]:
    return [at for at, entry in enumerate(found) if isinstance(entry, Charge) and entry.run == RUN]


def charge(number: int, **changes: object) -> Callable[[Entries], None]:
    def change(found: Entries) -> None:
        at = charges(found)[number]
        found[at] = found[at].model_copy(update=changes)

    return change


def granted(**changes: object) -> Callable[[Entries], None]:
    def change(found: Entries) -> None:
        assert isinstance(found[0], Grant)
        found[0] = found[0].model_copy(update=changes)

    return change


def foreign(found: Entries) -> None:
    """A charge of another run among the run's own."""
    one = found[charges(found)[3]]
    found.insert(3, one.model_copy(update={"run": ANOTHER}))


def swapped(found: Entries) -> None:
    one, other = charges(found)[:2]
    found[one], found[other] = found[other], found[one]


def renamed(found: Entries) -> None:
    found[:] = [entry.model_copy(update={"run": ANOTHER}) for entry in found]


def sealed(found: Entries) -> None:
    """A seal after the last charge, which a ledger does not show."""
    found.append(Seal(number=0, previous=FIRST, nonce="n", run=RUN))


def charged_elsewhere(folder: Path) -> None:
    """The charges of a run that was granted something else, in a chain of their own."""
    found = entries_of(folder)
    write_entries(folder, found)
    grant = found[0].model_copy(update={"at": datetime(2031, 2, 3, tzinfo=UTC)})
    data = [to_bytes(grant), *unpack_entries((folder / LEDGER).read_bytes())[1:]]
    (folder / LEDGER).write_bytes(pack_entries(data))
    (folder / LEDGER_JSON).write_bytes(entries_to_json(data))
    reseal(folder)


def relinked(folder: Path) -> None:
    """An entry that follows another one than the one before it; nothing else is changed."""
    found = entries_of(folder)
    assert isinstance(found[2], Charge)
    found[3] = found[3].model_copy(update={"previous": found[2].previous})
    data = [to_bytes(entry) for entry in found]
    (folder / LEDGER).write_bytes(pack_entries(data))
    (folder / LEDGER_JSON).write_bytes(entries_to_json(data))
    reseal(folder)


def table(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Forge:
    """Changes the synthetic table, and keeps the types of the columns that stay."""

    def forge(folder: Path) -> None:
        schema = pq.read_schema(folder / SYNTHETIC)
        changed = change(pd.read_parquet(folder / SYNTHETIC))
        is_same = set(changed.columns) == set(schema.names)
        kept = pa.schema([schema.field(name) for name in changed.columns], schema.metadata) if is_same else None
        pq.write_table(pa.Table.from_pandas(changed, kept, preserve_index=False), folder / SYNTHETIC)
        reseal(folder)

    return forge


def cell(column: str, value: object) -> Forge:
    def changed(frame: pd.DataFrame) -> pd.DataFrame:
        at = frame.index[frame[column].notna() & (frame[column] != value)][0]
        frame.loc[at, column] = value
        return frame

    return table(changed)


def potentials(folder: Path) -> None:
    arrays = unpack_arrays((folder / MODEL).read_bytes())
    first = arrays["potentials0"].copy()
    first.flat[0] += 1e-9
    (folder / MODEL).write_bytes(pack_arrays({**arrays, "potentials0": first}))
    reseal(folder)


def total(value: float) -> Forge:
    """Changes how many rows the model stands for."""

    def forge(folder: Path) -> None:
        arrays = unpack_arrays((folder / MODEL).read_bytes())
        document = arrays["document"].tobytes()
        said = document[document.index(b'"total":') : document.index(b',"step"')]
        changed = document.replace(said, f'"total":{value!r}'.encode())
        (folder / MODEL).write_bytes(pack_arrays({**arrays, "document": np.frombuffer(changed, np.uint8)}))
        reseal(folder)

    return forge


def replaced(file: str, old: bytes, new: bytes) -> Forge:
    def forge(folder: Path) -> None:
        data = (folder / file).read_bytes()
        assert old in data
        overwritten(file, data.replace(old, new, 1))(folder)

    return forge


def standing(**change: Fraction) -> Forge:
    """Has the account stand otherwise than it did."""

    def forge(folder: Path) -> None:
        said = manifest_of(folder)
        reseal(folder, said.model_copy(update={"account": said.account.model_copy(update=change)}))

    return forge


def overwritten(file: str, data: bytes) -> Forge:
    def forge(folder: Path) -> None:
        (folder / file).write_bytes(data)
        reseal(folder)

    return forge


def checks(change: Callable[[tuple[object, ...]], tuple[object, ...]]) -> Forge:
    """Changes the list of checks of the table."""

    def forge(folder: Path) -> None:
        found = Validation.model_validate_json((folder / VALIDATION).read_bytes())
        said = found.model_copy(update={"results": change(found.results)})
        overwritten(VALIDATION, said.model_dump_json(indent=2).encode() + b"\n")(folder)

    return forge


def found_again(rows: Rows) -> None:
    next(row for row in rows if row["is_lost"])["is_lost"] = False


FORGERIES: dict[str, tuple[Forge, str]] = {
    "the first noisy count": (counts(0, lambda all: [all[0] + 1, *all[1:]]), "replay"),
    "the last noisy count": (counts(-1, lambda all: [all[0] + 1, *all[1:]]), "model"),
    "one count too few": (counts(0, lambda all: all[:-1]), "replay"),
    "one count for all groups": (counts(-1, lambda all: all[:1]), "replay or model"),
    "no counts": (counts(-1, lambda _: []), "replay"),
    "a count that is null": (counts(0, lambda all: [None, *all[1:]]), "replay"),
    "counts that are null": (measured(0, noisy_counts=None), "replay"),
    "a sigma": (measured(0, sigma=1.0), "replay"),
    "a sigma that is not a number": (measured(0, sigma=np.nan), "replay"),
    "a sigma that is null": (measured(0, sigma=None), "replay"),
    "a choice": (selected(lambda index: 1 - min(index, 1)), "replay"),
    "a choice out of range": (selected(lambda _: 9999), "replay"),
    "a choice from the end": (selected(lambda _: -1), "replay"),
    "a choice that is null": (selected(lambda _: None), "replay"),
    "the kind of an answer": (measured(0, kind="select"), "replay"),
    "the marginal of an answer": (measured(0, clique=["age"]), "replay"),
    "the price of an answer": (measured(0, rho="1/100000"), "replay"),
    "the groups of an answer": (measured(0, group_of_cell=[0, 0]), "replay"),
    "the step of an answer": (measured(0, step=5), "replay"),
    "the first answer dropped": (answers(lambda rows: rows.pop(0)), "replay"),
    "the last answer dropped": (answers(lambda rows: rows.pop()), "replay"),
    "all answers dropped": (answers(lambda rows: rows.clear()), "replay"),
    "an answer added": (answers(lambda rows: rows.append(dict(rows[-1]))), "replay"),
    "answers in another order": (answers(lambda rows: rows.reverse()), "replay"),
    "an answer said to be lost": (measured(0, is_lost=True), "replay"),
    "the last answer said to be lost": (measured(-1, is_lost=True), "replay or model"),
    "a lost answer said not to be": (answers(found_again), "replay"),
    "no answers file": (overwritten(ANSWERS, b"PAR1"), "replay"),
    "an empty answers file": (overwritten(ANSWERS, b""), "replay"),
    "a cheaper charge": (entries(charge(2, rho=Fraction(1, 1000))), "budget"),
    "a cheaper charge with its guarantee": (entries(charge(2, rho=Fraction(1, 1000)), adjust=True), "replay"),
    "a dearer charge": (entries(charge(2, rho=Fraction(1))), "chain"),
    "the last charge left out": (entries(lambda found: found.pop(charges(found)[-1]), adjust=True), "replay"),
    "the first charge left out": (entries(lambda found: found.pop(charges(found)[0]), adjust=True), "chain"),
    "a charge made twice": (entries(lambda found: found.append(found[charges(found)[-1]])), "chain"),
    "a charge of another run": (entries(foreign), "chain"),
    "charges in another order": (entries(swapped), "chain"),
    "a charge for another marginal": (entries(charge(0, clique=("age", "score"))), "replay"),
    "a charge of another kind": (entries(charge(0, mechanism="select")), "replay"),
    "a charge with another question": (entries(charge(0, request="0" * 64)), "replay"),
    "a charge of nothing": (entries(charge(0, rho=Fraction(0))), "chain"),
    "a charge below nothing": (entries(charge(0, rho=Fraction(-1))), "chain"),
    "a charge without its grant's hash": (charged_elsewhere, "chain"),
    "a grant of less": (entries(granted(rho=Fraction(1, 100))), "chain"),
    "a grant of more": (entries(granted(rho=Fraction(1))), "budget"),
    "a grant with other inputs": (entries(granted(inputs="0" * 64)), "budget"),
    "a grant for the quality of a release": (entries(granted(quality_of=ANOTHER)), "budget"),
    "a grant of another dataset": (entries(granted(dataset="census")), "budget"),
    "no grant": (entries(lambda found: found.pop(0)), "chain"),
    "two grants": (entries(lambda found: found.insert(1, found[0])), "chain"),
    "a seal": (entries(sealed), "chain"),
    "the entries of another run": (entries(renamed), "budget"),
    "no entries": (lambda folder: write_entries(folder, []), "chain"),
    "an entry relinked": (relinked, "chain"),
    "the ledger as JSON": (replaced(LEDGER_JSON, b'"step": 2', b'"step": 3'), "chain"),
    "a column of the ledger": (rows_of(LEDGER, lambda rows: rows[2].update(rho=0.0)), "ledger or chain"),
    "the hash of an entry": (rows_of(LEDGER, lambda rows: rows[2].update(hash="0" * 64)), "ledger or chain"),
    "the text of an entry": (rows_of(LEDGER, lambda rows: rows[2].update(entry="{}")), "ledger or chain"),
    "no ledger file": (overwritten(LEDGER, b"PAR1"), "ledger or chain"),
    "the number of charges": (manifest("account.charges", 1), "chain"),
    "the head of the chain": (manifest("account.head", "0" * 64), "chain"),
    "a smaller epsilon": (manifest("guarantee.epsilon", 1.0), "budget"),
    "a smaller rho": (manifest("guarantee.rho", Fraction(1, 100)), "budget"),
    "a smaller delta": (manifest("guarantee.delta", 1e-12), "budget"),
    "another unit": (manifest("guarantee.unit", "a household"), "budget"),
    "another configured epsilon": (manifest("privacy.epsilon", 1.0), "budget"),
    "a person instead of a row": (manifest("privacy.person", {"column": "who", "max_rows": 3}), "budget"),
    "other inputs": (manifest("inputs", "0" * 64), "budget"),
    "another run": (manifest("run", ANOTHER), "budget"),
    "another setting": (manifest("algorithm.rounds", 5), "replay"),
    "another schema": (manifest("table.columns", [{"name": "sex", "kind": "boolean", "outside": "refuse"}]), "replay"),
    "another seed": (manifest("generation.seed", 12), "rows"),
    "another number of rows": (manifest("rows", 10), "rows"),
    "another number of rows to make": (manifest("generation.rows", 10), "rows"),
    "a cell": (cell("age", 3), "rows"),
    "a cell outside the schema": (cell("age", 99), "rows"),
    "a null": (cell("score", None), "rows"),
    "the last bit of a real": (table(lambda frame: frame.assign(score=np.nextafter(frame["score"], 2))), "rows"),
    "a row": (table(lambda frame: frame.iloc[:-1]), "rows"),
    "rows in another order": (table(lambda frame: frame.iloc[::-1].reset_index(drop=True)), "rows"),
    "no rows": (table(lambda frame: frame.iloc[:0]), "rows"),
    "columns in another order": (table(lambda frame: frame[frame.columns[::-1]]), "rows"),
    "a column too many": (table(lambda frame: frame.assign(who=1)), "rows"),
    "a column too few": (table(lambda frame: frame.drop(columns="age")), "rows"),
    "no table file": (overwritten(SYNTHETIC, b"PAR1"), "rows"),
    "an empty table file": (overwritten(SYNTHETIC, b""), "rows"),
    "a potential of the model": (potentials, "model"),
    "the model's total": (total(7.0), "model"),
    "a model without end": (total(1e300), "model"),
    "no model file": (overwritten(MODEL, b"PK"), "model"),
    "a check too many": (checks(lambda results: (*results, results[-1])), "validation"),
    "a check too few": (checks(lambda results: results[:-1]), "validation"),
    "a check that failed": (replaced(VALIDATION, b'"success": true', b'"success": false'), "validation"),
    "no validation": (overwritten(VALIDATION, b"{}"), "validation"),
    "no text in the validation": (overwritten(VALIDATION, b"\xff"), "validation"),
    "a better guarantee in the report": (replaced(REPORT, b"epsilon 2", b"epsilon 1"), "report"),
    "a link in the report": (replaced(REPORT, b"<footer>", b'<footer><a href="//x.example">x</a>'), "report"),
    "no report": (overwritten(REPORT, b""), "report"),
    "an account with a cap below the grant": (standing(cap=Fraction(1, 1000)), "budget"),
    "an account with another cap": (standing(cap=Fraction(100)), "report"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_release_is_found_by_computing_it_again(folder: Path, forgery: str) -> None:
    forge, subject = FORGERIES[forgery]
    forge(folder)
    found = problems(folder)
    assert any(name.startswith(tuple(subject.split(" or "))) for name in found), found


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b'{"format": "ppsyn-release-4"}', b"null"])
def test_a_sealed_manifest_that_is_none_is_found(folder: Path, text: bytes) -> None:
    seal(folder, text)
    assert MANIFEST in problems(folder)


@pytest.mark.parametrize("name", ["../store.txt", "/etc/hostname", "deep/../../x", "a//b", ".", ""])
def test_a_manifest_that_names_files_elsewhere_is_found(folder: Path, name: str) -> None:
    said = manifest_of(folder)
    files = {**said.files, name: said.files[MODEL]}
    seal(folder, said.model_copy(update={"files": files}).to_bytes())
    assert problems(folder)


def test_a_manifest_that_leaves_a_file_out_is_found(folder: Path) -> None:
    said = manifest_of(folder)
    files = {name: digest for name, digest in said.files.items() if name != VALIDATION}
    seal(folder, said.model_copy(update={"files": files}).to_bytes())
    assert VALIDATION in problems(folder)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(FILES), share=st.floats(0, 1, exclude_max=True), pattern=st.integers(1, 255))
def test_damage_under_a_new_seal_is_told_and_the_account_finds_it(
    release: Published, folder: Path, file: str, share: float, pattern: int
) -> None:
    data = (release.folder / file).read_bytes()
    place = int(share * len(data))
    try:
        (folder / file).write_bytes(data[:place] + bytes([data[place] ^ pattern]) + data[place + 1 :])
        reseal(folder, manifest_of(release.folder))
        assert problems(folder, release.account)
    finally:
        (folder / file).write_bytes(data)


# A forger who makes up everything


def test_a_release_made_up_as_a_whole_is_found_with_the_account_only(release: Published, tmp_path: Path) -> None:
    forged = make_release(tmp_path, people(seed=5), run=RUN)
    assert problems(forged.folder) == {}
    assert problems(forged.folder, forged.account) == {}
    assert set(problems(forged.folder, release.account)) == {"account"}


def test_another_schema_text_under_a_new_seal_is_found_with_the_account(release: Published, folder: Path) -> None:
    said = manifest_of(folder)
    retell(folder, said.model_copy(update={"table": said.table.model_copy(update={"excluded": ("who",)})}))
    assert problems(folder) == {}
    assert set(problems(folder, release.account)) == {"account"}


@pytest.mark.parametrize("change", [{"cap": Fraction(100)}])
def test_another_standing_of_the_account_is_found_with_the_account(
    release: Published, folder: Path, change: dict[str, Fraction]
) -> None:
    said = manifest_of(folder)
    retell(folder, said.model_copy(update={"account": said.account.model_copy(update=change)}))
    assert problems(folder) == {}
    assert set(problems(folder, release.account)) == {"account"}


def test_a_release_of_a_run_that_the_account_does_not_know_is_found(release: Published, tmp_path: Path) -> None:
    forged = make_release(tmp_path, run=ANOTHER)
    assert set(problems(forged.folder, release.account)) == {"account"}


def test_a_damaged_account_is_found(tmp_path: Path) -> None:
    made = make_release(tmp_path)
    entry = tmp_path / "store" / "accounts" / "people" / "charges" / RUN / "000002.json"
    entry.write_bytes(entry.read_bytes().replace(b'"step":', b'"Step":'))
    assert "account" in problems(made.folder, made.account)


def last(folder: Path) -> Path:
    return max(folder.glob("*.json"))


def without_its_last_charge(charged: Path) -> None:
    """The last charge gone, and a seal that follows the one before it."""
    last(charged).unlink()
    gone = last(charged)
    before = from_bytes(gone.read_bytes())
    assert isinstance(before, Charge)
    gone.write_bytes(to_bytes(Seal(number=before.number, previous=before.previous, nonce="n", run=RUN)))


def swapped_in_the_account(charged: Path) -> None:
    one, other = charged / "000001.json", charged / "000002.json"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


HARMED_ACCOUNTS: dict[str, Callable[[Path, Path], object]] = {
    "the seal is gone": lambda _, charged: last(charged).unlink(),
    "the last charge is gone, and the seal moved up": lambda _, charged: without_its_last_charge(charged),
    "a charge is gone": lambda _, charged: (charged / "000001.json").unlink(),
    "all charges are gone": lambda _, charged: shutil.rmtree(charged),
    "two charges are swapped": lambda _, charged: swapped_in_the_account(charged),
    "a charge is added after the seal": lambda _, charged: shutil.copy(
        charged / "000001.json", charged / f"{int(last(charged).stem) + 1:06d}.json"
    ),
    "the run is open": lambda account, _: last(account).unlink(),
    "the run is unknown": lambda account, _: [last(account).unlink() for _ in range(3)],
}


@pytest.mark.parametrize("harm", HARMED_ACCOUNTS)
def test_an_account_that_does_not_hold_what_a_release_says_is_found(
    release: Published, tmp_path: Path, harm: str
) -> None:
    made = tmp_path / "made"
    shutil.copytree(Path(release.root.location.url), made)
    account = made / "accounts" / "people"
    HARMED_ACCOUNTS[harm](account, account / "charges" / RUN)
    store = StoredAccount(open_store(Location(url=str(made))), "people")
    assert set(problems(release.folder, store)) == {"account"}


# Releases of format 1, whose ledger is a part of the account


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_release_of_another_format_is_refused_with_the_version_that_reads_it(folder: Path, number: int) -> None:
    data = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(data.replace(b"ppsyn-release-4", f"ppsyn-release-{number}".encode()))
    code, store = manifest_code(data), open_store(Location(url=str(folder)))
    with pytest.raises(ConfigError, match=rf"Expected format ppsyn-release-4, got ppsyn-release-{number}\. ") as caught:
        read_manifest(store)
    assert f"Read it with ppsyn {code['ppsyn']} (source {code['source'][:12]}), which wrote it." in str(caught.value)


def test_a_literal_manifest_of_the_first_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{\n  "format": "ppsyn-release-1",\n  "dataset": "people",\n  "run": "r1"\n}\n')
    with pytest.raises(ConfigError, match=r"got ppsyn-release-1\. Read it with a development version of ppsyn"):
        read_manifest(open_store(Location(url=str(tmp_path))))


def manifest_code(data: bytes) -> dict[str, str]:
    return json.loads(data)["code"]


def test_an_account_that_is_gone_is_found(tmp_path: Path, release: Published) -> None:
    nowhere = StoredAccount(open_store(Location(url=str(tmp_path))), "people")
    assert "account" in problems(release.folder, nowhere)


def test_the_account_knows_the_release_by_the_digest_of_its_manifest(release: Published) -> None:
    closes = [e for e in map(from_bytes, release.account.entries()) if isinstance(e, Close) and e.run == RUN]
    assert [e.manifest for e in closes] == [hashlib.sha256((release.folder / MANIFEST).read_bytes()).hexdigest()]
