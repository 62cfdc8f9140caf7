"""Faults of the account in a store: what passes the cap, is forgotten, or is shared."""

from mutants.fault import Fault

ACCOUNT = "ppsyn/privacy/account.py"
BOOK = "ppsyn/privacy/account_state.py"
CHAIN = "ppsyn/privacy/account_state.py"

FAULTS = (
    Fault(
        "every reservation has the whole cap",
        "C9",
        BOOK,
        "        if not 0 < entry.rho <= self.left:\n",
        "        if not 0 < entry.rho <= self.cap:\n",
        "Releases together pass the cap.",
        "test_c9_a_reservation_that_was_overtaken_and_no_longer_fits_is_refused",
    ),
    Fault(
        "what open runs reserved does not count",
        "C9",
        BOOK,
        "        return self.total if self.is_open else self.spent\n",
        "        return self.spent\n",
        "Runs that have not spent yet leave room that they will need.",
        "test_c9_a_reservation_that_was_overtaken_and_no_longer_fits_is_refused",
    ),
    Fault(
        "a run reserves budget again",
        "C9",
        BOOK,
        "        if entry.run in self.budgets:\n",
        "        if entry.run in self.budgets and self.budgets[entry.run].is_open:\n",
        "What it has spent before is forgotten.",
        "test_c9_no_sequence_of_writes_by_any_handle_passes_the_cap_or_changes_what_was_written",
    ),
    Fault(
        "a cap below what is committed",
        "C9",
        BOOK,
        "        if entry.cap < self.committed or entry.cap <= 0:\n",
        "        if entry.cap <= 0:\n",
        "The cap is passed without a spend.",
        "test_c9_no_sequence_of_writes_by_any_handle_passes_the_cap_or_changes_what_was_written",
    ),
    Fault(
        "entries need not follow each other",
        "C9",
        BOOK,
        "        if entry.number != self.count or entry.previous != self.head:\n",
        "        if entry.number != self.count:\n",
        "An entry that was rewritten is not found by the one after it.",
        "test_an_entry_rewritten_with_its_digest_is_found_by_its_successor_and_the_last_has_none",
    ),
    Fault(
        "the units of an account are not compared",
        "C9",
        ACCOUNT,
        "        if state is not None and state.opening.unit != unit:\n",
        "        if state is not None and state.opening.unit != unit and cap == 0:\n",
        "Costs of rows and costs of persons are added up as if they were the same.",
        "test_c9_an_account_is_not_used_for_another_unit",
    ),
    Fault(
        "an entry that was not created counts as written",
        "C9",
        ACCOUNT,
        "            return self._store.get(key) == data\n",
        "            return self._store.has(key)\n",
        "The writer draws, and its charge is another's.",
        "test_c9_a_charge_that_was_overtaken_by_one_of_the_same_step_is_refused",
    ),
    Fault(
        "entries are written over",
        "C9",
        ACCOUNT,
        "        if self._store.create(key, data):\n            return True\n",
        "        self._store.put(key, data)\n        if data:\n            return True\n",
        "Of two writers of the same number the account keeps one.",
        "test_c9_a_writer_that_others_overtake_takes_a_number_after_theirs",
    ),
    Fault(
        "a charge that was not confirmed is drawn for",
        "C9",
        ACCOUNT,
        "        self._account.charge(self._run, self._steps if self._step is None else self._step(), spend)\n",
        """        from contextlib import suppress

        from ppsyn.errors import StoreError

        with suppress(StoreError):
            self._account.charge(self._run, self._steps if self._step is None else self._step(), spend)
""",
        "It may not be in the store at all.",
        "test_c9_a_charge_that_the_store_does_not_confirm_is_never_drawn_for",
    ),
    Fault(
        "a charge is written when the next one comes",
        "C9",
        ACCOUNT,
        "        self._account.charge(self._run, self._steps if self._step is None else self._step(), spend)\n",
        """        step = self._steps if self._step is None else self._step()
        before, self._later = getattr(self, "_later", None), (self._run, step, spend)
        if before is not None:
            self._account.charge(*before)
""",
        "A process that dies has drawn for nothing.",
        "test_c9_the_store_holds_the_charge_of_this_request_at_the_moment_of_the_draw",
    ),
    Fault(
        "a run is charged more than it was granted",
        "C9",
        CHAIN,
        "None if isinstance(entry, Seal) else self.ledger.debit(spend_of(entry))",
        "None if isinstance(entry, Seal) else Ledger(self.ledger.total, (*self.ledger.spends, spend_of(entry)))",
        "It passes what it reserved.",
        "test_c9_no_sequence_of_writes_by_any_handle_passes_the_cap_or_changes_what_was_written",
    ),
    Fault(
        "a run is charged after its seal",
        "C9",
        CHAIN,
        "        if self.seal is not None:\n",
        "        if self.seal is not None and isinstance(entry, Seal):\n",
        "What the account counts for a closed run grows.",
        "test_c9_a_charge_that_was_overtaken_by_the_close_of_its_run_is_refused",
    ),
    Fault(
        "a step may be charged by whoever comes",
        "C9",
        CHAIN,
        "            if isinstance(entry, Charge) and entry.step < self.count:\n",
        "            if isinstance(entry, Charge) and entry.step < self.count - 1:\n",
        "Who was overtaken is not told so.",
        "test_c9_a_charge_that_was_overtaken_by_one_of_the_same_step_is_refused",
    ),
    Fault(
        "charges need not follow each other",
        "C9",
        CHAIN,
        "            if entry.number == self.count and entry.previous == self.head:\n",
        "            if entry.number == self.count:\n",
        "A charge that was rewritten is not found by the one after it.",
        "test_c9_a_charge_that_was_rewritten_is_found_by_the_one_after_it",
    ),
    Fault(
        "a run is closed without a seal",
        "C9",
        ACCOUNT,
        "        spent = self._seal(run) if self.state.open_budget(run).is_chained else None\n",
        "        ledger = self.chain(run).ledger\n"
        "        spent = Spent(rho=ledger.spent, charges=len(ledger.spends), seal=self.chain(run).head)\n",
        "Another process may still be charged for it, and nobody counts that.",
        "test_c9_a_charge_that_comes_between_the_reading_and_the_seal_is_counted",
    ),
    Fault(
        "a close tells less than was charged",
        "C9",
        ACCOUNT,
        "        return Spent(rho=chain.ledger.spent, charges",
        "        return Spent(rho=chain.ledger.spent / 2, charges",
        "Half of what was spent is free again.",
        "test_c9_no_sequence_of_writes_by_any_handle_passes_the_cap_or_changes_what_was_written",
    ),
    Fault(
        "a close may tell more than was reserved",
        "C9",
        BOOK,
        "        if not 0 <= spent.rho <= budget.total or (spent.rho > 0)",
        "        if (spent.rho > 0)",
        "A forged close goes unseen: what is committed passes the cap.",
        "test_c9_a_close_that_tells_more_than_was_reserved_is_refused",
    ),
    Fault(
        "the charges of a closed run are not compared with its close",
        "C9",
        ACCOUNT,
        "        if not budget.is_open and (chain.seal,",
        "        if not budget.is_open and chain.count < 0 and (chain.seal,",
        "Charges that were removed or rewritten since are not found.",
        "test_charges_that_are_not_those_that_a_run_was_closed_with_are_found",
    ),
    Fault(
        "a release tells what its account has left",
        "C9",
        "ppsyn/releases/budget_checks.py",
        "head=hash_of(chain.lines[-1]), cap=budget.cap)",
        "head=hash_of(chain.lines[-1]), cap=budget.cap + account.state.left)",
        "What other runs have spent follows from their answers, which this release has not paid for.",
        "test_c9_not_a_byte_of_a_release_depends_on_what_another_run_asked_and_was_answered_or_that_there_was_one",
    ),
    Fault(
        "an account forgets what comes after its millionth entry",
        "C9",
        ACCOUNT,
        "    return max((int(name) for name in names if name.isdecimal()), default=-1)\n",
        "    return int(max((name for name in names if name.isdecimal()), default=-1))\n",
        "Numbers of seven digits stand before 999999 in the order of names.",
        "test_the_last_entry_is_the_one_with_the_largest_number_not_the_last_by_name",
    ),
    Fault(
        "an account that was removed is not missed",
        "C9",
        "ppsyn/runs/account_check.py",
        "    if lacking:\n",
        "    if lacking and not found:\n",
        "What was spent already would be spent again.",
        "test_c9_an_account_that_does_not_know_what_was_charged_is_refused_before_anything_is_spent",
    ),
)
