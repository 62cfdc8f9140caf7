"""What the audit has found, for a person and for scripts, and its curves as a plot."""
# matplotlib's keyword arguments are not annotated.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from ppsyn.selftest.attacks import THRESHOLDS, Finding
from ppsyn.selftest.cases import MU, RHO
from ppsyn.selftest.tradeoff import gaussian_misses, zcdp_misses, zcdp_mu

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666", "#7A3E9D", "#8C6D1F")
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


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """For scripts."""
    return {
        "ok": not any(one.faults for one in findings),
        "rho": float(RHO),
        "claimed_mu": MU,
        "zcdp_mu": zcdp_mu(float(RHO)),
        "thresholds": [0.0, *THRESHOLDS],
        "cases": [{**asdict(one), "faults": one.faults} for one in findings],
    }


def write(findings: Sequence[Finding], folder: Path) -> None:
    """Write selftest.json and selftest.svg into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "selftest.json").write_text(json.dumps(as_json(findings), indent=1) + "\n", encoding="utf-8")
    with rc_context({"svg.hashsalt": "ppsyn"}):
        _drawn(findings).savefig(folder / "selftest.svg", metadata={"Date": None})


def _drawn(findings: Sequence[Finding]) -> Figure:
    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.add_subplot()
    across = np.linspace(0, 1, 201)
    axes.plot(across, 1 - across, color="#999999", linestyle=":", label="guessing")
    axes.plot(
        across, gaussian_misses(across, MU), color="black", linewidth=2, label=f"claimed: a Gaussian of mu {MU:g}"
    )
    least = [zcdp_misses(float(rate), float(RHO)) for rate in across]
    axes.plot(across, least, color="black", linestyle="--", label=f"the least that {float(RHO):g}-zCDP allows")
    for number, one in enumerate(findings):
        rates = np.array(one.curve)
        axes.plot(rates[:, 0], rates[:, 1], color=_COLOURS[number % len(_COLOURS)], linewidth=1, label=one.told)
    axes.set_xlabel("without the canary, taken for one with it (false positives)")
    axes.set_ylabel("with the canary, taken for one without it (false negatives)")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    return figure
