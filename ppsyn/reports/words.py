"""Numbers as a reader sees them."""

import math
from collections.abc import Sequence
from fractions import Fraction

from ppsyn.domain import Clique


def count(number: float) -> str:
    """A number of rows or cells, with commas."""
    return f"{round(number):,}"


def share(part: float | Fraction) -> str:
    """A share of a whole, in percent, with as many digits as it needs to be told from nothing."""
    percent = 100 * float(part)
    if percent == 0 or percent >= 9.95:
        return f"{percent:.0f}%"
    return f"{percent:.1f}%" if percent >= 0.095 else f"{percent:.1g}%"


def finely(part: float) -> str:
    """A share of a whole whose error is told beside it, in percent."""
    return f"{100 * part:.2f}%"


def small(probability: float) -> str:
    """A probability, or a share, as short as it can be written."""
    return f"{probability:g}".replace("e-0", "e-")


def nice_above(number: float) -> float:
    """The next of 1, 2 and 5, times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number * (1 - 1e-9))


def amount(rho: Fraction) -> str:
    """An amount of budget."""
    return f"{float(rho):.4g}"


def plural(number: int, thing: str) -> str:
    """So many things."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def marginal(clique: Clique) -> str:
    """The name of a marginal."""
    return " \N{MULTIPLICATION SIGN} ".join(clique)


def shortened(name: str, most: int = 14) -> str:
    """A name that fits, without its middle if it is too long: names often differ at their ends."""
    return name if len(name) <= most else f"{name[: most // 2]}\N{HORIZONTAL ELLIPSIS}{name[1 + most // 2 - most :]}"


def listed(names: Sequence[str], most: int = 10) -> str:
    """Names one after the other, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def cut(text: str, most: int) -> str:
    """A text that fits, with an ellipsis if it had to be cut."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
