"""Hundreds of releases of one case, and what three attacks on them show: likelihood ratio, table, folder."""

import io
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ppsyn.arrays import Floats
from ppsyn.releases.layout import SYNTHETIC
from ppsyn.selftest import library
from ppsyn.selftest.cases import CASES, MU, Case
from ppsyn.selftest.folder import align, differences, features
from ppsyn.selftest.likelihood import Adversary
from ppsyn.selftest.pipeline import Repeating, Stage
from ppsyn.selftest.tradeoff import at_least, at_most, gaussian_mu, rate_at_most

_KEPT = 24
"""Features that are kept: those that differ most in the half that is trained on."""
_RIDGE = 0.05


def discriminate(without: Floats, present: Floats) -> tuple[Floats, Floats]:
    """Train on releases with even numbers, and guess about the others: above nought, that the canary is in.

    A row is a release, a column a feature.
    """
    direction, threshold = _trained(without[::2], present[::2])
    return without[1::2] @ direction - threshold, present[1::2] @ direction - threshold


def _trained(without: Floats, present: Floats) -> tuple[Floats, float]:
    """Weights of features and a threshold half-way."""
    centred = np.concatenate([without - without.mean(axis=0), present - present.mean(axis=0)])
    difference = present.mean(axis=0) - without.mean(axis=0)
    varied: Floats = centred.std(axis=0)
    # What never varied in training and yet differs tells the sides apart at once.
    spread = np.asarray(np.where(varied > 0, varied, np.maximum(np.abs(difference) / 100, 1e-12)), np.float64)
    kept = np.argsort(-np.abs(difference / spread), kind="stable")[:_KEPT]
    scaled = centred[:, kept] / spread[kept]
    covariance = scaled.T @ scaled / max(1, len(scaled) - 2) + _RIDGE * np.eye(kept.size)
    weights = np.zeros(difference.size)
    weights[kept] = np.linalg.solve(covariance, difference[kept] / spread[kept]) / spread[kept]
    return weights, float(weights @ (without.mean(axis=0) + present.mean(axis=0)) / 2)


Way = Literal["loop", "table", "stores", "folder"]
"""In memory, without and with a synthetic table; through the stores, and on to a published folder."""

THRESHOLDS = (-2.0, -1.0, 1.0, 2.0)
"""Log-likelihood ratios at which the curve is held against what is allowed, besides nought."""

WANTED = 0.93
"""Of the claimed mu: an attack on the answers that surely sees less is no attack."""

_TESTS = len(THRESHOLDS) + 3
"""Of each case: nought and the thresholds on the answers, and one each on table and folder."""

_SHOWN = 0.95
"""Confidence of the lower bounds that are reported."""

_SUITE = 0.999
"""Confidence that no case of a sound suite is found above what is allowed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Releases to make: some numbers of one side of a case."""

    case: str
    way: Way
    has_canary: bool
    first: int
    count: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the adversary notes of releases, one side of a case.

    Attributes:
        ratios: Log-likelihood ratios of the answers.
        allowed: The largest mu that the answers' mechanisms allow.
        tables: Counts of the synthetic tables; a row each.
        folders: Features of the published folders.
        seconds: Of the processor.
    """

    ratios: Sequence[float] = ()
    allowed: float = 0.0
    tables: Sequence[Floats] = ()
    folders: Sequence[Mapping[str, float]] = ()
    seconds: float = 0.0

    def __add__(self, other: "Seen") -> "Seen":
        """Both, one after the other."""
        return Seen(
            (*self.ratios, *other.ratios),
            max(self.allowed, other.allowed),
            (*self.tables, *other.tables),
            (*self.folders, *other.folders),
            self.seconds + other.seconds,
        )


def see(batch: Batch) -> Seen:
    """Make the releases, and note what is to be seen of each."""
    began, case = time.process_time(), case_of(batch.case)
    adversary, found = case.adversary, list[Seen]()
    with _releasing(case) as stage:
        for number in range(batch.first, batch.first + batch.count):
            found.append(_one(stage, case, adversary, batch, batch.seed + number))
    return Seen(
        tuple(ratio for one in found for ratio in one.ratios),
        max((one.allowed for one in found), default=0.0),
        tuple(table for one in found for table in one.tables),
        tuple(folder for one in found for folder in one.folders),
        time.process_time() - began,
    )


def _one(stage: Stage, case: Case, adversary: Adversary, batch: Batch, seed: int) -> Seen:
    folders, tables = (), ()
    if batch.way in ("loop", "table"):
        has_rows = batch.way == "table"
        transcript, frame = library.release(case, has_canary=batch.has_canary, seed=seed, has_rows=has_rows)
        tables = () if frame is None else (counted(frame, case),)
    else:
        is_published = batch.way == "folder"
        released = stage.release(seed, has_canary=batch.has_canary, is_published=is_published)
        transcript = released.transcript
        if is_published:
            folders, tables = (features(released.folder),), (counted(_table_in(released.folder), case),)
    return Seen((adversary.log_ratio(transcript),), adversary.allowed_mu(transcript), tables, folders)


def counted(frame: pd.DataFrame, case: Case) -> Floats:
    """What the attack on a synthetic table looks at: how many rows have which of the canary's values."""
    canary = [frame[name].to_numpy() == value for name, value in case.canary.items()]
    sets = chain.from_iterable(combinations(canary, size) for size in range(1, len(canary) + 1))
    return np.array([len(frame), *(np.logical_and.reduce(members).sum() for members in sets)], np.float64)


def _table_in(files: Mapping[str, bytes]) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(files[SYNTHETIC]))


def case_of(name: str) -> Case:
    """The case of this name."""
    return next(case for case in CASES if case.name == name)


@contextmanager
def _releasing(case: Case) -> Generator[Stage]:
    with tempfile.TemporaryDirectory(prefix="ppsyn-selftest-") as folder:
        yield Stage(case, Path(folder))


def compare_folders(name: str, seed: int) -> list[str]:
    """Files of a folder that tell more than answers: those that differ for the other table and the same answers."""
    case = case_of(name)
    with _releasing(case) as stage:
        one = stage.release(seed, has_canary=False, is_published=True)
        answers = iter([answer for _, answer in one.transcript])
        other = stage.release(
            seed, has_canary=True, is_published=True, between=lambda curator: Repeating(curator, answers)
        )
    return differences(one.folder, other.folder)


@dataclass(frozen=True, slots=True)
class Attack:
    """What one attack shows.

    Attributes:
        guesses: How many releases were guessed about, half of them with the canary.
        mu: At least so much, at 95%.
        surely: At least so much, at the confidence of the suite.
        most: At most so much is seen by this test, at the confidence of the suite.
    """

    guesses: int
    mu: float
    surely: float
    most: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What the attacks on one case show.

    Attributes:
        allowed: The mu that the claims about the single answers allow together: 2 rho of a measurement, a little more
            where counts are discrete, and up to pi rho of a selection, add up to its square.
        curve: False positives and false negatives of the attack on the answers, from threshold to threshold.
        corners: At the fixed thresholds, a mu that is surely there.
        leaking_files: Files that differ although the answers are the same.
        seconds: Of the processor.
    """

    name: str
    description: str
    runs: int
    folders: int
    allowed: float
    answers: Attack
    table: Attack
    folder: Attack
    corners: tuple[float, ...]
    curve: tuple[tuple[float, float], ...]
    leaking_files: tuple[str, ...]
    seconds: float
    claimed: float = field(default=MU)

    @property
    def faults(self) -> list[str]:
        """What is wrong; empty if nothing is."""
        found = {
            "the answers": max(self.answers.surely, *self.corners), "the table": self.table.surely,
            "the folder": self.folder.surely,
        }  # fmt: skip
        faults = [f"{name} tell mu {mu:.3f}" for name, mu in found.items() if mu > self.allowed]
        if self.leaking_files:
            faults.append(f"{', '.join(self.leaking_files)} tell more than the answers")
        if self.answers.most < WANTED * self.claimed:
            faults.append(f"the attack on the answers sees mu {self.answers.most:.3f} at most: it is blind")
        return faults


def judge(
    case: Case, sides: Sequence[Seen], published: Sequence[Seen], leaking_files: Sequence[str], together: int
) -> Finding:
    """Hold what was seen of both sides against what is allowed.

    Args:
        case: What was released.
        sides: Without and with the canary.
        published: The same of published folders.
        leaking_files: What was found by `compare_folders`.
        together: How many cases are judged together.
    """
    sure = 1 - (1 - _SUITE) / (_TESTS * together)
    without, present = (np.array(seen.ratios) for seen in sides)
    tables = [np.stack(seen.tables) for seen in (sides if sides[0].tables else published)]
    names = sorted({name for seen in published for row in seen.folders for name in row})
    folders = [np.column_stack([seen.ratios, align(seen.folders, names)]) for seen in published]
    everything = (*sides, *published)
    return Finding(
        case.name,
        case.description,
        len(without),
        len(folders[0]),
        max(seen.allowed for seen in everything),
        attack(without, present, sure),
        attack(*discriminate(tables[0], tables[1]), sure),
        attack(*discriminate(folders[0], folders[1]), sure),
        tuple(corner(without, present, threshold, sure) for threshold in THRESHOLDS),
        _curve(without, present),
        tuple(leaking_files),
        sum(seen.seconds for seen in everything),
    )


def attack(without: Floats, present: Floats, sure: float) -> Attack:
    """What guesses show: above nought, that the canary is in. As many count of one side as of the other."""
    count = min(without.size, present.size)
    right = int((without[:count] <= 0).sum() + (present[:count] > 0).sum())
    guesses = 2 * count
    return Attack(
        guesses, at_least(right, guesses, _SHOWN), at_least(right, guesses, sure), at_most(right, guesses, sure)
    )


def corner(without: Floats, present: Floats, threshold: float, sure: float) -> float:
    """A lower bound on mu at another threshold: both error rates are at most so large, each with half of the doubt."""
    each = (1 + sure) / 2
    false_positives = rate_at_most(int((without > threshold).sum()), without.size, each)
    false_negatives = rate_at_most(int((present <= threshold).sum()), present.size, each)
    return gaussian_mu(false_positives, false_negatives)


def _curve(without: Floats, present: Floats) -> tuple[tuple[float, float], ...]:
    thresholds = np.quantile(np.concatenate([without, present]), np.linspace(0, 1, 101))
    return tuple((round((without > t).mean(), 4), round((present <= t).mean(), 4)) for t in thresholds)
