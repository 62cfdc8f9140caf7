"""The page, and the mark that every part of it bears. All of it is private."""

from collections.abc import Iterator

from ppsyn.evaluation.owner_report.distances import distances
from ppsyn.evaluation.owner_report.findings import Findings
from ppsyn.evaluation.owner_report.marginals import attributes, together
from ppsyn.evaluation.owner_report.usage import classifiers, ranges
from ppsyn.quality.figures import expected_reach
from ppsyn.quality.questions import sets_of
from ppsyn.reports.elements import contents, paragraphs, section
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.sheet import sheet
from ppsyn.reports.words import amount, count, finely, share
from ppsyn.schemas.manifest import Manifest
from ppsyn.synthesis import Synthesis

MARK = "PRIVATE: exact numbers of the private table. Do not publish, send or keep with the release."

_STYLE = """
.mark { position: sticky; top: 0; z-index: 1; margin: 0; max-width: none; padding: .5rem 1rem; text-align: center;
  background: #8f1d16; color: #ffffff; font-weight: 600; font-size: .92rem; line-height: 1.35; }
section { scroll-margin-top: 3.5rem; }
.skip:focus { top: 3.5rem; z-index: 2; }
.warning { border-left-color: #b3261e; }
.card h3 { font-size: .95rem; margin: 0 0 .25rem; }
@media print {
  .mark { position: static; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  @page { margin: 22mm 16mm 18mm;
    @top-center { content: "PRIVATE: do not publish"; font: bold 10pt sans-serif; color: #8f1d16; }
    @bottom-center { content: "PRIVATE: do not publish"; font: bold 10pt sans-serif; color: #8f1d16; } }
}
"""

_SHARE_OF_COST = 50
"""The paid figures that are offered cost this part of what the release cost."""


def render(manifest: Manifest, synthesis: Synthesis, found: Findings, release: str) -> bytes:
    """The page.

    Privacy:
        It holds exact counts of the private table, and is for the eyes of the data's owner.

    Args:
        manifest: Of the release.
        synthesis: The release, for the unit and the cost of what is offered.
        found: The comparison.
        release: Where the release is, as the owner calls it.
    """
    columns = {column.name: column for column in manifest.table.columns}
    links = {
        "private": "Before you read on",
        "attributes": "Attributes",
        "together": "Attributes together",
        "distances": "All marginals",
        "ranges": "Range queries",
        "classifiers": "Classifiers",
    }
    left_out = {"ranges": found.ranges is None, "classifiers": not found.classified, "together": not found.shown}
    return sheet(
        f"PRIVATE: {manifest.dataset}, release {manifest.run}, beside its private table",
        tag("a", "Skip to the contents", href="#private", class_="skip"),
        tag("aside", MARK, class_="mark", aria_label="Private"),
        tag("header", _headline(manifest, found), contents({k: v for k, v in links.items() if not left_out.get(k)})),
        tag(
            "main",
            _private(manifest, synthesis, found, release),
            attributes(found, columns),
            together(found, columns) if found.shown else None,
            distances(found, list(columns)),
            ranges(found.ranges, found.rows, columns) if found.ranges else None,
            classifiers(found) if found.classified else None,
        ),
        tag("footer", f"{MARK} Made for the owner of the data, from the private table and the release."),
        style=_STYLE,
    )


def _headline(manifest: Manifest, found: Findings) -> Markup:
    return tag(
        "div",
        tag("p", "Private companion of a release", class_="kicker"),
        tag("h1", manifest.dataset),
        tag("p", f"Release {manifest.run}, beside the private table as it is now.", class_="lead"),
        tag(
            "dl",
            *(tag("div", tag("dt", name), tag("dd", *told)) for name, told in _facts(manifest, found)),
            class_="facts",
        ),
    )


def _facts(manifest: Manifest, found: Findings) -> Iterator[tuple[str, list[Part]]]:
    goal = found.of(found.workload)
    yield "Rows, private", [count(found.rows), tag("small", f"{count(manifest.rows)} in the synthetic table")]
    yield (
        "Workload error",
        [finely(float(goal.mean())), tag("small", f"on average; {share(float(goal.max()))} at worst")],
    )
    singles = found.of([one.clique for one in found.singles])
    yield "Single attributes", [finely(float(singles.mean())), tag("small", f"{share(float(singles.max()))} at worst")]
    if found.ranges is not None:
        yield "Range queries", [finely(float(found.ranges.errors.mean())), tag("small", "off on average")]
    if found.classified:
        more = max(one.synthetic - one.private for one in found.classified)
        yield (
            "Classifiers",
            [f"{100 * more:+.1f} points", tag("small", "more errors, at most, than after private rows")],
        )


def _private(manifest: Manifest, synthesis: Synthesis, found: Findings, release: str) -> Markup:
    person = manifest.privacy.person
    figures = sum(len(one.statistics) for one in sets_of(synthesis.domain, manifest.method.workload))
    rho = float(manifest.guarantee.rho) / _SHARE_OF_COST
    reach = expected_reach(rho, figures, 1 if person is None else person.max_rows, found.rows)
    bounded = (
        ""
        if person is None
        else " All rows of the private table are counted here, also those beyond what one person may contribute to a "
        "release: what that bound changes is part of the differences."
    )
    return section(
        "private",
        "Before you read on",
        tag(
            "div",
            tag(
                "p",
                "Every number on this page is exact and computed from the private table. No noise covers it, and no "
                "account was charged for it: whoever sees the page may learn about single rows. Keep it as you keep "
                "the table.",
            ),
            class_="promise warning",
        ),
        paragraphs(
            "To choose settings, a seed or one of several releases by these numbers, and then to publish the result, "
            "is to publish something about the private table that no guarantee covers.",
            "Distances are the share of rows that would have to change their cell for the synthetic table to have the "
            f"counts of the private one; counts of the synthetic table are scaled to as many rows.{bounded}",
        ),
        tag("h3", "Figures that may be published"),
        paragraphs(
            f"Noisy figures of how good the release is can be bought from the dataset's account. At rho {rho:.2g}, "
            f"{share(1 / _SHARE_OF_COST)} of the {amount(manifest.guarantee.rho)} that the release cost, the mean and "
            f"the worst error of the workload, of attributes and of pairs would be told to within about {share(reach)} "
            "of the rows:",
        ),
        tag("pre", tag("code", f"ppsyn quality {release} --rho {rho:.2g}")),
    )
