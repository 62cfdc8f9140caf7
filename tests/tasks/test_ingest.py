"""The tasks before the first question, without Prefect."""

from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest
from support.published import DATASET, RUN, SCHEMA, TINY, people

from ppsyn.errors import CapExceededError, ResumeRefusedError, RunError, SourceError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.runs.record import private_folder, ref_of
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store
from ppsyn.tasks.release import check_inputs, ingest, open_account


def config_of(folder: Path, root: str | None = None, **changes: object) -> ReleaseConfig:
    """A release of a small Parquet file into the memory of this process."""
    people().to_parquet(folder / "table.parquet")
    document = {
        "dataset": DATASET,
        "source": {"kind": "parquet", "path": str(folder / "table.parquet")},
        "schema": "given-elsewhere.yaml",
        "stores": {"root": root or f"memory://{uuid4().hex}", "private": f"memory://{uuid4().hex}"},
        **TINY,
        **changes,
    }
    return ReleaseConfig.model_validate(document)


def keys(location: Location) -> list[str]:
    return open_store(location).keys()


@pytest.fixture
def config(tmp_path: Path) -> ReleaseConfig:
    return config_of(tmp_path)


@pytest.fixture
def ref(config: ReleaseConfig) -> RunRef:
    return ref_of(config, RUN)


def test_checking_the_inputs_leaves_nothing_behind(config: ReleaseConfig, ref: RunRef) -> None:
    check_inputs.fn(ref, config, SCHEMA)
    assert keys(ref.root) + keys(ref.private) + keys(ref.releases) == []


def test_a_table_without_a_column_is_refused(tmp_path: Path, config: ReleaseConfig, ref: RunRef) -> None:
    people().drop(columns="score").to_parquet(tmp_path / "table.parquet")
    with pytest.raises(SourceError, match="'score'"):
        check_inputs.fn(ref, config, SCHEMA)


def test_the_source_of_a_run_that_has_begun_is_not_looked_at(
    tmp_path: Path, config: ReleaseConfig, ref: RunRef
) -> None:
    open_account.fn(ref, config, SCHEMA)
    (tmp_path / "table.parquet").unlink()
    check_inputs.fn(ref, config, SCHEMA)


def test_opening_the_account_reserves_the_whole_budget(config: ReleaseConfig, ref: RunRef) -> None:
    open_account.fn(ref, config, SCHEMA)
    budget = StoredAccount(open_store(ref.root), DATASET).state.budgets[RUN]
    assert budget.total == rho_of(config.privacy)
    assert budget.spent == 0


def test_opening_the_account_again_reserves_nothing_more(config: ReleaseConfig, ref: RunRef) -> None:
    open_account.fn(ref, config, SCHEMA)
    before = keys(ref.root)
    open_account.fn(ref, config, SCHEMA)
    assert keys(ref.root) == before


def test_a_run_that_would_be_another_is_refused(config: ReleaseConfig, ref: RunRef) -> None:
    open_account.fn(ref, config, SCHEMA)
    changed = config.model_copy(update={"generation": config.generation.model_copy(update={"seed": 12})})
    with pytest.raises(ResumeRefusedError, match=r"generation\.seed was 11 and is 12 now"):
        open_account.fn(ref, changed, SCHEMA)


def test_a_release_beyond_the_cap_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    config = config_of(tmp_path, account={"cap": {"epsilon": 1.0, "delta": 1e-6}})
    ref = ref_of(config, RUN)
    with pytest.raises(CapExceededError):
        open_account.fn(ref, config, SCHEMA)
    assert [key for key in keys(ref.root) if key.startswith("runs/")] == []


def test_ingesting_writes_codes_to_the_private_store_alone(config: ReleaseConfig, ref: RunRef) -> None:
    open_account.fn(ref, config, SCHEMA)
    before = keys(ref.root)
    ingest.fn(ref)
    assert keys(ref.root) == before
    assert keys(ref.private) == [f"{private_folder(RUN)}/fragments/00000.parquet", f"{private_folder(RUN)}/table.json"]


def test_ingesting_again_reads_nothing(tmp_path: Path, config: ReleaseConfig, ref: RunRef) -> None:
    open_account.fn(ref, config, SCHEMA)
    ingest.fn(ref)
    (tmp_path / "table.parquet").unlink()
    ingest.fn(ref)


def test_ingesting_without_a_record_is_refused(ref: RunRef) -> None:
    with pytest.raises(RunError, match=f"There is no run {RUN}"):
        ingest.fn(ref)


def test_the_private_table_is_only_read(tmp_path: Path, config: ReleaseConfig, ref: RunRef) -> None:
    before = (tmp_path / "table.parquet").read_bytes()
    check_inputs.fn(ref, config, SCHEMA)
    open_account.fn(ref, config, SCHEMA)
    ingest.fn(ref)
    assert (tmp_path / "table.parquet").read_bytes() == before
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), people())
