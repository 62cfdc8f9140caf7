"""Numbers as a reader sees them."""

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


def amount(rho: Fraction) -> str:
    """An amount of budget."""
    return f"{float(rho):.4g}"


def plural(number: int, thing: str) -> str:
    """So many things."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def marginal(clique: Clique) -> str:
    """The name of a marginal."""
    return " \N{MULTIPLICATION SIGN} ".join(clique)


def cut(text: str, most: int) -> str:
    """A text that fits, with an ellipsis if it had to be cut."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
