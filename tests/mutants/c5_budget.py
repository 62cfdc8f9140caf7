"""Faults of the budget: when it is charged, how much, and what stops a draw."""

from mutants.fault import Fault

CURATOR = "ppsyn/privacy/curator.py"
LEDGER = "ppsyn/privacy/ledger.py"
SHARES = "ppsyn/privacy/budget.py"
SYNTHESIZER = "ppsyn/mechanisms/loop.py"

MEASURED = """        self._account.charge(Spend("measure", request.rho, request.digest(), request.clique))
        with self._paced(values.size):
            return Measured(*add_discrete_gaussian(values, request.rho, self._max_rows * request.sensitivity))
"""
SELECTED = """        self._account.charge(Spend("select", request.rho, request.digest()))
        with self._paced(len(scores)):
            return Selected(draw_noisy_max(scores, request.rho, self._max_rows * sensitivity(request.candidates)))
"""
DEBIT = "        if not 0 < spend.rho <= self.left:\n"

FAULTS = (
    Fault(
        "a measurement is charged after its draw",
        "C5",
        CURATOR,
        MEASURED,
        """        drawn = Measured(*add_discrete_gaussian(values, request.rho, self._max_rows * request.sensitivity))
        self._account.charge(Spend("measure", request.rho, request.digest(), request.clique))
        return drawn
""",
        "A process that dies in between has drawn for nothing.",
        "test_c5_the_spend_is_written_before_the_draw",
    ),
    Fault(
        "a selection is charged after its draw",
        "C5",
        CURATOR,
        SELECTED,
        """        move = self._max_rows * sensitivity(request.candidates)
        drawn = Selected(draw_noisy_max(scores, request.rho, move))
        self._account.charge(Spend("select", request.rho, request.digest()))
        return drawn
""",
        "A process that dies in between has drawn for nothing.",
        "test_c5_the_spend_is_written_before_the_draw",
    ),
    Fault(
        "selections are not charged",
        "C5",
        CURATOR,
        '        self._account.charge(Spend("select", request.rho, request.digest()))\n',
        "",
        "They cost rho all the same.",
        "test_c5_the_spend_is_written_before_the_draw",
    ),
    Fault(
        "a selection is charged one half",
        "C5",
        CURATOR,
        'Spend("select", request.rho, request.digest())',
        'Spend("select", request.rho / 2, request.digest())',
        "The ledger tells less than was spent.",
        "test_c5_the_spend_is_written_before_the_draw",
    ),
    Fault(
        "a measurement is drawn although its charge was refused",
        "C5",
        CURATOR,
        MEASURED,
        """        from contextlib import suppress

        from ppsyn.errors import BudgetExceededError

        with suppress(BudgetExceededError):
            self._account.charge(Spend("measure", request.rho, request.digest(), request.clique))
        return Measured(*add_discrete_gaussian(values, request.rho, self._max_rows * request.sensitivity))
""",
        "The budget is passed.",
        "test_c5_what_the_budget_does_not_cover_is_never_drawn",
    ),
    Fault(
        "a measurement that fails gives its charge back",
        "C5",
        CURATOR,
        MEASURED,
        """        before = self._account.ledger
        self._account.charge(Spend("measure", request.rho, request.digest(), request.clique))
        try:
            return Measured(*add_discrete_gaussian(values, request.rho, self._max_rows * request.sensitivity))
        except OSError:
            self._account._ledger = before
            raise
""",
        "Noise may have been drawn, and seen, before it failed.",
        "test_c5_a_draw_that_fails_stays_charged",
    ),
    Fault(
        "a measurement is drawn at more than it is charged",
        "C5",
        CURATOR,
        "return Measured(*add_discrete_gaussian(values, request.rho, self._max_rows",
        "return Measured(*add_discrete_gaussian(values, 2 * request.rho, self._max_rows",
        "It costs twice what the ledger says.",
        "test_c5_the_spend_is_written_before_the_draw",
    ),
    Fault(
        "the last of the budget cannot be spent",
        "C5",
        LEDGER,
        DEBIT,
        "        if not 0 < spend.rho < self.left:\n",
        "The bound is at most the total, and a plan spends all of it.",
        "test_c5_equal_parts_of_the_total_fit_exactly_and_nothing_more_does",
    ),
    Fault(
        "spends may be negative",
        "C5",
        LEDGER,
        DEBIT,
        "        if not spend.rho <= self.left:\n",
        "A negative spend makes room for more than the total.",
        "test_c5_no_sequence_of_spends_passes_the_total",
    ),
    Fault(
        "the ledger ends a little beyond the total",
        "C5",
        LEDGER,
        DEBIT,
        "        if not 0 < spend.rho <= self.left + Fraction(1, 10**9):\n",
        "The total is passed, by little.",
        "test_c5_equal_parts_of_the_total_fit_exactly_and_nothing_more_does",
    ),
    Fault(
        "the ledger adds in doubles",
        "C5",
        LEDGER,
        "        return sum((spend.rho for spend in self.spends), Fraction(0))\n",
        "        return Fraction(sum(float(spend.rho) for spend in self.spends))\n",
        "Rounding lets through what is beyond the total, or keeps back what is left.",
        "test_c5_equal_parts_of_the_total_fit_exactly_and_nothing_more_does",
    ),
    Fault(
        "the ledger forgets all but the last spend",
        "C5",
        LEDGER,
        "        return replace(self, spends=(*self.spends, spend))\n",
        "        return replace(self, spends=(spend,))\n",
        "What was spent before may be spent again.",
        "test_c5_equal_parts_of_the_total_fit_exactly_and_nothing_more_does",
    ),
    Fault(
        "parts of a budget are rounded up",
        "C5",
        SHARES,
        "    return Fraction(math.floor(rho * _GRID), _GRID)\n",
        "    return Fraction(math.floor(rho * _GRID) + 1, _GRID)\n",
        "They sum to more than the whole.",
        "test_c5_parts_of_a_budget_never_sum_to_more_than_it",
    ),
    Fault(
        "the loop takes a lost answer for free",
        "C5",
        SYNTHESIZER,
        '    """The budget is gone and the answer with it; go on with what is left."""\n',
        '    """Go on with what is left."""\n'
        "    state = replace(state, spent=state.spent - (state.one_way[0].rho if state.one_way else 0))\n",
        "It was charged: its noise may have been seen.",
        "test_c5_the_loop_spends_the_whole_budget_and_never_more_whatever_is_lost",
    ),
    Fault(
        "the loop spends a round's whole budget on its measurement",
        "C5",
        SYNTHESIZER,
        "    return state.left if state.left < share + state.round_rho else share\n",
        "    return state.left if state.left < share + state.round_rho else state.round_rho + state.left\n",
        "Selection and measurement together pass what a round may cost, and the total.",
        "test_c5_the_loop_spends_the_whole_budget_and_never_more_whatever_is_lost",
    ),
    Fault(
        "the ledger names another question",
        "C5",
        CURATOR,
        'Spend("measure", request.rho, request.digest(), request.clique)',
        'Spend("measure", request.rho, "", request.clique)',
        "An auditor cannot tell what was paid for.",
        "test_c5_the_ledger_names_the_question_it_paid_for",
    ),
)
