"""What is told of runs that are given up, and of what is removed after them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ppsyn.errors import StoreError
from ppsyn.runs.cleanup import GivenUp, Left, Stuck, remove


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was removed, and what could not be."""

    removed: tuple[Left, ...]
    stuck: tuple[Stuck, ...]

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "removed": [{"url": left.url, "why": left.why} for left in self.removed],
            "left": [{"url": stuck.url, "problem": stuck.problem} for stuck in self.stuck],
        }


def clean(lefts: Sequence[Left], stuck: Sequence[Stuck]) -> Cleaned:
    """Remove what was found, beside what could not be looked for."""
    removed, kept = remove(lefts)
    return Cleaned(removed, (*stuck, *kept))


def told(run: str, found: GivenUp) -> str:
    """What became of a run, for a person."""
    if not found.reserved:
        return f"Run {run} reserved nothing; it is gone."
    if found.was_over:
        return f"Run {run} was abandoned before; rho {float(found.spent):.6g} stays spent."
    return (
        f"Run {run} is abandoned: rho {float(found.freed):.6g} is free again, rho {float(found.spent):.6g} stays spent."
    )


def still_there(stuck: Sequence[Stuck], again: Sequence[str]) -> StoreError:
    """The error of what could not be removed, with what to do once it can be."""
    lines = [f"  {one.url}  {one.problem}" for one in stuck]
    remedy = f"When that is mended, repeat: {shlex.join(again)}"
    return StoreError("\n".join(("Not all could be removed. Still there, or not to be seen:", *lines, remedy)))
