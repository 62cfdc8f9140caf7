"""A release as the pipeline makes it, in a store, to a published folder; without Prefect, which adds nothing to it."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from typing_extensions import override

from ppsyn.domain import domain_of
from ppsyn.errors import InvariantError
from ppsyn.mechanisms.loop import next_request
from ppsyn.privacy.account import RunAccount
from ppsyn.privacy.ledger import Spend
from ppsyn.privacy.requests import Answer, Curator, Measured, MeasureRequest, Request
from ppsyn.quality import run as quality_run
from ppsyn.quality.questions import cliques_of, compare_request, rows_request, scaled_to, sets_of, shares_of
from ppsyn.releases.layout import release_folder
from ppsyn.releases.reader import published_counts, read_sealed
from ppsyn.releases.writer import publish, stage_records, stage_rows, stage_validation
from ppsyn.runs import preflight, record
from ppsyn.runs.run import Run
from ppsyn.schemas.locations import Location
from ppsyn.schemas.quality import Quality, QualityRecord
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.selftest.cases import Case
from ppsyn.selftest.likelihood import Tape, Transcript
from ppsyn.storage import Store, open_store

RUN, OTHER, QUALITY = "20260101-000000-00000000", "20260101-000000-11111111", "20260101-000000-00000000-q"
_DATASET = "canary"
_CAP = 1000.0
_OTHER_RHO = Fraction(8)
_OTHER: Mapping[str, object] = {"mechanism": "mst", "max_fit_steps": 1}
"""The run beside sees the table far better than the release that is attacked may; it is one that takes little time."""

Wrapper = Callable[[Curator], Curator]
"""What is put between the loop and its curator."""


@dataclass(frozen=True, slots=True)
class Released:
    """What somebody outside can see of a release.

    Attributes:
        transcript: Its questions and answers, and those about its quality.
        folder: The published files; none if it was not published.
    """

    transcript: Transcript
    folder: Mapping[str, bytes]


class Stage:
    """Where releases are made: a private table on disk, and a store in memory that is emptied between them.

    A release that is published encodes the table itself. Others get a copy of the encoded table, which takes longer to
    make than all answers together, and is the same for each of them.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        """Keep the private table in `folder`."""
        self._case, self._source = case, folder / "table.parquet"
        self._root = Location(url=f"memory://selftest-{os.getpid()}")
        self._has_canary: bool | None = None
        self._encoded: Mapping[str, bytes] = {}

    def release(
        self, seed: int, *, has_canary: bool, is_published: bool, between: Wrapper = lambda curator: curator
    ) -> Released:
        """A release of its own, from an empty store.

        Args:
            seed: For the synthetic rows.
            has_canary: Which of the two tables it is of. All else is the same.
            is_published: Whether it goes on to the published folder.
            between: What the answers pass through.
        """
        if has_canary != self._has_canary:
            self._case.frame(has_canary=has_canary).to_parquet(self._source, index=False)
            self._has_canary, self._encoded = has_canary, {}
        if is_published:
            self._encoded = {}
        try:
            return self._released(seed, is_published, between)
        finally:
            open_store(self._root).delete("")

    def _released(self, seed: int, is_published: bool, between: Wrapper) -> Released:
        case, config = self._case, self._config(self._case.rho, seed)
        run = self._begun(config, RUN, between)
        tapes = [run]
        other = self._begun(self._config(_OTHER_RHO, seed, _OTHER), OTHER) if case.is_overlapped else None
        while run.state.stage != "done":
            run.ask()
            run.absorb()
            if other is not None and other.state.stage != "done":
                other.ask()
                other.absorb()
            if run.state.stage == "select":
                run.checkpoint()
            if case.is_resumed and len(tapes) < 3 and run.state.stage in ("select", "measure"):
                run = _killed(run, is_charged=run.state.stage == "select")
                tapes.append(run)
        transcript = [pair for part in tapes for pair in part.tape.transcript]
        if is_published or case.quality:
            stage_rows(run)
            stage_validation(run)
            stage_records(run)
            publish(run)
        if case.quality:
            transcript += self._compared(run.ref, config)
        return Released(transcript, self._files(run) if is_published else {})

    def _begun(self, config: ReleaseConfig, name: str, between: Wrapper = lambda curator: curator) -> "_Taped":
        ref = record.ref_of(config, name)
        preflight.begin(ref, config, self._case.table)
        self._encode(ref)
        return _Taped(ref, between)

    def _encode(self, ref: RunRef) -> None:
        """Put the copy of the encoded table in its place; if there is none yet, encode the table."""
        private = open_store(ref.private.child(record.private_folder(ref.run)))
        for key, data in self._encoded.items():
            private.put(key, data)
        preflight.snapshot(ref)
        keys = private.keys()
        self._encoded = {key: private.get(key) for key in keys}

    def _config(self, rho: Fraction, seed: int, settings: Mapping[str, object] | None = None) -> ReleaseConfig:
        return ReleaseConfig.model_validate(
            {
                "dataset": _DATASET,
                "source": {"kind": "parquet", "path": str(self._source)},
                "schema": "canary.yaml",
                "privacy": self._case.privacy.model_copy(update={"rho": float(rho)}),
                "account": {"cap": {"rho": _CAP}},
                "algorithm": {**(settings or self._case.settings), "workload": self._case.workload},
                "generation": {"seed": seed},
                "stores": {"root": self._root},
            }
        )

    def _compared(self, ref: RunRef, config: ReleaseConfig) -> Transcript:
        """Figures of the quality, and what they tell of the questions."""
        release = self._folder(ref)
        manifest, digest = read_sealed(release)
        domain = domain_of(manifest.table)
        sets = sets_of(domain, manifest.algorithm.workload)
        record = QualityRecord(
            run=QUALITY, dataset=manifest.dataset, release=manifest.run, manifest=digest, rho=self._case.quality,
            delta=None, person=manifest.privacy.person, sets=sets,
        )  # fmt: skip
        synthetic = published_counts(release, manifest, cliques_of(sets))
        about = ref.model_copy(update={"run": QUALITY})
        quality = quality_run.measure(about, record, config.source, manifest.table, synthetic)
        quality_run.publish(release, quality)
        first, second = shares_of(record.rho, sets)
        figures = compare_request(sets, synthetic, scaled_to(quality.rows), second)
        return [(rows_request(domain, first), _rows_in(quality)), (figures, _figures_in(quality))]

    def _folder(self, ref: RunRef) -> Store:
        return open_store(ref.releases.child(release_folder(ref.dataset, ref.run)))

    def _files(self, run: Run) -> Mapping[str, bytes]:
        folder = self._folder(run.ref)
        keys = folder.keys()
        return {key: folder.get(key) for key in keys}


class _Taped(Run):
    """A run whose questions and answers are written down."""

    def __init__(self, ref: RunRef, between: Wrapper) -> None:
        super().__init__(ref)
        self.between = between

    @cached_property
    def tape(self) -> Tape:
        return Tape(self.between(super()._curator))

    @cached_property
    @override
    def _curator(self) -> Curator:
        return self.tape


class Repeating:
    """A curator that charges and draws, and whose answers are then replaced by others, given beforehand."""

    def __init__(self, curator: Curator, answers: Iterator[Answer]) -> None:
        """Give the answers that come next of `answers`."""
        self._curator, self._answers = curator, answers

    def answer(self, request: Request) -> Answer:
        """The answer that was given before."""
        self._curator.answer(request)
        return next(self._answers)


def _killed(run: _Taped, *, is_charged: bool) -> _Taped:
    """What another process finds after this one was killed: right after a charge, or between two questions."""
    if is_charged:
        request = next_request(run.state)
        if request is None:
            raise InvariantError("A run was to be killed that was over.")
        kind, clique = ("measure", request.clique) if isinstance(request, MeasureRequest) else ("select", ())
        spend = Spend(kind, request.rho, request.digest(), clique)
        RunAccount(run.account, run.ref.run).charge(spend)
    return _Taped(run.ref, run.between)


def _rows_in(quality: Quality) -> Measured:
    return Measured(np.array([quality.rows.noisy], np.int64), quality.rows.sigma)


def _figures_in(quality: Quality) -> Measured:
    return Measured(np.array([figure.noisy for figure in quality.figures], np.int64), quality.sigma)
