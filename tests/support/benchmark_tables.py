"""Small tables in the form that benchmarks read, and a mechanism that takes no time on them."""

from pathlib import Path

import numpy as np

from ppsyn.benchmark.tables import write_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Domain
from ppsyn.schemas.benchmark import BenchmarkSettings

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
QUICK = "ppsyn:rounds=2+max_fit_steps=5"
OTHER = "ppsyn:rounds=1+max_fit_steps=5"


def toy_table(rows: int = 2_000, seed: int = 0, **sizes: int) -> EncodedTable:
    """Attributes that go together: each code follows the one before, with some noise."""
    sizes = sizes or SIZES
    rng = np.random.default_rng(seed)
    latent = rng.random(rows)
    columns = {
        name: np.clip((latent + rng.normal(0, 0.2, rows)) * size, 0, size - 1).astype(np.int32)
        for name, size in sizes.items()
    }
    return EncodedTable(Domain(tuple(Attribute(name, size) for name, size in sizes.items())), columns)


def write_toys(folder: Path) -> Path:
    """The tables `toy` and `wide`, whose one-way marginals need more than 0.005 MB, and `br2000` in small."""
    write_table(folder, "toy", toy_table())
    write_table(folder, "wide", toy_table(500, 1, a=1_500, b=3, c=2))
    write_table(folder, "br2000", toy_table(1_000, 2, **{"5": 2, "7": 2, "13": 2, "x": 4}))
    return folder


def toy_settings(data_dir: Path, out: Path, **changes: object) -> BenchmarkSettings:
    """A benchmark of a moment."""
    fields: dict[str, object] = {
        "datasets": ("toy",),
        "mechanisms": (QUICK,),
        "epsilons": (1.0,),
        "seeds": (0, 1),
        "out": str(out),
        "data_dir": str(data_dir),
    }
    return BenchmarkSettings.model_validate({**fields, **changes})
