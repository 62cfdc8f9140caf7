"""The report of a release, from its folder and from nothing else."""

from ppsyn.releases.layout import ANSWERS, LEDGER, MODEL, REPORT
from ppsyn.releases.reader import read_validation, synthesis_from
from ppsyn.releases.tables import unpack_answers, unpack_entries
from ppsyn.reports.release import render
from ppsyn.reports.released import Released
from ppsyn.schemas.account import from_bytes
from ppsyn.schemas.manifest import Manifest
from ppsyn.storage import Store


def make_report(store: Store, manifest: Manifest) -> bytes:
    """The page, from the other files of the release in this store.

    Neither when the release was published nor the digest of the report itself has a part in it.
    """
    entries = unpack_entries(store.get(LEDGER))
    released = Released(
        manifest=manifest,
        entries=tuple(map(from_bytes, entries)),
        answers=tuple(unpack_answers(store.get(ANSWERS))),
        synthesis=synthesis_from(manifest, store.get(MODEL), entries),
        validation=read_validation(store),
    )
    return render(released, REPORT)
