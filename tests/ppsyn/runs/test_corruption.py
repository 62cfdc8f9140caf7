"""A run whose objects are damaged is resumed to a release that passes its audit, or refused before a charge."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.corruption import Kept, check, kept_in, problems, resumed, swap
from support.published import RUN, stage

from ppsyn.errors import PPSynError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.requests import Answer, Measured
from ppsyn.releases.layout import FILES
from ppsyn.releases.writer import publish
from ppsyn.runs import record as records
from ppsyn.runs.run import Run
from ppsyn.storage import open_store

FAST = range(30)
SLOW = range(1000, 1400)
FOUND = (1010,)
"""Seeds of others that found something, to be tried for ever."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return kept_in(tmp_path_factory.mktemp("corruption"))


@pytest.mark.parametrize("seed", [*FAST, *FOUND])
def test_a_damaged_run_ends_in_a_release_that_passes_or_is_refused_before_a_charge(
    kept: Kept, tmp_path: Path, seed: int
) -> None:
    check(kept, tmp_path, seed)


@pytest.mark.slow
def test_hundreds_of_damaged_runs(kept: Kept, tmp_path: Path) -> None:
    fates = [check(kept, tmp_path / str(seed), seed) for seed in SLOW if not (tmp_path / str(seed)).mkdir()]
    sys.stdout.write(f"{fates.count('published')} published, {fates.count('refused')} refused\n")
    assert fates.count("published") > len(fates) // 10
    assert fates.count("refused") > len(fates) // 10


def test_an_old_answer_that_is_gone_stops_the_run_by_its_number(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("measured", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "answers" / "000002.npz").unlink()
    with pytest.raises(PPSynError, match=r"the answers to step 2 are gone.*ppsyn abandon"):
        resumed(config)


def test_two_answers_that_changed_places_stop_the_run(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("measured", tmp_path / "store")
    answers = tmp_path / "store" / "runs" / RUN / "answers"
    swap(random.Random(0), answers / "000001.npz", answers / "000002.npz")
    with pytest.raises(PPSynError, match=r"step 1 .* is damaged, or is that to another step"):
        resumed(config)


def test_the_last_answer_that_no_checkpoint_has_taken_in_is_lost(kept: Kept, tmp_path: Path) -> None:
    config = kept.copied("early", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "answers" / "000002.npz").unlink()
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


@pytest.mark.parametrize("name", [".DS_Store", "x/state.npz", "000001/.DS_Store"])
def test_a_stray_file_among_the_checkpoints_is_none_of_ours(kept: Kept, tmp_path: Path, name: str) -> None:
    config = kept.copied("measured", tmp_path / "store")
    path = tmp_path / "store" / "runs" / RUN / "checkpoints" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"stray")
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


def test_a_record_that_is_gone_is_written_again_from_the_same_release_file_and_from_no_other(
    kept: Kept, tmp_path: Path
) -> None:
    config = kept.copied("measured", tmp_path / "store")
    (tmp_path / "store" / "runs" / RUN / "config.json").unlink()
    other = config.model_copy(update={"generation": config.generation.model_copy(update={"seed": 5})})
    before = StoredAccount(open_store(config.stores.root), "people").entries()
    with pytest.raises(PPSynError, match=r"its record is gone.*ppsyn abandon"):
        resumed(other)
    assert StoredAccount(open_store(config.stores.root), "people").entries() == before
    resumed(config)
    assert problems(open_store(config.stores.root)) == []


def test_answers_that_the_model_does_not_follow_from_are_not_published(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kept.copied("measured", tmp_path / "store")

    def other(run: Run) -> list[Answer]:
        first, *rest = (one.answer for one in run._taken)
        assert isinstance(first, Measured)
        return [replace(first, noisy_counts=first.noisy_counts + 1), *rest]

    monkeypatch.setattr(Run, "answers", other)
    with pytest.raises(PPSynError, match=r"would not pass an audit and is not published\. (model|replay)"):
        resumed(config)
    assert not open_store(config.stores.root).keys("releases")


@pytest.mark.parametrize("name", FILES)
def test_a_staged_file_that_is_not_what_was_written_is_not_published(kept: Kept, tmp_path: Path, name: str) -> None:
    config = kept.copied("done", tmp_path / "store")
    run = Run(records.ref_of(config, RUN))
    stage(run)
    (path,) = (tmp_path / "store" / "staging" / RUN).glob(f"*/{name}")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        PPSynError, match=rf"would not pass an audit and is not published\. {name}: The file was changed"
    ):
        publish(run)
    assert not open_store(config.stores.root).keys("releases")
    assert run.budget.is_open
