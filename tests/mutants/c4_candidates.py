"""Faults of the list of candidates: who is on it, and whether the drawn one is measured."""

from mutants.fault import Fault

CURATOR = "ppsyn/privacy/curator.py"
SELECTION = "ppsyn/mechanisms/candidates.py"
SYNTHESIZER = "ppsyn/mechanisms/loop.py"

CHOSEN = "            return replace(state, chosen=request.candidates[answer.index])\n"

FAULTS = (
    Fault(
        "the curator leaves out candidates by their exact scores",
        "C4",
        CURATOR,
        '        scores = self._scores(request.candidates)\n        self._account.charge(Spend("select"',
        "        scores = self._scores(request.candidates)\n"
        "        scores = [score for score in scores if score > min(scores)] or scores\n"
        '        self._account.charge(Spend("select"',
        "Who is on the list follows from the table, without noise.",
        "test_c4_the_mechanism_runs_on_the_candidates_and_on_nothing_else",
    ),
    Fault(
        "a selection among nothing is charged",
        "C4",
        CURATOR,
        """        if not request.candidates:
            raise InvariantError("Expected at least one candidate; nothing was charged.")
        scores = self._scores(request.candidates)
        self._account.charge(Spend("select", request.rho, request.digest()))
""",
        """        scores = self._scores(request.candidates)
        self._account.charge(Spend("select", request.rho, request.digest()))
        if not request.candidates:
            raise InvariantError("Expected at least one candidate; nothing was charged.")
""",
        "The empty list is refused after its charge.",
        "test_c4_an_empty_list_is_refused_and_not_charged",
    ),
    Fault(
        "a drawn candidate is passed over for its size",
        "C4",
        SYNTHESIZER,
        CHOSEN,
        """            drawn = request.candidates[answer.index]
            return replace(state, chosen=drawn if len(drawn.clique) < 3 else request.candidates[0])
""",
        "The draw was over the candidate; that it is not measured was not settled before.",
        "test_c4_whichever_candidate_is_drawn_is_the_one_measured",
    ),
    Fault(
        "the candidate before the drawn one is measured",
        "C4",
        SYNTHESIZER,
        CHOSEN,
        "            return replace(state, chosen=request.candidates[answer.index - 1])\n",
        "What is measured is not what was drawn.",
        "test_c4_whichever_candidate_is_drawn_is_the_one_measured",
    ),
    Fault(
        "the drawn marginal is measured cell by cell",
        "C4",
        SYNTHESIZER,
        "    return MeasureRequest(state.chosen.clique, state.chosen.partition, _measure_rho(state))\n",
        """    from ppsyn.privacy.partition import finest

    cells = finest(state.plan.domain.size(state.chosen.clique))
    return MeasureRequest(state.chosen.clique, cells, _measure_rho(state))
""",
        "The partition that was scored is not the one that is measured.",
        "test_c4_whichever_candidate_is_drawn_is_the_one_measured",
    ),
    Fault(
        "candidates need not fit under the cap",
        "C4",
        SELECTION,
        "        if growth <= now_mb or",
        "        if growth >= 0 or",
        "One that is drawn may make the model pass the cap, and would have to be passed over.",
        "test_c4_every_candidate_keeps_the_model_under_the_cap",
    ),
    Fault(
        "single attributes are no candidates",
        "C4",
        SELECTION,
        "    return downward_closure((*workload, *((name,) for name in domain.names)))\n",
        "    return tuple(clique for clique in downward_closure(workload) if len(clique) > 1)\n",
        "The list may be empty.",
        "test_c4_single_attributes_are_always_candidates_so_there_is_always_something_to_draw",
    ),
    Fault(
        "marginals take turns by the number of measurements",
        "C4",
        SELECTION,
        "    return turns[len(state.rounds) % len(turns)]\n",
        "    return turns[len(state.measurements) % len(turns)]\n",
        "The turn is not that of the round: a lost answer moves it.",
        "test_c4_marginals_that_take_turns_are_called_up_by_the_number_of_rounds_whatever_the_answers",
    ),
    Fault(
        "candidates in an order of their own",
        "C4",
        SELECTION,
        "    for clique in cliques:\n        is_ordered",
        """    import secrets

    shuffled = secrets.SystemRandom().sample(sorted(cliques), len(tuple(cliques)))
    for clique in shuffled:
        is_ordered""",
        "The same answers give another list: candidates no longer follow from the answers alone.",
        "test_c4_candidates_follow_from_the_answers_alone",
    ),
)
