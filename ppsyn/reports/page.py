"""The page: one file that needs no other, no script and no network. Equal releases give equal bytes."""

from ppsyn.reports.budget import budget, spending
from ppsyn.reports.closing import audit, checks
from ppsyn.reports.elements import contents
from ppsyn.reports.graph import graph
from ppsyn.reports.heatmap import trust
from ppsyn.reports.marginals import marginals
from ppsyn.reports.markup import tag
from ppsyn.reports.opening import guarantee, headline
from ppsyn.reports.released import Released, charged
from ppsyn.reports.rounds import rounds, told_rounds
from ppsyn.reports.sheet import sheet

_CONTENTS = {
    "guarantee": "What it promises",
    "budget": "The budget",
    "rounds": "Round by round",
    "marginals": "What was measured",
    "trust": "Which tables to trust",
    "model": "The model",
    "checks": "Checks",
    "audit": "Audit",
}


def render(released: Released, name: str) -> bytes:
    """The report of a release.

    Privacy:
        Claim C6. It is a function of the files that are published beside it.

    Args:
        released: The release.
        name: The file that it becomes, whose digest it cannot tell.
    """
    spent = spending(charged(released))
    return sheet(
        f"{released.manifest.dataset}: synthetic table, release {released.manifest.run}",
        tag("a", "Skip to the contents", href="#guarantee", class_="skip"),
        tag("header", headline(released), contents(_CONTENTS)),
        tag(
            "main",
            guarantee(released),
            budget(released),
            rounds(released, spent),
            marginals(released),
            trust(released, told_rounds(released, spent)),
            graph(released.synthesis.model),
            checks(released),
            audit(released, name),
        ),
        tag("footer", f"Made by ppsyn {released.manifest.code.ppsyn} from the released files alone."),
    )
