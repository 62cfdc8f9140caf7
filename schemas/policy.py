"""The policy of an account: what its releases may spend, when, for what, and in what portions."""

from pathlib import Path
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError

from ppsyn.schemas.config import Budget
from ppsyn.schemas.files import SchemaFileError, read_yaml, rule_of
from ppsyn.schemas.types import FrozenModel, Name, Rational

Month: TypeAlias = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
"""A calendar month in UTC, such as 2026-11."""

Period: TypeAlias = Literal["month", "quarter", "year"]

Right: TypeAlias = Literal["release", "approve", "policy"]
"""What a person may do: make releases, approve them, change the policy and the keys."""

Amount = TypeVar("Amount")


class Allowance(FrozenModel, Generic[Amount]):
    """What releases may reserve in a period of the calendar (UTC)."""

    budget: Amount
    """How much in each period."""
    period: Period
    """A calendar month, quarter or year."""
    unused: Literal["lapses", "carries over"] = "lapses"
    """What becomes of the rest when a period ends. What carries over can be reserved in any later period."""


class Part(FrozenModel, Generic[Amount]):
    """What releases for one purpose may reserve."""

    cap: Amount | None = None
    """For ever; without it, as much as the cap of all."""
    allowance: Amount | None = None
    """In each period; without it, as much as the allowance of all."""


class PolicyOf(FrozenModel, Generic[Amount]):
    """What the releases of a dataset may spend."""

    cap: Amount
    """What all releases may spend together, for ever."""
    allowance: Allowance[Amount] | None = None
    """What they may reserve in a period; without it, as much as the cap."""
    purposes: dict[Name, Part[Amount]] = Field(default_factory=dict)
    """What a release may be for, and the part of each. If there are any, each release names one (`purpose`)."""
    smallest: Amount | None = None
    """The least that one release may reserve."""
    largest: Amount | None = None
    """The most that one release may reserve."""
    people: dict[Name, tuple[Right, ...]] = Field(default_factory=dict)
    """Who may `release`, `approve`, or change the `policy` and the keys. If anybody is named, every entry that a person
    causes must be signed."""


Policy: TypeAlias = PolicyOf[Rational]
"""As an account keeps it: all amounts are zCDP rho, exactly."""
PolicyFile: TypeAlias = PolicyOf[Budget]
"""As a person writes it: amounts are epsilon and delta, or rho."""


def load_policy(path: Path | str) -> PolicyFile:
    """Read a policy file.

    Raises:
        SchemaFileError: With one sentence per fault, which names the field.
    """
    path = Path(path)
    document = read_yaml(path)
    try:
        return PolicyFile.model_validate(document)
    except ValidationError as error:
        problems = [f"{_field(fault['loc'])}: {rule_of(fault)}" for fault in error.errors()]
    raise SchemaFileError(path, problems)


def _field(location: tuple[int | str, ...]) -> str:
    return f"field {'.'.join(map(str, location))!r}" if location else "policy"
