"""What each case starts from: a private table and a public one, schema, release files, release, store, saved model."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from ppsyn.schemas.table import TableSchema

CANARY_TEXT, CANARY_NUMBER = "QXKANARI", 7391842
"""Private values that nothing else holds; the table has them in its columns, outside of every domain."""

SCHEMA = TableSchema.model_validate(
    {
        "name": "people",
        "columns": [
            {"name": "sex", "kind": "categorical", "values": ["f", "m"], "other": "m"},
            {"name": "age", "kind": "integer", "lower": 0, "upper": 23},
            {"name": "member", "kind": "boolean", "nullable": True},
            {"name": "score", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 4, "nullable": True},
            {"name": "joined", "kind": "date", "lower": "2020-01-01", "upper": "2021-12-31", "unit": "quarter"},
        ],
        "excluded": ["who"],
    }
)

RELEASE: dict[str, object] = {
    "dataset": "people",
    "source": {"kind": "parquet", "path": "people.parquet"},
    "schema": "people.yaml",
    "privacy": {"epsilon": 2.0, "delta": 1e-6, "person": {"column": "who", "max_rows": 2}},
    "account": {"cap": {"epsilon": 8.0, "delta": 1e-6}},
    "algorithm": {"workload": {"degree": 2}, "rounds": 4, "max_fit_steps": 20},
    "generation": {"seed": 11},
    "stores": {"root": "store"},
}

RUN = "20310203-040506-0a1b2c3d"
PUBLISHED = f"store/releases/people/{RUN}"


def people(rows: int = 120) -> pd.DataFrame:
    """A private table; every tenth row holds canaries."""
    rng = np.random.Generator(np.random.PCG64(5))
    number = np.arange(rows)
    odd = number % 10 == 3
    return pd.DataFrame(
        {
            "sex": np.where(odd, CANARY_TEXT, np.where(rng.random(rows) < 0.4, "f", "m")),
            "age": np.where(odd, CANARY_NUMBER, rng.integers(0, 24, rows)),
            "member": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "score": np.where(odd, float(CANARY_NUMBER), np.round(rng.random(rows), 3)),
            "joined": (pd.to_datetime("2020-01-01") + pd.to_timedelta(number * 5, unit="D")).date,
            "who": [f"{CANARY_TEXT}-{n // 2}" for n in number],
        }
    )


def make(folder: Path) -> None:
    """Put the stage together."""
    published = importlib.import_module("support.published")  # starts threads of the store, so never in the sandbox
    api = importlib.import_module("ppsyn")
    frame = people()
    frame.to_parquet(folder / "people.parquet", index=False)
    frame.to_csv(folder / "people.csv", index=False)
    public = frame[frame["sex"] != CANARY_TEXT]
    public.assign(who=range(len(public))).to_parquet(folder / "sample.parquet", index=False)
    (folder / "people.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    for kind in ("parquet", "csv"):
        document = {**RELEASE, "source": {"kind": kind, "path": f"people.{kind}"}}
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    load = importlib.import_module("ppsyn.schemas.release").load_release
    run = published.finish(published.begin(load(folder / "parquet.yaml"), SCHEMA, RUN))
    published.stage(run)
    published.publish(run)
    settings = {"rounds": 3, "max_fit_steps": 10, "workload": {"degree": 2}}
    api.save(api.synthesize(frame.drop(columns="who"), SCHEMA, rho=0.5, progress=False, **settings), folder / "saved")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
