"""From what a person asks for, as text, to the settings of a benchmark that can be done."""

import math
import re
from collections.abc import Mapping
from typing import get_args

from pydantic import ValidationError

from ppsyn.benchmark.contenders import contender
from ppsyn.benchmark.series import CHANGES, Series, all_series
from ppsyn.benchmark.tables import open_table, random_workload
from ppsyn.errors import ConfigError, translated
from ppsyn.mechanisms import MECHANISMS
from ppsyn.privacy.budget import rho_from
from ppsyn.schemas.benchmark import DELTA, BenchmarkSettings, Metric
from ppsyn.schemas.files import rule_of

_MOST_SEEDS = 10_000


def settings_of(lists: Mapping[str, str], **others: object) -> BenchmarkSettings:
    """The settings, checked against the tables and the mechanisms that there are.

    Args:
        lists: By option, without its dashes, what was listed: datasets, mechanisms, epsilons, seeds, degree, metrics.
        others: The other fields of the settings.

    Raises:
        ConfigError: If anything of it cannot be done.
    """
    fields = {
        "datasets": _words("datasets", lists["datasets"]),
        "mechanisms": _words("mechanisms", lists["mechanisms"]),
        "epsilons": _numbers("epsilons", lists["epsilons"]),
        "seeds": _whole_numbers("seeds", lists["seeds"]),
        "degrees": _whole_numbers("degree", lists["degree"]),
        "metrics": _words("metrics", lists["metrics"], get_args(Metric)),
    }
    with translated(ValidationError, to=ConfigError, message=_first_fault):
        settings = BenchmarkSettings.model_validate({**fields, **others})
    check_possible(settings)
    return settings


def series_of(  # noqa: PLR0913  # what a person asks for
    *, datasets: str, changes: str, mechanisms: str, seeds: str, releases: int, epsilon: float, model_mb: float
) -> list[Series]:
    """Series of releases, checked.

    Raises:
        ConfigError: If any of it cannot be done.
    """
    rho_from(epsilon, DELTA)
    return all_series(
        datasets=_words("datasets", datasets),
        changes=_words("changes", changes, tuple(CHANGES)),
        mechanisms=_words("mechanisms", mechanisms, tuple(MECHANISMS)),
        seeds=_whole_numbers("seeds", seeds),
        releases=releases,
        epsilon=epsilon,
        model_mb=model_mb,
    )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"])
    return f"{field}: {rule_of(fault)}" if field else rule_of(fault)


def check_possible(settings: BenchmarkSettings) -> None:
    """See that every run can begin: the mechanisms, the budgets, the tables and their workloads.

    Raises:
        ConfigError: If one cannot.
    """
    for mechanism in settings.mechanisms:
        contender(mechanism)
    for epsilon in settings.epsilons:
        rho_from(epsilon, settings.delta)
    for dataset in settings.datasets:
        domain = open_table(settings.data_dir, dataset).domain
        for degree in settings.degrees:
            random_workload(domain, degree, seed=settings.workload_seed)


def _words(option: str, text: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise ConfigError(f"Expected --{option}={text!r} to be a list separated by commas.")
    for word in words:
        if known and word not in known:
            raise ConfigError(f"Expected --{option}={text!r} to be of {', '.join(known)}.")
    return words


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in _words(option, text))
    except ValueError:
        numbers = (math.nan,)
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ConfigError(f"Expected --{option}={text!r} to be numbers above 0, separated by commas.")
    return numbers


def _whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Numbers, and ranges of them: `0,1,5-9`."""
    numbers: list[int] = []
    for word in _words(option, text):
        ends = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", word)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < first + _MOST_SEEDS:
            raise ConfigError(f"Expected --{option}={text!r} to be whole numbers or ranges (0-4), separated by commas.")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)
