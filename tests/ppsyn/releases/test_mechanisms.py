"""Every method under the same account, checkpoints and audit."""

from pathlib import Path

import pytest
from support.published import LOST, make_release

from ppsyn.releases.audit import audit
from ppsyn.releases.reader import open_release

SETTINGS: dict[str, dict[str, object]] = {
    "aim": {"mechanism": "aim", "max_fit_steps": 20},
    "mst": {"mechanism": "mst", "max_fit_steps": 20},
    "mwem": {"mechanism": "mwem", "max_fit_steps": 20},
    "independent": {"mechanism": "independent", "max_fit_steps": 20},
    "ppsyn": {"rounds": 4, "max_fit_steps": 20},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_release_by_any_method_survives_lost_answers_and_passes_its_audit(name: str, tmp_path: Path) -> None:
    made = make_release(tmp_path, changes={"algorithm": SETTINGS[name]}, lost=LOST)
    findings = list(audit(made.store, made.account))
    assert [finding for finding in findings if finding.problem is not None] == []
    opened = open_release(made.store)
    assert opened.config.mechanism == SETTINGS[name].get("mechanism", "ppsyn")
    assert bool(opened.model.compression.attributes) == (name == "compressed")
