"""Where the parts of a release are."""

MANIFEST, SEAL = "manifest.json", "manifest.sha256"
SYNTHETIC, ANSWERS, MODEL = "synthetic.parquet", "measurements.parquet", "model.npz"
LEDGER, LEDGER_JSON = "ledger.parquet", "ledger.json"
VALIDATION, REPORT = "validation.json", "report.html"
PAST = "past.npz"
"""What earlier releases tell together; of a release that learned from some."""
LATEST = "latest.json"
"""In the folder of a dataset: the run that was published last, and the digest of its manifest."""
QUALITY = "quality"
"""The folder of what was measured after the release was published; its files are not the release's own."""
SIGNATURES = "signatures"
"""The folder of signatures, which are put there after the release was published."""
RETIRED = "retired.json"
"""All that is left in the folder of a release that was removed."""
FILES = (SYNTHETIC, ANSWERS, MODEL, LEDGER, LEDGER_JSON, VALIDATION, REPORT)


def release_folder(dataset: str, run: str) -> str:
    """Where a release is published."""
    return f"releases/{dataset}/{run}"


def staging_folder(run: str) -> str:
    """Where a release is put together."""
    return f"staging/{run}"
