"""The page: one file that needs no other, no script and no network. Equal releases give equal bytes."""

from ppsyn.report.budget import budget, spending
from ppsyn.report.closing import audit, checks
from ppsyn.report.graph import graph
from ppsyn.report.heatmap import trust
from ppsyn.report.marginals import marginals
from ppsyn.report.markup import Markup, tag
from ppsyn.report.opening import guarantee, headline
from ppsyn.report.released import Released, charged
from ppsyn.report.rounds import rounds, told_rounds
from ppsyn.report.style import STYLE

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
    body = tag(
        "body",
        tag("a", "Skip to the contents", href="#guarantee", class_="skip"),
        tag("header", headline(released), _contents()),
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
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", f"{released.manifest.dataset}: synthetic table, release {released.manifest.run}"),
        tag("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en').text}\n".encode()


def _contents() -> Markup:
    links = (tag("li", tag("a", text, href=f"#{name}")) for name, text in _CONTENTS.items())
    return tag("nav", tag("ul", *links), aria_label="Contents")
