"""What the audit has found, for a person and for scripts, and its curves as a plot."""
# matplotlib's keyword arguments are not annotated.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import TypeAdapter, ValidationError

from ppsyn.code_version import code_version
from ppsyn.errors import ConfigError
from ppsyn.selftest.attacks import THRESHOLDS, Finding
from ppsyn.selftest.cases import CASES, MU, RHO
from ppsyn.selftest.tradeoff import gaussian_misses, zcdp_misses, zcdp_mu

_ACROSS = 3
_JSON = "selftest.json"
_FINDINGS: TypeAdapter[list[Finding]] = TypeAdapter(list[Finding])
HEADS = ("case", "runs", "folders", "CPU s", "claimed", "allowed", "answers", "table", "folder", "verdict")

NOTE = (
    f"mu at least, at 95%, of claimed {MU:g} (rho {float(RHO):g}). A verdict holds for all cases together at 99.9%.\n"
    "Lower bounds: they can show a fault, and never that there is none."
)


def cells(finding: Finding) -> tuple[str, ...]:
    """A case in words."""
    numbers = (finding.claimed, finding.allowed, finding.answers.mu, finding.table.mu, finding.folder.mu)
    counts = (f"{finding.runs:,}", f"{finding.folders:,}", f"{finding.seconds:,.0f}")
    return (finding.name, *counts, *(f"{mu:.3f}" for mu in numbers), "; ".join(finding.faults) or "holds")


def line(texts: Sequence[str]) -> str:
    """A line of the table."""
    name, *numbers, verdict = texts
    return f"{name:<12}" + "".join(f"{text:>9}" for text in numbers) + f"   {verdict}"


def table(findings: Sequence[Finding]) -> str:
    """The table as Markdown."""
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 2), "---"), *(cells(one) for one in findings)]
    return "".join(f"| {' | '.join(texts)} |\n" for texts in lines)


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """For scripts."""
    return {
        "ok": not any(one.faults for one in findings),
        "code": code(),
        "rho": float(RHO),
        "claimed_mu": MU,
        "zcdp_mu": zcdp_mu(float(RHO)),
        "thresholds": [0.0, *THRESHOLDS],
        "cases": [{**asdict(one), "faults": one.faults} for one in findings],
    }


@cache
def code() -> str:
    """By which findings of this version are known: the code that releases, and the code that attacks."""
    hashed = hashlib.sha256(code_version().model_dump_json().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def earlier(folder: Path) -> list[Finding]:
    """What the same code has left in `folder`; nothing, if another version was there.

    Raises:
        ConfigError: If the file there is not one that this command has written.
    """
    path = folder / _JSON
    if not path.is_file():
        return []
    try:
        written = json.loads(path.read_bytes())
        return _FINDINGS.validate_python(written["cases"]) if written["code"] == code() else []
    except (KeyError, TypeError, ValueError, ValidationError):
        raise ConfigError(
            f"Expected {_JSON} in {folder} to be one that this command wrote. Choose another folder."
        ) from None


def merged(findings: Sequence[Finding], before: Sequence[Finding]) -> list[Finding]:
    """One finding for each case, in the order of the cases; new ones take the place of earlier ones."""
    found = {one.name: one for one in (*before, *findings)}
    return [found[case.name] for case in CASES if case.name in found]


def write(findings: Sequence[Finding], folder: Path) -> None:
    """Write selftest.json, selftest.md and selftest.svg into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "selftest.md").write_text(table(findings), encoding="utf-8")
    (folder / _JSON).write_text(json.dumps(as_json(findings), indent=1) + "\n", encoding="utf-8")
    with rc_context({"svg.hashsalt": "ppsyn"}):
        _drawn(findings).savefig(folder / "selftest.svg", metadata={"Date": None})


def _drawn(findings: Sequence[Finding]) -> Figure:
    """A panel for each case, for the curves of a sound suite lie on top of each other."""
    rows = -(-len(findings) // _ACROSS)
    figure = Figure(figsize=(2.6 * _ACROSS, 2.6 * rows + 1.1), layout="constrained")
    panels = figure.subplots(rows, _ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, one in zip(panels, findings, strict=False):
        _draw(panel, one)
    for panel in panels[len(findings) :]:
        panel.set_axis_off()
    figure.supxlabel("false positives", fontsize="medium")
    figure.supylabel("false negatives", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="medium")
    return figure


def _draw(panel: Axes, finding: Finding) -> None:
    rates = np.linspace(0, 1, 201)
    panel.plot(rates, 1 - rates, color="#777777", linestyle=":", label="guessing")
    panel.plot(rates, gaussian_misses(rates, MU), color="black", label=f"claimed: a Gaussian of mu {MU:g}")
    least = [zcdp_misses(float(rate), float(RHO)) for rate in rates]
    panel.plot(rates, least, color="black", linestyle="--", label=f"the least that {float(RHO):g}-zCDP allows")
    positives, negatives = zip(*finding.curve, strict=True)
    panel.plot(positives, negatives, color="#D55E00", label="the attack on the answers")
    panel.set_title(finding.description, fontsize="small")
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    panel.set_aspect("equal")
    panel.grid(visible=True, alpha=0.3)
