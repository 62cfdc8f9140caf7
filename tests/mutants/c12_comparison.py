"""Faults of figures about a release: what a unit moves them by, and what they are charged."""

from mutants.fault import Fault

CURATOR = "ppsyn/privacy/curator.py"
SCORES = "ppsyn/privacy/scores.py"
REQUESTS = "ppsyn/privacy/requests.py"
QUESTIONS = "ppsyn/quality/questions.py"
RUN = "ppsyn/quality/run.py"

MOVE = "        move = joint_sensitivity(self._max_rows * sensitivity(request.candidates), figures.size)\n"
CHARGED = """        self._account.charge(Spend("compare", request.rho, request.digest()))
        with self._paced(figures.size):
            return Measured(*add_discrete_gaussian(figures, request.rho, move))
"""

FAULTS = (
    Fault(
        "a comparison forgets the rows of a person",
        "C12",
        CURATOR,
        MOVE,
        MOVE.replace("self._max_rows * ", ""),
        "A person with m rows moves every figure by m.",
        "test_c12_the_declared_sensitivity_is_attained",
    ),
    Fault(
        "figures are charged as one",
        "C12",
        CURATOR,
        MOVE,
        MOVE.replace("figures.size", "1"),
        "k figures move by sqrt(k) together.",
        "test_c12_the_declared_sensitivity_is_attained",
    ),
    Fault(
        "the norm of several figures is rounded down",
        "C12",
        SCORES,
        "    return isqrt(figures * move * move - 1) + 1\n",
        "    return isqrt(figures * move * move)\n",
        "They move by a little more than is declared.",
        "test_c12_the_norm_of_several_figures_is_rounded_up_and_by_less_than_one",
    ),
    Fault(
        "a sum in the place of the mean",
        "C12",
        SCORES,
        "sum(members) // len(members)",
        "sum(members)",
        "The sum of K scores moves by K times as much.",
        "test_c12_a_figure_moves_no_further_than_the_scores_it_is_made_of",
    ),
    Fault(
        "the mean in doubles",
        "C12",
        SCORES,
        "sum(members) // len(members)",
        "int(sum(members) / len(members))",
        "Above 2^53 a mean moves by what rounding makes of it.",
        "test_c12_figures_are_exact_where_doubles_are_not_and_a_mean_is_rounded_down",
    ),
    Fault(
        "the range of the scores in the place of the largest",
        "C12",
        SCORES,
        'max(members) if figure.statistic == "worst"',
        '(max(members) - min(members)) if figure.statistic == "worst"',
        "The largest rises and the smallest falls: a row moves the range by twice as much.",
        "test_c12_a_figure_moves_no_further_than_the_scores_it_is_made_of",
    ),
    Fault(
        "a comparison is charged after its draw",
        "C12",
        CURATOR,
        CHARGED,
        """        drawn = Measured(*add_discrete_gaussian(figures, request.rho, move))
        self._account.charge(Spend("compare", request.rho, request.digest()))
        return drawn
""",
        "A process that dies in between has drawn for nothing.",
        "test_c12_it_is_charged_before_it_is_drawn",
    ),
    Fault(
        "a comparison is not charged",
        "C12",
        CURATOR,
        '        self._account.charge(Spend("compare", request.rho, request.digest()))\n',
        "",
        "It costs rho all the same.",
        "test_c12_it_is_charged_before_it_is_drawn",
    ),
    Fault(
        "figures without noise",
        "C12",
        CURATOR,
        "        return Measured(*add_discrete_gaussian(figures, request.rho, move))\n",
        "        return Measured(figures, add_discrete_gaussian(figures, request.rho, move)[1])\n",
        "They are exact.",
        "test_c12_noise_has_the_scale_that_the_budget_buys",
    ),
    Fault(
        "figures of candidates that are not there",
        "C12",
        REQUESTS,
        "all(f.members and all(m in known for m in f.members) for f in self.figures)",
        "all(f.members for f in self.figures)",
        "It would fail after rows were read; a member of -1 is counted under two names.",
        "test_c12_figures_of_nothing_or_of_what_is_not_there_are_refused",
    ),
    Fault(
        "both questions of quality get the whole budget",
        "C12",
        QUESTIONS,
        "    return first, rho - first\n",
        "    return first, rho\n",
        "Together they cost more than was reserved.",
        "test_c12_shares_of_the_budget_are_all_of_it",
    ),
    Fault(
        "the digest of a comparison forgets its figures",
        "C12",
        REQUESTS,
        "_fingerprint(self.candidates) + members)",
        "_fingerprint(self.candidates))",
        "The ledger names another question than the one that was answered.",
        "test_c12_every_part_of_a_question_is_in_its_digest",
    ),
    Fault(
        "the curator of quality is not told of max_rows",
        "C12",
        RUN,
        "RunAccount(account, ref.run), record.max_rows, is_watched=True)",
        "RunAccount(account, ref.run), is_watched=True)",
        "A person with m rows moves every figure by m; the noise hides one row.",
        "test_c12_what_quality_measures_is_bounded_and_scaled_by_the_rows_of_a_person",
    ),
)
