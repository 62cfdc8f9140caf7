"""Faults of a selection: the law of the index that comes back."""

from mutants.fault import Fault

MECHANISMS = "ppsyn/privacy/noise.py"

CHOSEN = "    return int(measurement(list(scores)))\n"

FAULTS = (
    Fault(
        "a selection is drawn at 0.95 of its scale after the check",
        "C3",
        MECHANISMS,
        CHOSEN,
        "    measurement = make_noisy_max(*space, zero_concentrated_divergence(), scale=0.95 * scale)\n" + CHOSEN,
        "What is checked is not what is drawn: it costs 11% more.",
        "test_c3_what_opendp_draws_among_all_scores_is_the_answer",
    ),
    Fault(
        "a selection is drawn whatever it costs",
        "C3",
        MECHANISMS,
        "    _check_cost(measurement.map(sensitivity), rho)\n",
        "",
        "OpenDP's privacy map is no longer held against rho before the draw.",
        "test_c3_a_selection_that_costs_more_than_was_charged_is_not_drawn",
    ),
    Fault(
        "a selection at half of its scale",
        "C3",
        MECHANISMS,
        "    scale = noise_scale(rho, sensitivity)\n    measurement = make_noisy_max(",
        "    scale = noise_scale(4 * rho, sensitivity)\n    rho = 4 * rho\n    measurement = make_noisy_max(",
        "It costs four times what is charged.",
        "test_c3_selection_has_the_scale_that_the_budget_buys",
    ),
    Fault(
        "the best candidate without noise",
        "C3",
        MECHANISMS,
        CHOSEN,
        "    return int(np.argmax(scores))\n",
        "Which candidate is the best is told for certain.",
        "test_c3_candidates_are_drawn_in_proportion_to_the_exponential_of_their_scores",
    ),
    Fault(
        "the better of two draws",
        "C3",
        MECHANISMS,
        CHOSEN,
        "    return max((int(measurement(list(scores))) for _ in range(2)), key=scores.__getitem__)\n",
        "Two draws and a look at the exact scores, for the price of one.",
        "test_c3_candidates_are_drawn_in_proportion_to_the_exponential_of_their_scores",
    ),
    Fault(
        "candidates that are far behind are not drawn from",
        "C3",
        MECHANISMS,
        CHOSEN,
        """    near = [place for place, score in enumerate(scores) if score > max(scores) - 3 * scale]
    return near[int(measurement([scores[place] for place in near]))]
""",
        "Which candidates could be drawn follows from the exact scores; a row may move one over the edge.",
        "test_c3_candidates_are_drawn_in_proportion_to_the_exponential_of_their_scores",
    ),
    Fault(
        "Gumbel noise of a generator in doubles",
        "C3",
        MECHANISMS,
        CHOSEN,
        """    noise = np.random.Generator(np.random.PCG64(np.random.SeedSequence())).gumbel(0, scale, len(scores))
    return int(np.argmax(np.array(scores) + noise))
""",
        "The state of a generator of statistics can be told from what it draws, and large scores swallow its noise.",
        "test_c3_what_opendp_draws_among_all_scores_is_the_answer",
    ),
    Fault(
        "answers of a watched curator come when they are drawn",
        "C3",
        "ppsyn/privacy/curator.py",
        "            if self._is_watched:\n",
        "            if not self._is_watched:\n",
        "How long the sampler took follows from the exact scores, and Prefect keeps durations.",
        "test_c3_every_answer_of_a_watched_curator_waits_for_its_beat",
    ),
)
