"""A release under a policy: refused before anything is read or written, by the same rules that guard the account."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.small_release import write_release

from ppsyn.errors import PolicyError
from ppsyn.flows.preflight import read_inputs
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_from
from ppsyn.privacy.policy import exactly
from ppsyn.runs.preflight import begin, check_possible
from ppsyn.runs.record import read_record, ref_of
from ppsyn.schemas.policy import PolicyFile
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

POLICY: Mapping[str, object] = {
    "cap": {"epsilon": 10.0, "delta": 1e-6},
    "purposes": {"press": {}, "research": {"cap": {"epsilon": 5.0, "delta": 1e-6}}},
    "largest": {"epsilon": 4.0, "delta": 1e-6},
}


def prepared(folder: Path, *settings: str) -> tuple[ReleaseConfig, TableSchema, StoredAccount]:
    config, table = read_inputs(str(write_release(folder)), settings)
    account = StoredAccount(open_store(config.stores.root), config.dataset)
    document = PolicyFile.model_validate(POLICY)
    if account.find() is None:
        account.open(exactly(document).cap, 1e-6, "a row")
        account.set_policy(exactly(document))
    return config, table, account


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ((), "Expected the release to name its purpose, one of press, research; got none."),
        (("purpose=fun",), "got 'fun'"),
        (("purpose=press", "privacy.epsilon=4.5"), "Expected a release of at most rho"),
    ],
)
def test_a_release_that_the_policy_does_not_allow_leaves_no_trace(
    tmp_path: Path, settings: tuple[str, ...], told: str
) -> None:
    config, table, account = prepared(tmp_path, *settings)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PolicyError, match=told):
        check_possible(config, table)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(PolicyError, match=told):
        begin(ref_of(config, "r"), config, table)
    assert account.state.count == 2
    assert not (tmp_path / "out" / "runs" / "r").exists()


def test_a_release_that_it_allows_reserves_for_its_purpose(tmp_path: Path) -> None:
    config, table, account = prepared(tmp_path, "purpose=research")
    assert check_possible(config, table) == []
    begin(ref_of(config, "r"), config, table)
    budget = account.state.budgets["r"]
    assert (budget.purpose, budget.total) == ("research", rho_from(4.0, 1e-6))
    assert read_record(open_store(config.stores.root), "r").purpose == "research"
    with pytest.raises(PolicyError, match="the cap of purpose 'research'"):
        check_possible(config, table)


def test_a_record_without_a_purpose_has_the_bytes_that_it_had(tmp_path: Path) -> None:
    config, table, _ = prepared(tmp_path, "purpose=press")
    begin(ref_of(config, "r"), config, table)
    record = read_record(open_store(config.stores.root), "r")
    assert b'"purpose": "press"' in record.to_bytes()
    assert b"purpose" not in record.model_copy(update={"purpose": None}).to_bytes()
