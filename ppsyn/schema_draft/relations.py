"""Which columns may follow from others, or come in an order, by their names alone."""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

_NUMBERS = frozenset({"num", "number", "code", "id", "nr", "no"})
_GROUPS = frozenset({"group", "category", "class", "band", "sector"})
_LEVELS = ("zip", "puma", "city", "town", "county", "district", "state", "province", "region", "country")
"""Of places, finer ones first."""
_ORDERS = (
    ("start", "end"),
    ("begin", "end"),
    ("from", "to"),
    ("born", "died"),
    ("birth", "death"),
    ("admitted", "discharged"),
)
"""Events of which the first is not after the second."""


def relations(names: Sequence[str]) -> list[str]:
    """A line of a schema for each relation that names tell of, to be filled in or thrown away."""
    return list(dict.fromkeys(line for first, second in permutations(names, 2) for line in _between(first, second)))


def _between(first: str, second: str) -> Iterator[str]:
    """What the first may have to do with the second."""
    one, other = _words(first), _words(second)
    extra = other[len(one) :] if one and other[: len(one)] == one else ()
    if len(extra) == 1 and extra[0] in _NUMBERS:
        yield f"{second}: follows: {{by: map, of: {first}, to: {{...}}}}"
    if len(extra) == 1 and extra[0] in _GROUPS:
        yield f"{second}: follows: {{by: group, of: {first}, groups: {{...}}}}"
    levels = [_LEVELS.index(words[-1]) if words and words[-1] in _LEVELS else None for words in (one, other)]
    if levels[0] is not None and levels[1] is not None and levels[0] < levels[1] and one[:-1] == other[:-1]:
        yield f"{second}: follows: {{by: group, of: {first}, groups: {{...}}}}"
    if len(one) == len(other) and [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]] in (
        [pair] for pair in _ORDERS
    ):
        yield f"rules: [{{name: {first} before {second}, order: [{first}, {second}]}}]"


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name))
