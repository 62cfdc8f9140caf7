"""The suite of planted faults, on a few of them: what is caught, what survives, and what is no fault at all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from mutants.__main__ import page_of, problems_of, section_of
from mutants.catalogue import FAULTS
from mutants.fault import Fault
from mutants.suite import Copy, Outcome, PatchError, files_of, is_nightly, patched, places_of, source_of, try_fault

CLAIMS = [f"C{number}" for number in range(1, 13)]

FORGETFUL, MISPRICED = (
    next(fault for fault in FAULTS if fault.name == name)
    for name in ("the sensitivity of a score forgets the weight", "a score weighs twice")
)
GROUPS = "    groups = candidate.partition.sum_counts(exact_counts)\n"
HARMLESS = Fault(
    "nothing is wrong",
    "C2",
    "ppsyn/privacy/scores.py",
    GROUPS,
    GROUPS.replace("exact_counts", "exact_counts.copy()"),
    "",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with closing(Copy(tmp_path_factory.mktemp("mutants"))) as made:
        yield made


def test_every_patch_applies_exactly_once_and_names_a_test_of_its_claim() -> None:
    assert list(problems_of(FAULTS)) == []
    assert all(fault.why and fault.told_by for fault in FAULTS)
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_every_claim_has_faults() -> None:
    assert sorted({fault.claim for fault in FAULTS}) == sorted(CLAIMS)
    assert len(FAULTS) >= 67


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_files_of_a_claim_begin_with_its_own(claim: str) -> None:
    assert files_of(claim)[0].startswith(f"tests/privacy/test_{claim.lower()}_")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [FORGETFUL, MISPRICED], ids=lambda fault: fault.name)
def test_a_fault_is_caught_by_a_test_of_its_claim(copy: Copy, fault: Fault) -> None:
    outcome = try_fault(copy, fault)
    assert (outcome.verdict, outcome.test.split("[")[0]) == ("caught", fault.told_by)
    assert copy.run(places_of(fault.told_by, files_of(fault.claim))).verdict == "survived"


@pytest.mark.slow
def test_a_patch_that_changes_nothing_of_weight_survives(copy: Copy) -> None:
    assert try_fault(copy, HARMLESS).verdict == "survived"


def test_the_page_says_what_survived() -> None:
    assert "| **nothing: survived** |" in section_of("C2", [(HARMLESS, Outcome("survived"))])


@pytest.mark.slow
@pytest.mark.parametrize(
    "new", [GROUPS.replace("exact_counts", "no_such_name"), f"    import no_such_module\n{GROUPS}"]
)
def test_a_patch_that_is_no_program_is_not_caught(copy: Copy, new: str) -> None:
    outcome = try_fault(copy, replace(HARMLESS, new=new, told_by="test_c2_the_declared_sensitivity_is_attained"))
    assert outcome.verdict == "broken"
    assert "no_such" in outcome.detail


@pytest.mark.slow
def test_a_patch_that_cannot_be_imported_is_not_caught(copy: Copy) -> None:
    text = '"""The score of a candidate,'
    fault = Fault("no module", "C2", "ppsyn/privacy/scores.py", text, f"import no_such_module\n{text}", "")
    outcome = try_fault(copy, fault)
    assert outcome.verdict == "broken"
    assert "no_such_module" in outcome.detail


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (replace(HARMLESS, old="candidate"), "times in ppsyn/privacy/scores.py, not once"),
        (
            replace(HARMLESS, file="ppsyn/privacy/ledger.py"),
            "0 times in ppsyn/privacy/ledger.py, not once. It is in ppsyn/privacy/scores",
        ),
        (replace(HARMLESS, old="no such text"), "anchor the patch anew"),
        (
            replace(HARMLESS, file="ppsyn/nowhere.py"),
            "there is no ppsyn/nowhere.py. Its text is in ppsyn/privacy/scores.py",
        ),
        (replace(HARMLESS, new=GROUPS), "changes nothing"),
        (replace(HARMLESS, new="    groups = (\n"), "is no Python"),
    ],
)
def test_a_patch_that_does_not_apply_is_told_with_where_its_text_is(fault: Fault, told: str) -> None:
    with pytest.raises(PatchError, match=told):
        patched(fault, source_of(fault))


def test_a_test_of_another_claim_does_not_count() -> None:
    (problem,) = problems_of([replace(FORGETFUL, told_by="test_c1_the_declared_sensitivity_is_attained")])
    assert "is no test of C2" in problem


def test_long_tests_of_noise_are_known() -> None:
    files = files_of("C3")
    assert is_nightly("test_c3_selection_has_the_scale_that_the_budget_buys_to_one_percent", files)
    assert not is_nightly("test_c3_selection_has_the_scale_that_the_budget_buys", files)


def test_what_is_caught_is_in_the_page_with_the_test_that_caught_it() -> None:
    section = section_of("C2", [(FORGETFUL, Outcome("caught", "test_x[1]", "", 1.5))])
    assert f"| {FORGETFUL.name} | {FORGETFUL.why} | `test_x[1]` | 1.5 |" in section
    assert "1 of 1 caught" in section


def test_the_table_of_a_claim_takes_the_place_of_the_one_before_and_leaves_the_others() -> None:
    old, new = (section_of("C2", [(FORGETFUL, Outcome("caught", test))]) for test in ("test_old", "test_new"))
    other = section_of("C10", [(FORGETFUL, Outcome("caught", "test_other"))])
    page = page_of({"C10": other, "C2": old})
    assert page_of({}, page) == page
    assert page.index("test_old") < page.index("test_other")
    assert page_of({"C2": new}, page) == page.replace("test_old", "test_new")


def test_nothing_is_planted_here() -> None:
    source = Path(__file__).parents[1] / FORGETFUL.file
    assert FORGETFUL.old in source.read_text(encoding="utf-8")
