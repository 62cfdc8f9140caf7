"""A release in progress. Everything it knows is in its stores, so that any process can go on with it."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from uuid import uuid4

from ppsyn.data.marginals.cache import open_counter
from ppsyn.data.marginals.distributed import Spread, Work
from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.errors import InvariantError, ResumeRefusedError, RunError, RunTakenError
from ppsyn.mechanisms.loop import absorb, next_request, start
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.privacy.requests import Answer, Curator, Lost, Measured, Request, Selected
from ppsyn.runs.checkpoints import Answers, Checkpoint, Checkpoints, Kept
from ppsyn.runs.record import broken, past_of_run, plan_of, private_folder, read_record
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store

_KINDS: Mapping[str, type[Measured | Selected]] = {"measure": Measured, "select": Selected}
_NAMED = 5
"""At most this many faulty steps are named."""


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
        learned = past_of_run(self._root, self.record)
        self.past = None if learned is None else learned[0]
        self.plan = plan_of(self.record, None if learned is None else learned[1])
        self.state, self._taken = start(self.plan), list[Kept]()
        self.token = uuid4().hex
        self._work: Work | None = None
        self._is_replayed = True
        self._pending: tuple[Request, Kept] | None = None
        self._restore()

    def __repr__(self) -> str:
        """Say which run."""
        return f"Run({self.ref.run})"

    @property
    def budget(self) -> RunBudget:
        """The run's budget in the account."""
        budget = self.account.state.budgets.get(self.ref.run)
        if budget is None:
            raise RunError(f"Run {self.ref.run} has reserved no budget.")
        return budget

    @property
    def ledger(self) -> Ledger:
        """What the run reserved and was charged."""
        return self.account.chain(self.ref.run).ledger

    @property
    def step(self) -> int:
        """How many answers the state has taken in."""
        return len(self._taken)

    @property
    def is_replayed(self) -> bool:
        """Whether this process has gone through the loop from its first answer on."""
        return self._is_replayed

    def answers(self) -> list[Answer]:
        """All answers so far, lost ones included."""
        return [kept.answer for kept in self._taken]

    def count_with(self, work: Work | None) -> None:
        """Have the parts of each pass over the rows counted by `work`; by None, they are counted in this process."""
        self._work = work

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
        kept = self._answers.keep(self.step, request.digest(), self._curator.answer(request))
        if kept is None:
            raise RunTakenError(self.ref.run)
        self._pending = request, kept

    def absorb(self) -> None:
        """Take in the answer to the last question, if that was not done before."""
        if self._pending is not None:
            self._take(*self._pending)
            self._pending = None

    def keep_first_manifest(self, data: bytes) -> bytes:
        """The one manifest of this run: the first that any process made."""
        self._root.create(f"runs/{self.ref.run}/manifest.json", data)
        return self._root.get(f"runs/{self.ref.run}/manifest.json")

    def checkpoint(self) -> None:
        """Keep the state for whoever resumes; between rounds only."""
        history = _history(self.ledger.spends[: self.step])
        self._checkpoints.save(Checkpoint(self.state, history, tuple(kept.digest for kept in self._taken)))

    @cached_property
    def _curator(self) -> Curator:
        snapshot = open_snapshot(Shelf(self.private, private_folder(self.ref.run)), self.record.table)
        rows = None if self._work is None else Spread(snapshot, self.ref.runtime.part_count, self._work)
        counter = open_counter(snapshot, chain.from_iterable(self.plan.turns), self.ref.runtime.marginals_mb, rows)
        account = RunAccount(self.account, self.ref.run, lambda: self.step)
        return TableCurator(counter, account, self.plan.sensitivity, is_watched=True)

    def _restore(self) -> None:
        """Go to where the run is, if all that it is built on is there and fits together. Until then nothing is charged.

        What may be lost is the last answer alone: a step is charged when those before it have theirs.
        """
        answered = self._answers.steps()  # these first, and then the account: another process may go on meanwhile
        found = self._checkpoints.latest(self.plan)
        if self.record.digest() != self.budget.grant.inputs:
            raise self._broken("its record is not the one that its budget was reserved for")
        spends = self.ledger.spends
        if answered and answered[-1] >= len(spends):
            raise RunError(
                f"Run {self.ref.run} has answers that its account does not know: the account was set back. "
                "Restore the account, or its budget is no longer kept."
            )
        if found is not None and (found.step > len(spends) or found.history != _history(spends[: found.step])):
            raise RunError(f"The checkpoint of run {self.ref.run} does not fit its account.")
        kept = self._verified(spends, found)
        self._is_replayed = found is None
        if found is not None:
            self.state, self._taken = found.state, kept[: found.step]
        for spend, one in zip(spends[self.step :], kept[self.step :], strict=True):
            self._take(self._repeated(spend, one), one)

    def _verified(self, spends: Sequence[Spend], found: Checkpoint | None) -> list[Kept]:
        """The answers to all that was charged, each of its step, its question and its kind, and as it was taken in."""
        kept, taken = self._answers.first(len(spends)), () if found is None else found.answers
        gone = [step for step, one in enumerate(kept) if one is None and (step < len(spends) - 1 or step < len(taken))]
        if gone:
            raise self._broken(f"the answers to {_listed(gone)} are gone, which it has built on")
        answers = [one or self._lost(step, spends[step]) for step, one in enumerate(kept)]
        for step, (spend, one) in enumerate(zip(spends, answers, strict=True)):
            if one.request != spend.digest or not _is_of_kind(one.answer, spend):
                raise self._broken(f"the answer to step {step} is that to another question")
            if step < len(taken) and one.digest != taken[step]:
                raise self._broken(f"the answer to step {step} is not the one that its checkpoint has taken in")
        return answers

    def _lost(self, step: int, spend: Spend) -> Kept:
        """The answer of a step that was charged and has none: lost from now on, unless it came meanwhile."""
        kept = self._answers.keep(step, spend.digest, Lost()) or self._answers.find(step)
        if kept is None:
            raise InvariantError("An answer was kept and is not there.")
        return kept

    def _repeated(self, spend: Spend, kept: Kept) -> Request:
        """The question that was asked at this step, as the loop asks it now; and the answer has its shape."""
        request = next_request(self.state)
        if request is None or request.digest() != spend.digest or request.rho != spend.rho:
            difference = f"step {self.step} would ask something else than it did, on this code or processor."
            raise ResumeRefusedError(self.ref.run, [difference])
        if not request.is_answered_by(kept.answer):
            raise self._broken(f"the answer to step {self.step} is of another shape than its question")
        return request

    def _broken(self, problem: str) -> RunError:
        return broken(self.ref.run, problem)

    def _take(self, request: Request, kept: Kept) -> None:
        self.state = absorb(self.state, request, kept.answer)
        self._taken.append(kept)


def _is_of_kind(answer: Answer, spend: Spend) -> bool:
    return isinstance(answer, Lost) or (spend.kind in _KINDS and isinstance(answer, _KINDS[spend.kind]))


def _listed(steps: Sequence[int]) -> str:
    """Steps in words; of many, the first."""
    few = ", ".join(map(str, steps[:_NAMED]))
    listed = f"step {few}" if len(steps) == 1 else f"steps {few}"
    return listed if len(steps) <= _NAMED else f"{listed} and {len(steps) - _NAMED} more"


def _history(spends: Sequence[Spend]) -> str:
    """A digest of the questions asked so far."""
    return hashlib.sha256("\n".join(spend.digest for spend in spends).encode()).hexdigest()
