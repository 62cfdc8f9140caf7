"""Recompute the guarantee from the ledger with an accountant that is not ours."""

from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import ZCDpEvent
from dp_accounting.rdp import RdpAccountant

from ppsyn.privacy.budget import best_excess, epsilon_from
from ppsyn.privacy.ledger import Ledger

_ORDERS = sorted({1 + 10 ** (k / 60) for k in range(-120, 421)})
"""Dense enough that the best of them is within 0.1% of the best order's epsilon."""


def accounted_epsilon(ledger: Ledger, delta: float) -> float:
    """The epsilon at which dp-accounting certifies the ledger's spends, composed one at a time.

    An upper bound on the epsilon of the optimal order: the accountant tries a grid of orders.
    """
    spent = float(ledger.spent)
    best = 1 + best_excess(spent, epsilon_from(ledger.spent, delta)) if spent > 0 else _ORDERS[0]
    accountant = RdpAccountant(sorted({*_ORDERS, best}), NeighboringRelation.ADD_OR_REMOVE_ONE)
    for spend in ledger.spends:
        accountant.compose(ZCDpEvent(float(spend.rho)))
    return accountant.get_epsilon(delta)
