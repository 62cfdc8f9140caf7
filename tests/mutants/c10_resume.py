"""Faults of going on with a run: what is drawn again, forgotten, or taken for another."""

from mutants.fault import Fault

RUN = "ppsyn/runs/run.py"
ANSWERS = "ppsyn/runs/checkpoints.py"
PREFLIGHT = "ppsyn/runs/preflight.py"

SETTLED = "        kept = self._answers.keep(step, spend.digest, Lost()) or self._answers.find(step)\n"
CHECKPOINT = (
    "        if found is not None and (found.step > len(spends) or found.history != _history(spends[: found.step])):\n"
)

FAULTS = (
    Fault(
        "a replay does not compare a question with its charge",
        "C10",
        RUN,
        "        if request is None or request.digest() != spend.digest or request.rho != spend.rho:\n",
        "        if request is None:\n",
        "An answer is taken for that to another question.",
        "test_c10_a_run_that_would_ask_something_else_than_it_did_is_refused",
    ),
    Fault(
        "a replay does not compare what a question cost",
        "C10",
        RUN,
        "request.digest() != spend.digest or request.rho != spend.rho:",
        "request.digest() != spend.digest:",
        "The loop and the account would disagree on what is left.",
        "test_c10_a_run_that_would_ask_something_else_than_it_did_is_refused",
    ),
    Fault(
        "a table is read again after the first question",
        "C10",
        PREFLIGHT,
        "    if budget is not None and budget.charges:\n",
        "    if budget is not None and budget.charges < 0:\n",
        "Later answers are about another table, of which a person may hold other m rows: 2 m in all.",
        "test_c10_a_table_is_not_read_again_once_something_was_asked",
    ),
    Fault(
        "a run is resumed under another record",
        "C10",
        PREFLIGHT,
        "        check_unchanged(ref, record)\n",
        "        _ = record\n",
        "The stored answers are those of other inputs.",
        "test_c10_a_run_is_not_resumed_under_another_record",
    ),
    Fault(
        "an answer is written over",
        "C10",
        ANSWERS,
        "        is_kept = self._store.create(self._key(step), data) or self._store.get(self._key(step)) == data\n",
        "        self._store.put(self._key(step), data)\n        is_kept = True\n",
        "A step has two answers, one after the other.",
        "test_c10_a_step_has_the_answer_that_was_kept_first_for_ever",
    ),
    Fault(
        "an answer that was not kept is used",
        "C10",
        RUN,
        "        if kept is None:\n            raise RunTakenError(self.ref.run)\n",
        "        kept = kept or Kept(Lost(), self.step, request.digest(), request.digest())\n",
        "What was drawn too late, and is lost for all others, shapes what is published.",
        "test_c10_an_answer_that_comes_after_its_step_was_lost_is_thrown_away",
    ),
    Fault(
        "any answer will do",
        "C10",
        ANSWERS,
        " or self._store.get(self._key(step)) == data\n",
        " or self._store.has(self._key(step))\n",
        "A second draw passes for the first.",
        "test_c10_a_step_has_the_answer_that_was_kept_first_for_ever",
    ),
    Fault(
        "that an answer was lost is not written down",
        "C10",
        RUN,
        SETTLED,
        "        kept = Kept(Lost(), step, spend.digest, spend.digest)\n",
        "A slow process may still bring it: one run is told of two histories.",
        "test_c10_an_answer_that_comes_after_its_step_was_lost_is_thrown_away",
    ),
    Fault(
        "a lost answer is drawn again",
        "C10",
        RUN,
        SETTLED,
        """        from ppsyn.privacy.ledger import MemoryAccount

        request = next_request(self.state)
        if request is not None:
            again = TableCurator(self._curator._counter, MemoryAccount(self.plan.rho), self.plan.sensitivity)
            self._answers.keep(step, spend.digest, again.answer(request))
        kept = self._answers.find(step)
""",
        "One charge pays for two draws.",
        "test_c10_an_answer_that_comes_after_its_step_was_lost_is_thrown_away",
    ),
    Fault(
        "a process charges whatever step comes next",
        "C10",
        RUN,
        "RunAccount(self.account, self.ref.run, lambda: self.step)",
        "RunAccount(self.account, self.ref.run)",
        "Who was overtaken charges a step that is not the one it asks.",
        "test_c10_a_process_that_was_overtaken_before_its_first_question_charges_nothing",
    ),
    Fault(
        "an account may be set back",
        "C10",
        RUN,
        "        if answered and answered[-1] >= len(spends):\n",
        "        if answered and answered[-1] >= len(spends) + 10**6:\n",
        "What was drawn and is no longer charged would be charged, and drawn, anew.",
        "test_c10_a_run_whose_account_was_set_back_is_refused",
    ),
    Fault(
        "a checkpoint of another history is gone on from",
        "C10",
        RUN,
        CHECKPOINT,
        "        if found is not None and found.step > len(spends):\n",
        "Its state follows from other answers than those that were paid for.",
        "test_c10_a_checkpoint_of_another_history_is_refused",
    ),
    Fault(
        "a checkpoint from beyond the account is gone on from",
        "C10",
        RUN,
        CHECKPOINT,
        "        if found is not None and found.history != _history(spends[: found.step]):\n",
        "Its steps have never been charged.",
        "test_c10_a_checkpoint_of_another_history_is_refused",
    ),
)
