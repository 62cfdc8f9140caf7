"""Faults of the conversion between rho and (epsilon, delta)."""

from mutants.fault import Fault

BUDGET = "ppsyn/privacy/budget.py"
AUDIT = "ppsyn/privacy/accountant.py"

BOUND = "    return excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - math.log(excess)\n"

FAULTS = (
    Fault(
        "the bound takes its bonus twice",
        "C7",
        BUDGET,
        BOUND,
        BOUND.replace("- order * math.log1p", "- 2 * order * math.log1p"),
        "The bound promises a smaller delta than there is.",
        "test_c7_the_budget_keeps_the_bound_when_computed_with_fifty_digits",
    ),
    Fault(
        "the bound without its last term",
        "C7",
        BUDGET,
        BOUND,
        BOUND.replace(" - math.log(excess)", ""),
        "Where the best order is below 2 the bound promises too much.",
        "test_c7_dp_accounting_certifies_the_budget_within_a_thousandth",
    ),
    Fault(
        "the bound with the order where its excess belongs",
        "C7",
        BUDGET,
        BOUND,
        BOUND.replace("excess * (order * rho - epsilon)", "excess * (excess * rho - epsilon)"),
        "The divergence of order a is a rho.",
        "test_c7_the_budget_keeps_the_bound_when_computed_with_fifty_digits",
    ),
    Fault(
        "rho is rounded up",
        "C7",
        BUDGET,
        "Fraction(low * (1 - _MARGIN))",
        "Fraction(low * (1 + _MARGIN))",
        "The rounding of doubles is no longer covered.",
        "test_c7_the_budget_keeps_the_bound_when_computed_with_fifty_digits",
    ),
    Fault(
        "epsilon is rounded down",
        "C7",
        BUDGET,
        "    return high * (1 + _MARGIN) + _ABSOLUTE_MARGIN\n",
        "    return low * (1 - _MARGIN)\n",
        "A release would promise less than it cost.",
        "test_c7_the_epsilon_of_a_budget_keeps_the_bound_when_computed_with_fifty_digits",
    ),
    Fault(
        "the logarithm of delta to base ten",
        "C7",
        BUDGET,
        "if log_delta(middle, epsilon) <= math.log(delta) else",
        "if log_delta(middle, epsilon) <= math.log10(delta) else",
        "It buys a delta of 1e-4 for the price of 1e-9.",
        "test_c7_the_budget_keeps_the_bound_when_computed_with_fifty_digits",
    ),
    Fault(
        "delta is taken twice",
        "C7",
        BUDGET,
        "    return rho_from(budget.epsilon, budget.delta)\n",
        "    return rho_from(budget.epsilon, 2 * budget.delta)\n",
        "A release costs more than its epsilon at the delta that was asked for.",
        "test_c7_a_configured_budget_is_bought_at_its_own_epsilon_and_delta",
    ),
    Fault(
        "an epsilon too small to convert",
        "C7",
        BUDGET,
        "    if epsilon < _SMALLEST_EPSILON:\n",
        "    if epsilon < 0:\n",
        "Rounding errors of the bound come near its margin.",
        "test_c7_an_epsilon_too_small_to_convert_is_refused",
    ),
    Fault(
        "a delta of one",
        "C7",
        BUDGET,
        """    if not 0 < delta < 1:
        raise ConfigError(f"Expected delta={delta} to lie strictly between 0 and 1.")
    low, high = 0.0, epsilon + 1
""",
        """    if not 0 < delta <= 1:
        raise ConfigError(f"Expected delta={delta} to lie strictly between 0 and 1.")
    low, high = 0.0, epsilon + 1
""",
        "It allows everything.",
        "test_c7_a_delta_that_means_nothing_is_refused",
    ),
    Fault(
        "the second accountant sees one spend",
        "C7",
        AUDIT,
        "    for spend in ledger.spends:\n",
        "    for spend in ledger.spends[:1]:\n",
        "It would certify any ledger that begins with a small spend.",
        "test_c7_dp_accounting_certifies_the_budget_within_a_thousandth",
    ),
    Fault(
        "the second accountant takes the square of a spend",
        "C7",
        AUDIT,
        "ZCDpEvent(float(spend.rho))",
        "ZCDpEvent(float(spend.rho) ** 2)",
        "Small spends would count for next to nothing.",
        "test_c7_dp_accounting_certifies_the_budget_within_a_thousandth",
    ),
)
