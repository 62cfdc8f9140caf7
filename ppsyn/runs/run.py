"""A release in progress. Everything it knows is in its stores, so that any process can go on with it."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from uuid import uuid4

from ppsyn.dp.account import RunAccount, StoredAccount
from ppsyn.dp.book import Part
from ppsyn.dp.curator import TableCurator
from ppsyn.dp.ledger import Ledger, Spend
from ppsyn.errors import InvariantError, ResumeRefusedError, RunError, RunTakenError
from ppsyn.marginals.held import open_counter
from ppsyn.marginals.spread import Spread, Work
from ppsyn.requests import Answer, Curator, Lost, Request
from ppsyn.runs.answers import Answers
from ppsyn.runs.checkpoints import Checkpoints
from ppsyn.runs.records import plan_of, private_folder, read_record
from ppsyn.snapshot import Shelf, open_snapshot
from ppsyn.storage import open_store
from ppsyn.synthesizer import absorb, next_request, start
from schemas.run import RunRef


class Run:
    """The loop of one run, with its answers kept and its budget charged.

    Privacy:
        Claim C10. A step is charged once, drawn once by the process that charged
        it, and has one answer for ever: the one drawn, or that it was lost.
    """

    def __init__(self, ref: RunRef) -> None:
        """Go on where the stores say: from the last checkpoint, over the answers after it.

        Raises:
            ResumeRefusedError: If the code would ask something else than was asked.
            RunError: If the account and the answers contradict each other.
        """
        self.ref, self._root, self.private = ref, open_store(ref.root), open_store(ref.private)
        self.releases = open_store(ref.releases)
        self.record = read_record(self._root, ref.run)
        self.account = StoredAccount(self._root, ref.dataset)
        self._answers, self._checkpoints = Answers(self._root, ref.run), Checkpoints(self._root, ref.run)
        self.plan = plan_of(self.record)
        self.state, self.step = start(self.plan), 0
        self.token = uuid4().hex
        self.work: Work | None = None
        self._pending: tuple[Request, Answer] | None = None
        self._restore()

    def __repr__(self) -> str:
        """Say which run."""
        return f"Run({self.ref.run})"

    @property
    def part(self) -> Part:
        """The run's part of the account."""
        part = self.account.book.parts.get(self.ref.run)
        if part is None:
            raise RunError(f"Run {self.ref.run} has set no budget aside.")
        return part

    @property
    def ledger(self) -> Ledger:
        """What the run holds and was charged."""
        return self.account.chain(self.ref.run).ledger

    def answers(self) -> list[Answer]:
        """All answers so far, lost ones included."""
        return [self._settled(step) for step in range(self.step)]

    def count(self) -> None:
        """Have the marginals counted that the run will ask for, as far as there is room for them."""
        _ = self._curator

    def ask(self) -> None:
        """Ask the next question: charge it, draw the answer, keep the answer.

        Raises:
            RunTakenError: If another process goes on with this run.
        """
        request = next_request(self.state)
        if request is None or self._pending is not None:
            raise InvariantError("A question was to be asked out of turn.")
        answer = self._curator.answer(request)
        if not self._answers.keep(self.step, answer):
            raise RunTakenError(self.ref.run)
        self._pending = request, answer

    def absorb(self) -> None:
        """Take in the answer to the last question, if that was not done before."""
        if self._pending is not None:
            self._take(*self._pending)
            self._pending = None

    def settle_manifest(self, data: bytes) -> bytes:
        """The one manifest of this run: the first that any process made."""
        self._root.create(f"runs/{self.ref.run}/manifest.json", data)
        return self._root.get(f"runs/{self.ref.run}/manifest.json")

    def checkpoint(self) -> None:
        """Keep the state for whoever resumes; between rounds only."""
        self._checkpoints.save(self.step, self.state, _history(self.ledger.spends[: self.step]))

    @cached_property
    def _curator(self) -> Curator:
        snapshot = open_snapshot(Shelf(self.private, private_folder(self.ref.run)), self.record.table)
        rows = None if self.work is None else Spread(snapshot, self.ref.runtime.part_count, self.work)
        counter = open_counter(snapshot, chain.from_iterable(self.plan.turns), self.ref.runtime.marginals_mb, rows)
        account = RunAccount(self.account, self.ref.run, lambda: self.step)
        return TableCurator(counter, account, self.plan.sensitivity, is_watched=True)

    def _restore(self) -> None:
        spends = self.ledger.spends
        if self._answers.count() > len(spends):
            raise RunError(
                f"Run {self.ref.run} has answers that its account does not know: the account was set back. "
                "Restore the account, or its budget is no longer kept."
            )
        found = self._checkpoints.latest(self.plan)
        if found is not None:
            self.step, self.state, history = found
            if self.step > len(spends) or history != _history(spends[: self.step]):
                raise RunError(f"The checkpoint of run {self.ref.run} does not fit its account.")
        while self.step < len(spends):
            self._take(self._repeated(spends[self.step]), self._settled(self.step))

    def _repeated(self, spend: Spend) -> Request:
        """The question that was asked at this step, as the loop asks it now."""
        request = next_request(self.state)
        if request is None or request.digest() != spend.digest or request.rho != spend.rho:
            difference = f"step {self.step} would ask something else than it did, on this code or processor."
            raise ResumeRefusedError(self.ref.run, [difference])
        return request

    def _settled(self, step: int) -> Answer:
        """The answer of a step that was charged; if there is none, it is lost from now on."""
        answer = self._answers.find(step)
        if answer is None:
            self._answers.keep(step, Lost())
            answer = self._answers.find(step)
        if answer is None:
            raise InvariantError("An answer was kept and is not there.")
        return answer

    def _take(self, request: Request, answer: Answer) -> None:
        self.state, self.step = absorb(self.state, request, answer), self.step + 1


def _history(spends: Sequence[Spend]) -> str:
    """A digest of the questions asked so far."""
    return hashlib.sha256("\n".join(spend.digest for spend in spends).encode()).hexdigest()
