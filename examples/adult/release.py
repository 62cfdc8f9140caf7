"""Release the Adult table at epsilon 1: the synthetic table and everything needed to make more of it."""

import shutil
import sys
from pathlib import Path

import pandas as pd

import ppsyn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DELTA = 1e-9


def main() -> None:
    """Write `out/adult` and say what was spent."""
    out = ROOT / "out" / "adult"
    shutil.rmtree(out, ignore_errors=True)
    frame = pd.read_parquet(HERE / "adult.parquet")
    release = ppsyn.synthesize(frame, ROOT / "schemas" / "tables" / "adult.yaml", epsilon=1.0, delta=DELTA)
    ppsyn.save(release, out / "synthesis")
    release.table.to_parquet(out / "synthetic.parquet", index=False)
    sys.stdout.write(
        f"synthetic table  {(out / 'synthetic.parquet').relative_to(ROOT)}: "
        f"{len(release.table)} rows, {len(release.table.columns)} columns\n"
        f"model, ledger    {(out / 'synthesis').relative_to(ROOT)}\n"
        f"spent            epsilon {release.epsilon():.4g} at delta {DELTA:g} (rho {float(release.rho):.6g}), "
        f"{len(release.ledger.spends)} spends, {len(release.rounds)} rounds\n"
    )


if __name__ == "__main__":
    main()
