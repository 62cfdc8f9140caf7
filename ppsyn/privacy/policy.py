"""What the policy of an account allows: its limits, what is used of them, and whether it contradicts itself.

Periods are those of the calendar, in UTC. A run counts in the period in which it reserved its budget: while it is open,
for all that it reserved, and then for what it spent.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Protocol, cast

from pydantic import BaseModel

from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.policy import Allowance, Month, Period, Policy, PolicyFile

_MONTHS: Mapping[Period, int] = {"month": 1, "quarter": 3, "year": 12}


class Counted(Protocol):
    """A run's budget, as a policy counts it."""

    @property
    def month(self) -> Month:
        """In which it counts."""
        ...

    @property
    def purpose(self) -> str | None:
        """What it is for."""
        ...

    @property
    def committed(self) -> Fraction:
        """What it counts for."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of a policy, as of a month.

    Attributes:
        name: What it limits.
        total: What may be reserved under it by now.
        used: What is reserved or spent of it.
        purpose: The purpose whose part it is; None if it is for all.
        period: The period in which it is for the taking; None if it is for ever.
    """

    name: str
    total: Fraction
    used: Fraction
    purpose: str | None = None
    period: Period | None = None

    @property
    def left(self) -> Fraction:
        """What may still be reserved. Below zero if the policy came after the spending."""
        return self.total - self.used


def month_of(at: datetime) -> Month:
    """The calendar month of a moment, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m}"


def period_name(month: Month, period: Period) -> str:
    """The period that a month is in: 2026-11, 2026-Q4 or 2026."""
    year, number = month.split("-")
    return {"month": month, "quarter": f"{year}-Q{(int(number) + 2) // 3}", "year": year}[period]


def _period_number(month: Month, period: Period) -> int:
    """Periods, counted on."""
    year, number = month.split("-")
    return (12 * int(year) + int(number) - 1) // _MONTHS[period]


def limits(policy: Policy, since: Month, month: Month, budgets: Iterable[Counted]) -> list[Limit]:
    """All limits of a policy but its cap, as of a month.

    Privacy:
        Claim C9. Sums of fractions, of all that open runs reserved and closed ones spent.

    Args:
        policy: The policy.
        since: The month in which its amounts came into force.
        month: The month it is, which is no earlier than that of any budget.
        budgets: All budgets of the account.
    """
    counted, found = list(budgets), list[Limit]()
    for purpose, part in policy.purposes.items():
        if part.cap is not None:
            used = sum((each.committed for each in counted if each.purpose == purpose), Fraction(0))
            found.append(Limit(f"the cap of purpose {purpose!r}", part.cap, used, purpose))
    allowance = policy.allowance
    if allowance is not None:
        found.append(_allowed(allowance, since, month, counted))
        parts = ((purpose, part.allowance) for purpose, part in policy.purposes.items())
        for purpose, rho in ((purpose, rho) for purpose, rho in parts if rho is not None):
            part = allowance.model_copy(update={"budget": rho})
            mine = [each for each in counted if each.purpose == purpose]
            found.append(_allowed(part, since, month, mine, purpose))
    return found


def _allowed(
    allowance: Allowance[Fraction], since: Month, month: Month, budgets: Iterable[Counted], purpose: str | None = None
) -> Limit:
    """An allowance: of the period alone, or of all periods since the policy came into force."""
    period = allowance.period
    now = _period_number(month, period)
    first = now if allowance.unused == "lapses" else _period_number(since, period)
    used = sum((each.committed for each in budgets if _period_number(each.month, period) >= first), Fraction(0))
    of = "" if purpose is None else f" of purpose {purpose!r}"
    name = f"the allowance{of} for {period_name(month, period)}"
    return Limit(name, (now - first + 1) * allowance.budget, used, purpose, period)


def refusals(
    policy: Policy, found: Iterable[Limit], rho: Fraction, purpose: str | None, *, is_release: bool
) -> Iterator[str]:
    """Why a run may not reserve this much, a sentence each.

    Args:
        policy: The policy.
        found: Its limits as of now.
        rho: What is asked for.
        purpose: What for.
        is_release: Whether it is a release; figures about one count for its purpose, and may cost little.
    """
    if is_release:
        if policy.purposes and purpose not in policy.purposes:
            named = "none" if purpose is None else repr(purpose)
            yield f"Expected the release to name its purpose, one of {', '.join(policy.purposes)}; got {named}."
        if policy.smallest is not None and rho < policy.smallest:
            yield f"Expected a release of at least rho {float(policy.smallest):.6g}, got {float(rho):.6g}."
        if policy.largest is not None and rho > policy.largest:
            yield f"Expected a release of at most rho {float(policy.largest):.6g}, got {float(rho):.6g}."
    for limit in found:
        if limit.purpose in (None, purpose) and rho > limit.left:
            wait = "" if limit.period is None else f"wait for the next {limit.period}, "
            yield (
                f"Of {limit.name}, rho {max(0.0, float(limit.left)):.6g} is left of {float(limit.total):.6g}; this "
                f"asks for {float(rho):.6g}. Ask for less, {wait}or have the policy changed (`ppsyn policy set`)."
            )


def contradictions(policy: Policy) -> Iterator[str]:
    """Why no account can keep to a policy, a sentence each."""
    for name, rho in _amounts(policy):
        if rho <= 0:
            yield f"Expected {name} to be positive."
        elif rho > policy.cap:
            yield f"Expected {name} to be at most the cap, which is for ever."
    yield from _divided(policy)
    yield from _impossible(policy)
    for right in ("release", "policy"):
        if policy.people and not any(right in rights for rights in policy.people.values()):
            yield f"Expected somebody in people with the right {right!r}."


def _divided(policy: Policy) -> Iterator[str]:
    """What is wrong with the parts of purposes."""
    whole = None if policy.allowance is None else policy.allowance.budget
    if whole is None:
        named = [purpose for purpose, part in policy.purposes.items() if part.allowance is not None]
        yield from (f"Expected an allowance, of which purposes.{purpose}.allowance is a part." for purpose in named)
    for name, of, parts in (
        ("cap", policy.cap, [part.cap for part in policy.purposes.values()]),
        ("allowance", whole, [part.allowance for part in policy.purposes.values()]),
    ):
        if of is not None and sum(part for part in parts if part is not None) > of:
            yield f"Expected the parts of all purposes to come to no more than the {name}."


def _impossible(policy: Policy) -> Iterator[str]:
    """What leaves no room for a release."""
    smallest, largest = policy.smallest, policy.largest
    if smallest is not None and largest is not None and smallest > largest:
        yield "Expected smallest to be at most largest: no release is between them."
    lapses = policy.allowance is not None and policy.allowance.unused == "lapses"
    if policy.allowance is not None and lapses:
        for name, rho in (("smallest", smallest), ("largest", largest)):
            if rho is not None and rho > policy.allowance.budget:
                yield f"Expected {name} to be at most the allowance, which lapses when its period ends."
    for purpose, part in policy.purposes.items():
        rooms = (part.cap, part.allowance if lapses else None)
        if smallest is not None and any(room is not None and room < smallest for room in rooms):
            yield f"Expected the part of purpose {purpose!r} to have room for the smallest release."


def _amounts(policy: Policy) -> Iterator[tuple[str, Fraction]]:
    given = {"cap": policy.cap, "smallest": policy.smallest, "largest": policy.largest}
    if policy.allowance is not None:
        given["allowance.budget"] = policy.allowance.budget
    for purpose, part in policy.purposes.items():
        given |= {f"purposes.{purpose}.cap": part.cap, f"purposes.{purpose}.allowance": part.allowance}
    yield from ((name, rho) for name, rho in given.items() if rho is not None)


def exactly(file: PolicyFile) -> Policy:
    """A policy as an account keeps it: every amount as an exact rho, rounded down."""
    return Policy.model_validate(_exact(file))


def _exact(value: object) -> object:
    match value:
        case Budget():
            return rho_of(value)
        case BaseModel():
            return {name: _exact(inner) for name, inner in value}
        case dict():
            return {name: _exact(inner) for name, inner in cast("dict[str, object]", value).items()}
        case _:
            return value
