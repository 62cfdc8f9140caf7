from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.benchmark_tables import QUICK, write_toys

from ppsyn.benchmark.options import settings_of
from ppsyn.errors import ConfigError
from ppsyn.schemas.benchmark import BenchmarkSettings

LISTS = {
    "datasets": "toy",
    "mechanisms": QUICK,
    "epsilons": "0.1,1",
    "seeds": "0-2,7",
    "degree": "2,3",
    "metrics": "ways,workload",
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_toys(tmp_path_factory.mktemp("toys")))


def ask(data_dir: str, **changes: str) -> BenchmarkSettings:
    return settings_of({**LISTS, **changes}, data_dir=data_dir, out="out")


def test_lists_are_read(data_dir: str) -> None:
    settings = ask(data_dir)
    assert settings.epsilons == (0.1, 1.0)
    assert settings.seeds == (0, 1, 2, 7)
    assert settings.degrees == (2, 3)


def test_every_combination_is_a_run_of_its_own(data_dir: str) -> None:
    runs = list(ask(data_dir, datasets="toy,wide", degree="2").runs("code"))
    assert len(runs) == 2 * 2 * 4
    assert len({run.name for run in runs}) == len(runs)
    assert {run.metrics for run in runs} == {("workload", "ways")}


def test_the_name_of_a_run_follows_from_all_but_the_folder(data_dir: str) -> None:
    (run,) = ask(data_dir, epsilons="1", seeds="0", degree="3").runs("code")
    assert run.model_copy(update={"data_dir": "elsewhere"}).name == run.name
    changes = {"epsilon": 2.0, "seed": 1, "degree": 2, "workload_seed": 1, "model_mb": 2.0, "code": "x", "delta": 1e-6}
    names = {run.model_copy(update={field: value}).name for field, value in changes.items()}
    assert len(names | {run.name}) == len(changes) + 1


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("datasets", "toy,", "--datasets='toy,' to be a list separated by commas"),
        ("datasets", "", "--datasets"),
        ("datasets", "tyo", "There is no table 'tyo'"),
        ("datasets", "toy,toy", "datasets to differ"),
        ("datasets", "../toy", "There is no table"),
        ("mechanisms", "ppsny", "ppsny"),
        ("mechanisms", "ppsyn:rounds", "ppsyn:rounds"),
        ("mechanisms", "ppsyn:eat=1", "eat"),
        ("mechanisms", "ppsyn:anneal_threshold=-1", "anneal_threshold"),
        ("mechanisms", "ppsyn:partition=best", "Partitions: grid, balanced"),
        ("mechanisms", "ppsyn:partition=[grid]", "Partitions: grid, balanced"),
        ("mechanisms", "ppsyn:max_model_size_mb=2", "There is no setting 'max_model_size_mb'"),
        ("mechanisms", "aim:rounds=5", "Expected no rounds"),
        ("epsilons", "0.1;1", "--epsilons='0.1;1' to be numbers above 0"),
        ("epsilons", "0", "numbers above 0"),
        ("epsilons", "-1", "numbers above 0"),
        ("epsilons", "nan", "numbers above 0"),
        ("epsilons", "inf", "numbers above 0"),
        ("epsilons", "1e-9", "epsilon"),
        ("epsilons", "1,1.0", "epsilons to differ"),
        ("seeds", "-1", "--seeds='-1' to be whole numbers or ranges"),
        ("seeds", "1.5", "whole numbers"),
        ("seeds", "4-2", "whole numbers"),
        ("seeds", "0-99999999", "whole numbers"),
        ("seeds", "1,0-3", "seeds to differ"),
        ("degree", "0", "degrees.0: "),
        ("degree", "6", "degrees.0: "),
        ("degree", "5", "degree=5"),
        ("metrics", "workload,speed", "--metrics='workload,speed' to be of workload, ways, ranges, classification"),
    ],
)
def test_what_cannot_be_done_is_told(data_dir: str, option: str, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        ask(data_dir, **{option: text})
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(max_size=12), st.sampled_from(sorted(LISTS)))
def test_whatever_is_listed_is_read_or_refused(data_dir: str, text: str, option: str) -> None:
    with suppress(ConfigError):
        assert ask(data_dir, **{option: text})
