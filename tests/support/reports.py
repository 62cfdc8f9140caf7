"""Releases whose reports are worth looking at, and a reader of HTML that forgives nothing."""

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
from support.published import Published, make_release

from ppsyn.flows.cli.quality import write_owner_report
from ppsyn.flows.cli.releases import original_of
from ppsyn.releases.reader import read_manifest
from ppsyn.reports.quality import render
from ppsyn.schemas.quality import Quality
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title><h1>&amp;",
    "' onmouseover='alert(1)",
    "\u202eeman",
    "x" * 120,
)
"""Names that would do harm if they were not escaped, or that are hard to fit in."""

HOSTILE_SCHEMA = TableSchema.model_validate(
    {
        "name": "people",
        "columns": [
            {"name": HOSTILE[0], "kind": "categorical", "values": [HOSTILE[1], HOSTILE[2]], "other": HOSTILE[3]},
            *({"name": name, "kind": "boolean", "nullable": True} for name in HOSTILE[1:]),
            {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "unit": "month"},
        ],
        "excluded": ["<b>secret</b>"],
    }
)

QUICK: Mapping[str, object] = {"algorithm": {"workload": {"degree": 2}, "rounds": 3, "max_fit_steps": 10}}


def hostile_release(folder: Path) -> Published:
    """A release of a table with hostile names and values."""
    rng = np.random.Generator(np.random.PCG64(3))
    frame = pd.DataFrame(
        {
            HOSTILE[0]: rng.choice([HOSTILE[1], HOSTILE[2]], 300),
            **{name: pd.array(rng.random(300) < 0.5, dtype="boolean") for name in HOSTILE[1:]},
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, 300), unit="D"),
            "<b>secret</b>": "s",
        }
    )
    return make_release(folder, frame, HOSTILE_SCHEMA, changes=QUICK)


def wide_release(folder: Path, columns: int = 48) -> Published:
    """A release of a table with many columns, two of which have many values."""
    rng = np.random.Generator(np.random.PCG64(4))
    names = [f"attribute number {number}" for number in range(columns)]
    sizes = [60 if number < 2 else 2 + number % 3 for number in range(columns)]
    frame = pd.DataFrame({name: rng.integers(0, size, 500) for name, size in zip(names, sizes, strict=True)})
    kinds = [
        {"name": name, "kind": "integer", "lower": 0, "upper": size - 1}
        for name, size in zip(names, sizes, strict=True)
    ]
    schema = TableSchema.model_validate({"name": "people", "columns": kinds})
    return make_release(folder, frame, schema, changes=QUICK)


def private_page(release: Published, out: Path) -> Path:
    """The owner's report on a release, whose table is where its run's record says."""
    root = open_store(release.ref.root)
    manifest, _ = read_manifest(release.store)
    write_owner_report(release.store, original_of(manifest, None, root, None), out, [], [])
    return out


def quality_page(out: Path) -> Path:
    """The page about figures that were paid for, with hostile names."""
    out.write_bytes(render(FIGURES))
    return out


DIGEST = "5e" * 32

FIGURES = Quality.model_validate(
    {
        "request": {
            "run": "20310203-040506-0a1b2c3d-q012345",
            "dataset": "people",
            "release": "20310203-040506-0a1b2c3d",
            "manifest": DIGEST,
            "rho": "1/1000",
            "delta": 1e-9,
            "person": None,
            "sets": [
                {"name": "workload", "marginals": [["age", HOSTILE[0]], [HOSTILE[1], HOSTILE[2]]]},
                {"name": HOSTILE[0], "marginals": [[HOSTILE[0]]]},
            ],
        },
        "measured_at": "2031-02-03T04:05:06Z",
        "guarantee": {"rho": "1/1000", "epsilon": 0.25, "delta": 1e-9, "unit": "a row"},
        "rows": {"noisy": 48_852, "sigma": 60.0},
        "sigma": 70_000.0,
        "figures": [
            {"about": "workload", "statistic": "mean", "noisy": 9, "distance": 0.05, "lower": 0.04, "upper": 0.06},
            {"about": "workload", "statistic": "worst", "noisy": 9, "distance": 1.0, "lower": 0.9, "upper": 1.0},
            {"about": HOSTILE[0], "statistic": "mean", "noisy": -9, "distance": 0.0, "lower": 0.0, "upper": 0.0},
        ],
        "account": {"charges": 4, "head": DIGEST, "cap": "1"},
        "entries": [],
    }
)
"""Figures about a table with hostile names."""


class Reader(HTMLParser):
    """Reads a page, and refuses elements that are not closed, or not in order.

    Attributes:
        elements: All elements, with their attributes.
        texts: All texts, unescaped.
    """

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._stack: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        self._stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in names]
