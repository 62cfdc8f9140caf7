"""Plant all faults, two at a time, and tell which test caught each: `make mutants`.

python -m mutants                    all of them, and write the table to docs/mutants.md
python -m mutants C1 C5 "half the"   those of some claims, or whose names hold a text; no page is written
"""

import os
import platform
import queue
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mutants.catalogue import FAULTS
from mutants.fault import Fault
from mutants.suite import (
    ROOT,
    Copy,
    Outcome,
    PatchError,
    files_of,
    is_nightly,
    patched,
    places_of,
    source_of,
    try_fault,
)

PAGE = ROOT / "docs" / "mutants.md"
AT_ONCE = 2


def main(words: Sequence[str]) -> int:
    """Run the suite; 0 if every fault is caught."""
    faults = [fault for fault in FAULTS if not words or any(_is_meant(fault, word) for word in words)]
    problems = list(problems_of(faults))
    if problems or not faults:
        _tell("\n".join(problems) or "There is no such fault.")
        return 2
    with tempfile.TemporaryDirectory(prefix="ppsyn-mutants-") as folder, _copies(Path(folder)) as copies:
        if not _passes_without(faults, copies):
            return 2
        found = list(zip(faults, _outcomes(faults, copies), strict=True))
    sections = {
        claim: section_of(claim, [each for each in found if each[0].claim == claim]) for claim in _claims(faults)
    }
    _tell("\n".join(sections.values()))
    if set(words) <= set(_claims(FAULTS)):
        before = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        PAGE.write_text(page_of(sections, before), encoding="utf-8")
    missed = [(fault, outcome) for fault, outcome in found if outcome.verdict != "caught"]
    for fault, outcome in missed:
        _tell(f"NOT CAUGHT: {fault.name!r} ({fault.claim}) {outcome.verdict}: {outcome.detail}")
    _tell(f"{len(found) - len(missed)} of {len(found)} faults are caught.")
    return 1 if missed else 0


def _claims(faults: Sequence[Fault]) -> list[str]:
    return list(dict.fromkeys(fault.claim for fault in faults))


def _is_meant(fault: Fault, word: str) -> bool:
    return word == fault.claim or (len(word) > len("C12") and word in fault.name)


def problems_of(faults: Sequence[Fault]) -> Iterator[str]:
    """Patches that do not apply, and tests that are not among those of their claim."""
    for fault in faults:
        try:
            patched(fault, source_of(fault))
        except PatchError as error:
            yield str(error)
        if fault.told_by and not places_of(fault.told_by, files_of(fault.claim)):
            yield f"{fault.name!r}: {fault.told_by} is no test of {fault.claim}."


@contextmanager
def _copies(folder: Path) -> Iterator["queue.SimpleQueue[Copy]"]:
    copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    with ExitStack() as stack:
        for number in range(AT_ONCE):
            copies.put(stack.enter_context(closing(Copy(folder / str(number)))))
        yield copies


def _passes_without(faults: Sequence[Fault], copies: "queue.SimpleQueue[Copy]") -> bool:
    """Whether the tests that are known to tell of faults pass on the plain copy, without which they tell nothing."""
    tests = dict.fromkeys((f.claim, f.told_by, is_nightly(f.told_by, files_of(f.claim))) for f in faults if f.told_by)
    groups = dict.fromkeys((claim, at_night) for claim, _, at_night in tests)
    runs = [
        (
            claim,
            [at for c, test, n in tests if (c, n) == (claim, at_night) for at in places_of(test, files_of(c))],
            at_night,
        )
        for claim, at_night in groups
    ]

    def run(claim: str, places: list[str], at_night: bool) -> bool:
        copy = copies.get()
        try:
            outcome = copy.run(places, nightly=at_night)
        finally:
            copies.put(copy)
        _tell(f"without a fault   {claim:4} {outcome.seconds:6.1f} s   {len(places)} tests")
        if outcome.verdict != "survived":
            _tell(f"The tests of {claim} do not pass without a fault: {outcome.test} {outcome.detail}")
        return outcome.verdict == "survived"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return all(list(pool.map(lambda each: run(*each), runs)))


def _outcomes(faults: Sequence[Fault], copies: "queue.SimpleQueue[Copy]") -> list[Outcome]:
    def run(fault: Fault) -> Outcome:
        copy = copies.get()
        try:
            outcome = try_fault(copy, fault)
        finally:
            copies.put(copy)
        _tell(f"{outcome.verdict:9} {fault.claim:4} {outcome.seconds:6.1f} s   {fault.name}   {outcome.test}")
        return outcome

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, faults))


HEAD = """# Planted faults

`make mutants` plants these faults one at a time in a copy of the source. For each it runs only the tests of the claim
of [PRIVACY.md](../ppsyn/PRIVACY.md) that the fault breaks. All tests pass without a fault. A fault is caught if a test
fails on source that still runs. The command fails if a patch does not apply or if no test of the claim catches a fault.
It generates this page; the faults are in `tests/mutants/`.

"""


def page_of(sections: Mapping[str, str], before: str = "") -> str:
    """The page with these tables, one for each claim, in the place of those that it had before."""
    kept = {part.split("\n")[0]: f"## {part.rstrip()}\n" for part in before.split("\n## ")[1:]}
    found = {**kept, **sections}
    return HEAD + "\n".join(found[claim] for claim in _claims(FAULTS) if claim in found)


def section_of(claim: str, found: Sequence[tuple[Fault, Outcome]]) -> str:
    """The table of a claim."""
    files, caught = files_of(claim), sum(outcome.verdict == "caught" for _, outcome in found)
    rows = [
        f"| {fault.name} | {fault.why} | {_by(outcome, files)} | {outcome.seconds:.1f} |" for fault, outcome in found
    ]
    return "\n".join(
        [
            f"## {claim}",
            "",
            f"{caught} of {len(found)} caught, {AT_ONCE} at a time on {os.cpu_count()} cores ({platform.machine()}, "
            f"{datetime.now(UTC):%Y-%m-%d}).",
            "",
            f"| fault | why it breaks {claim} | caught by | s |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _by(outcome: Outcome, files: Sequence[str]) -> str:
    if outcome.verdict != "caught":
        return f"**nothing: {outcome.verdict}**"
    return f"`{outcome.test}`" + " (at night)" * is_nightly(outcome.test.split("[")[0], files)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
