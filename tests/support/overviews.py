"""Overviews to look at: of several datasets, with everything that a page has to show."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from support.reports import HOSTILE

from ppsyn.reports.overview import Audit, Dataset, Overview, Planned, RunLine, Trouble, render

NOW = datetime(2031, 3, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def run(number: int, at: datetime, **changes: object) -> RunLine:
    """A published release of rho 1/100."""
    told: dict[str, object] = {
        "run": f"{at:%Y%m%d-%H%M%S}-{number:08x}",
        "kind": "release",
        "state": "published",
        "at": at,
        "ended": at + timedelta(minutes=5),
        "committed": Fraction(1, 100),
        **changes,
    }
    return RunLine(**told)  # pyright: ignore[reportArgumentType]


def dataset(name: str = "adult", **changes: object) -> Dataset:
    """Four weekly releases, of which the last was a week ago; 16 of 20 parts of the account are left."""
    told: dict[str, object] = {
        "name": name,
        "unit": "a row",
        "delta": 1e-9,
        "cap": Fraction(1, 5),
        "spent": Fraction(1, 25),
        "reserved": Fraction(0),
        "runs": tuple(run(number, NOW - (4 - number) * WEEK) for number in range(4)),
        "planned": (),
        **changes,
    }
    return Dataset(**told)  # pyright: ignore[reportArgumentType]


def crowded() -> Overview:
    """Two datasets with runs in every state, one of them with a hostile name."""
    audited = (
        run(9, NOW - 4 * WEEK, audit=Audit(())),
        run(10, NOW - 3 * WEEK, audit=Audit((f"model.npz: {HOSTILE[0]} is not what the answers imply.",))),
        run(11, NOW - 3 * WEEK, kind="quality"),
        run(12, NOW - 2 * WEEK, state="abandoned"),
        run(13, NOW - WEEK, state="waiting", ended=None),
        run(14, NOW, state="working", ended=None),
    )
    planned = tuple(Planned("adult", "deployment release-adult-prod", NOW + k * WEEK, Fraction(1, 50)) for k in (1, 2))
    return Overview(
        store="s3://bucket/ppsyn",
        at=NOW,
        datasets=(
            dataset("adult", runs=audited, planned=planned, spent=Fraction(3, 20), reserved=Fraction(1, 50)),
            dataset(HOSTILE[0], delta=None),
            dataset(HOSTILE[-1], runs=(), planned=(Planned(HOSTILE[-1], "x.yaml", None, Fraction(1, 50)),)),
        ),
        troubles=(Trouble(None, f"The Prefect server {HOSTILE[1]} does not answer.", "See that it runs."),),
        unassigned=(Planned(None, "deployment other", NOW + WEEK, None),),
        is_audited=False,
    )


def overview_page(out: Path) -> Path:
    """The page of the crowded overview."""
    out.write_bytes(render(crowded()))
    return out
