"""The budget as a picture: what the account allows, and where this release's part went."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ppsyn.reports.elements import fold, legend, picture, section, table
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.released import Charged, Released, charged
from ppsyn.reports.words import amount, plural, share

_WIDTH, _HEIGHT = 1000.0, 40.0
_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """What one round was charged.

    Attributes:
        number: From 1.
        lost: Answers that were charged and never arrived.
        is_measured: Whether its measurement arrived.
    """

    number: int
    select: Fraction = Fraction(0)
    measure: Fraction = Fraction(0)
    lost: int = 0
    is_measured: bool = False

    def with_charge(self, step: Charged) -> "Turn":
        """The round with one more charge."""
        rho, is_select = step.charge.rho, step.charge.mechanism == "select"
        return Turn(
            number=self.number,
            select=self.select + (rho if is_select else 0),
            measure=self.measure + (0 if is_select else rho),
            lost=self.lost + step.is_lost,
            is_measured=not is_select and not step.is_lost,
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """Where a release's budget went.

    Attributes:
        initial: For single attributes, before the first selection.
        measurements: How many charges that was.
        lost: How many answers to them never arrived.
    """

    initial: Fraction
    measurements: int
    lost: int
    turns: tuple[Turn, ...]


def spending(steps: Sequence[Charged]) -> Spending:
    """Charges in order, cut into the beginning and rounds: a round starts with its selection, if it has one."""
    first = next((at for at, step in enumerate(steps) if step.charge.mechanism == "select"), len(steps))
    turns: list[Turn] = []
    for step in steps[first:]:
        if step.charge.mechanism == "select" or not turns or turns[-1].measure:
            turns.append(Turn(len(turns) + 1))
        turns[-1] = turns[-1].with_charge(step)
    rho = sum((step.charge.rho for step in steps[:first]), Fraction(0))
    return Spending(rho, first, sum(step.is_lost for step in steps[:first]), tuple(turns))


def budget(released: Released) -> Markup:
    """The section."""
    spent, account = spending(charged(released)), released.manifest.account
    rho = released.manifest.guarantee.rho
    return section(
        "budget",
        "Where the privacy budget went",
        tag(
            "p",
            "Every question that was put to the private table was charged before it was answered. Amounts are rho of "
            "zero-concentrated differential privacy, which add up.",
        ),
        tag("figure", _account_bar(account.cap, rho), _release_bar(spent, rho)),
        fold("The same in numbers", _numbers(spent, rho)),
    )


def _account_bar(cap: Fraction, rho: Fraction) -> Markup:
    """What other releases have spent is not told here: a release tells nothing of others."""
    others = cap - rho
    parts = [
        ("s-blue", f"this release: {amount(rho)} ({share(rho / cap)})", rho),
        ("s-line", f"for all other releases: {amount(others)} ({share(others / cap)})", others),
    ]
    shown = [part for part in parts if part[2] > 0]
    told = (
        "The account of this dataset",
        f"Of rho {amount(cap)}: {'; '.join(text for _, text, _ in shown)}.",
    )
    return tag(
        "div",
        tag("p", f"The account of this dataset: rho {amount(cap)} for all releases together"),
        picture("account", told, (_WIDTH, _HEIGHT), _stacked([(s, n) for s, _, n in shown]), style="strip"),
        legend((style, text) for style, text, _ in shown),
        class_="bars",
    )


def _release_bar(spent: Spending, rho: Fraction) -> Markup:
    select = sum((turn.select for turn in spent.turns), Fraction(0))
    measure = sum((turn.measure for turn in spent.turns), Fraction(0))
    entries = [
        ("s-blue", f"initialization, single attributes: {amount(spent.initial)} ({share(spent.initial / rho)})"),
        ("s-orange", f"selections: {amount(select)} ({share(select / rho)})"),
        ("s-pale", f"measurements of rounds: {amount(measure)} ({share(measure / rho)})"),
    ]
    bars = [("s-blue", spent.initial)]
    bars += [bar for turn in spent.turns for bar in (("s-orange", turn.select), ("s-pale", turn.measure))]
    told = (
        "This release, question by question",
        f"{'; '.join(text for _, text in entries)}; in {plural(len(spent.turns), 'round')}.",
    )
    return tag(
        "div",
        tag("p", f"This release, from left to right: initialization, then {plural(len(spent.turns), 'round')}"),
        picture("spending", told, (_WIDTH, _HEIGHT), _stacked(bars), style="strip"),
        legend(entries),
        class_="bars",
    )


def _stacked(bars: Iterable[tuple[str, Fraction]]) -> Iterator[Part]:
    """One bar beside the other, over the whole width."""
    listed = [bar for bar in bars if bar[1] > 0]
    total, at = float(sum(rho for _, rho in listed)), 0.0
    for style, rho in listed:
        width = _WIDTH * float(rho) / total
        yield tag("rect", x=at, y=0, width=width, height=_HEIGHT, class_=style)
        at += width


def _numbers(spent: Spending, rho: Fraction) -> Markup:
    rows = [
        (
            f"Initialization: {plural(spent.measurements, 'measurement')}",
            "",
            amount(spent.initial),
            amount(spent.initial),
            share(spent.initial / rho),
            _lost(spent.lost),
        )
    ]
    rows += [
        (
            f"Round {turn.number}",
            amount(turn.select),
            amount(turn.measure),
            amount(turn.select + turn.measure),
            share((turn.select + turn.measure) / rho),
            _lost(turn.lost),
        )
        for turn in spent.turns[:_MOST_ROUNDS]
    ]
    more = len(spent.turns) - _MOST_ROUNDS
    caption = "What was charged, as rho" + (f"; ledger.parquet has {more} more rounds" if more > 0 else "")
    heads = ("Stage", "Selection", "Measurement", "Together", "Share", "Lost answers")
    return table(caption, heads, rows, numbers=range(1, 6))


def _lost(answers: int) -> str:
    return str(answers) if answers else "none"
