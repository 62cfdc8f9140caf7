"""Faults of what follows the answers: a way back to the table, or a trace of it."""

from mutants.fault import Fault

API = "ppsyn/api.py"
CURATOR = "ppsyn/privacy/curator.py"

MADE = "    return Synthesis.from_state(state, account.ledger, table, privacy, config, seed)\n"

FAULTS = (
    Fault(
        "what was learned is scaled to the number of rows of the table",
        "C6",
        API,
        "    past = _past(earlier, table, privacy)\n",
        "    past = _past(earlier, table, privacy)\n"
        '    past = past and __import__("dataclasses").replace(past, total=past.total + len(frame))\n',
        "The number of rows is private, and the first fit of a later release tells it.",
        "test_c6_neighbouring_series_of_equal_answers_are_published_alike",
    ),
    Fault(
        "a synthesis keeps its curator",
        "C6",
        API,
        MADE,
        MADE.replace("    return ", "    made = ") + '    made.__dict__["curator"] = curator\n    return made\n',
        "Whoever has the synthesis can count the table.",
        "test_c6_a_release_keeps_no_way_back_to_the_table",
    ),
    Fault(
        "the seed of the rows counts the rows of the table",
        "C6",
        API,
        MADE,
        MADE.replace(", seed)", ", seed + len(frame))"),
        "The number of rows is private, and is told by the seed.",
        "test_c6_equal_answers_about_different_tables_are_published_alike",
    ),
    Fault(
        "the ledger names the exact counts",
        "C6",
        CURATOR,
        'Spend("measure", request.rho, request.digest(), request.clique)',
        'Spend("measure", request.rho, __import__("hashlib").sha256(values.tobytes()).hexdigest(), request.clique)',
        "A digest of exact counts is told; whoever guesses them can tell.",
        "test_c6_equal_answers_about_different_tables_are_published_alike",
    ),
    Fault(
        "a curator shows what it guards",
        "C6",
        CURATOR,
        '        return "TableCurator()"\n',
        '        return f"TableCurator({self._counter.__dict__})"\n',
        "Logs and debuggers would show exact counts.",
        "test_c6_private_objects_show_nothing_of_the_table",
    ),
    Fault(
        "a counter shows what it holds",
        "C6",
        "ppsyn/data/marginals/counter.py",
        '        return "TableCounter()"\n',
        '        return f"TableCounter({self._known})"\n',
        "Logs and debuggers would show exact counts.",
        "test_c6_private_objects_show_nothing_of_the_table",
    ),
    Fault(
        "noise from the seed of nothing",
        "C6",
        "ppsyn/privacy/noise.py",
        "    return np.array(measurement(exact_counts.tolist()), np.int64), scale\n",
        """    rng = np.random.Generator(np.random.PCG64(7))
    return exact_counts + np.rint(rng.normal(0, scale, exact_counts.size)).astype(np.int64), scale
""",
        "Whoever knows the code takes the noise off.",
        "test_c6_the_seed_has_no_part_in_the_noise",
    ),
    Fault(
        "rows are made with entropy beside their seed",
        "C6",
        "ppsyn/synthesis.py",
        "self.seed if seed is None else seed)",
        'int.from_bytes(__import__("secrets").token_bytes(4)))',
        "What is published is no longer a function of the answers and the seed.",
        "test_c6_the_seed_decides_the_rows_once_the_noise_is_drawn",
    ),
    Fault(
        "the loop knows the counters",
        "C6",
        "ppsyn/mechanisms/candidates.py",
        "from ppsyn.privacy.requests import GRID, MAX_PENALTY, Candidate, noise_scale, to_grid\n",
        "from ppsyn.data.marginals.kernel import count_blocks as count_blocks\n"
        "from ppsyn.privacy.requests import GRID, MAX_PENALTY, Candidate, noise_scale, to_grid\n",
        "What chooses the questions could look at the rows.",
        "test_the_loop_cannot_reach_a_private_value",
    ),
    Fault(
        "generation asks the table again",
        "C6",
        API,
        MADE,
        """    from ppsyn.privacy.partition import equal_width
    from ppsyn.privacy.requests import MeasureRequest

    account._ledger = type(account.ledger)(account.ledger.total)
    first = plan.domain.attributes[0]
    curator.answer(MeasureRequest((first.name,), equal_width(first.size, 1), plan.rho))
    account._ledger = type(account.ledger)(account.ledger.total, (*account.ledger.spends,) * 2)
"""
        + MADE,
        "A question after the last one, beyond the total.",
        "test_c6_generating_measuring_errors_and_saving_draw_nothing_and_cost_nothing",
    ),
)
