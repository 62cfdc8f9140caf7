"""Which rows the rules of a schema leave, all rules together: exactly, by elimination, and from public facts alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ppsyn.arrays import Codes, Flags, Ints
from ppsyn.domain import Clique, Domain, Zeros
from ppsyn.errors import SchemaError
from ppsyn.schemas.limits import CELLS

_BLOCK_CELLS = 2**24
"""Cells that a search for a nearest row looks at together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Bucket:
    """What is left for an attribute once others are settled.

    Attributes:
        given: Those that rules join it with, directly or through what was eliminated before it.
        allowed: Over the codes of `given` and then of the attribute: which can be completed to a row.
    """

    name: str
    given: Clique
    allowed: Flags


def check_rules(domain: Domain) -> None:
    """Refuse rules that leave no rows, or none for some value; the rules are named.

    Raises:
        SchemaError: If there are such; or if too many attributes hang together to tell.
    """
    for part in _components(domain.zeros):
        try:
            found = _impossible(domain, part)
        except _TooLargeError as error:
            raise SchemaError(_too_large(part, error.args[0])) from None
        if found is not None:
            name, code = found
            blamed = _least(domain, part, name, code)
            rules = " and ".join(repr(rule) for rule in dict.fromkeys(zeros.rule for zeros in blamed))
            raise SchemaError(
                f"Expected rules that leave every value possible. The rule{'s' * (len(blamed) > 1)} {rules} "
                f"leave{'s' * (len(blamed) == 1)} no row with code {code} of {name!r} (codes count from 0). "
                "Change the rule, or take the value out of the column."
            )


def _too_large(zeros: Sequence[Zeros], cells: int) -> str:
    rules = ", ".join(repr(rule) for rule in dict.fromkeys(one.rule for one in zeros))
    return (
        f"Expected rules whose columns have few values together. {rules} join columns into a table of {cells:,} "
        f"cells, more than {CELLS:,}. Use fewer bins, or leave out a rule."
    )


class _TooLargeError(Exception):
    """A bucket passes the limit; its cells."""


def _components(zeros: Sequence[Zeros]) -> list[tuple[Zeros, ...]]:
    """The rules, those together that share attributes."""
    parts: list[tuple[set[str], list[Zeros]]] = []
    for one in zeros:
        names, joined = set(one.clique), [one]
        rest = list[tuple[set[str], list[Zeros]]]()
        for others, held in parts:
            if names & others:
                names, joined = names | others, [*held, *joined]
            else:
                rest.append((others, held))
        parts = [*rest, (names, joined)]
    return [tuple(joined) for _, joined in parts]


def _names(domain: Domain, zeros: Iterable[Zeros]) -> Clique:
    return domain.clique(dict.fromkeys(name for one in zeros for name in one.clique))


def _buckets(domain: Domain, zeros: Sequence[Zeros]) -> list[_Bucket]:
    """Eliminate attributes one after another, that with the smallest table first."""
    tables: list[tuple[Clique, Flags]] = [(one.clique, one.allowed) for one in zeros]
    left, found = list(_names(domain, zeros)), list[_Bucket]()
    while left:
        around = {name: _joined(domain, name, tables) for name in left}
        name = min(left, key=lambda each: (domain.size(around[each]) * domain[each].size, domain.rank[each]))
        given = around[name]
        if (cells := domain.size(given) * domain[name].size) > CELLS:
            raise _TooLargeError(cells)
        held = [table for table in tables if name in table[0]]
        allowed = np.ones((*domain.shape(given), domain[name].size), np.bool_)
        for clique, table in held:
            allowed &= _spread(domain, clique, table, (*given, name))
        found.append(_Bucket(name, given, allowed))
        tables = [table for table in tables if name not in table[0]]
        tables += [(given, np.any(allowed, axis=-1, keepdims=True)[..., 0])] if given else []
        left.remove(name)
    return found


def _joined(domain: Domain, name: str, tables: Sequence[tuple[Clique, Flags]]) -> Clique:
    others = {other for clique, _ in tables if name in clique for other in clique if other != name}
    return domain.clique(others) if others else ()


def _spread(domain: Domain, clique: Clique, table: Flags, wanted: Clique) -> Flags:
    """A table with the axes of others too, in the order wanted."""
    order = [clique.index(name) for name in wanted if name in clique]
    return table.transpose(order).reshape([domain[name].size if name in clique else 1 for name in wanted])


def _impossible(domain: Domain, zeros: Sequence[Zeros]) -> tuple[str, int] | None:
    """An attribute and a code of it that no row can have, if there is one."""
    reached: dict[str, tuple[Clique, Flags]] = {}
    for bucket in reversed(_buckets(domain, zeros)):
        clique = (*bucket.given, bucket.name)
        allowed = bucket.allowed
        if bucket.given:
            # All that it was joined with is in the bucket of the one among them that was eliminated next.
            outer, table = next(held for held in reversed(reached.values()) if set(bucket.given) <= set(held[0]))
            rest = tuple(axis for axis, name in enumerate(outer) if name not in bucket.given)
            kept = tuple(name for name in outer if name in bucket.given)
            allowed = allowed & _spread(domain, kept, np.any(table, axis=rest, keepdims=True).squeeze(rest), clique)
        reached[bucket.name] = clique, allowed
        possible = allowed.any(axis=tuple(range(len(bucket.given))))
        if not possible.all():
            return bucket.name, int(np.flatnonzero(~possible)[0])
    return None


def _least(domain: Domain, zeros: Sequence[Zeros], name: str, code: int) -> list[Zeros]:
    """Rules of which none can be spared, that leave a value impossible together."""
    kept = list(zeros)
    for one in zeros:
        fewer = [other for other in kept if other is not one]
        if fewer and not _leaves(domain, fewer, name, code):
            kept = fewer
    return kept


def _leaves(domain: Domain, zeros: Sequence[Zeros], name: str, code: int) -> bool:
    """Whether rules leave a row with a value."""
    only = np.arange(domain[name].size) == code
    return all(bucket.allowed.any() for bucket in _buckets(domain, [*zeros, Zeros("", (name,), only)]))


# The nearest row that breaks no rule


def broken(codes: dict[str, Codes], zeros: Zeros) -> Flags:
    """Which rows break a rule."""
    return ~zeros.allowed[tuple(codes[name] for name in zeros.clique)]


def nearest(codes: dict[str, Codes], domain: Domain) -> dict[str, Codes]:
    """Rows that break no rule: each row itself, if it breaks none, or else the nearest such row.

    That is the one with the fewest changes among those that one change makes, or else two; of those the one whose codes
    move least in all; of those the one whose changes come first in the order of columns, and then of codes. Where two
    changes are not enough, columns are settled in a fixed order, each to the nearest code that can be completed.
    What becomes of a row depends on the domain and on that row alone.
    """
    found = dict(codes)
    for part in _components(domain.zeros):
        is_broken = np.logical_or.reduce([broken(codes, zeros) for zeros in part])
        rows = np.flatnonzero(is_broken)
        if rows.size:
            names = _names(domain, part)
            table = np.stack([codes[name][rows] for name in names], axis=1)
            distinct, places = np.unique(table, axis=0, return_inverse=True)
            settled = _settle(distinct.astype(np.int64), names, domain, part)[places.ravel()]
            for at, name in enumerate(names):
                found[name] = found[name].copy()
                found[name][rows] = settled[:, at]
    return found


def _settle(rows: Ints, names: Clique, domain: Domain, zeros: Sequence[Zeros]) -> Ints:
    """The nearest row that breaks no rule, for each of these, which all break one."""
    settled, left = rows.copy(), np.arange(rows.shape[0], dtype=np.int64)
    for changes in (1, 2):
        best = np.full(left.size, np.iinfo(np.int64).max)
        for changed in combinations(range(len(names)), changes):
            size = domain.size(names[at] for at in changed)
            for start in range(0, left.size, block := max(1, _BLOCK_CELLS // size)):
                part = left[start : start + block]
                distance, codes = _change(rows[part], changed, names, domain, zeros)
                is_nearer = distance < best[start : start + block]
                best[start : start + block][is_nearer] = distance[is_nearer]
                settled[part[is_nearer]] = rows[part[is_nearer]]
                settled[part[is_nearer][:, None], list(changed)] = codes[is_nearer]
        left = left[best == np.iinfo(np.int64).max]
        if not left.size:
            return settled
    settled[left] = _complete(rows[left], names, domain, zeros)
    return settled


def _change(
    rows: Ints, changed: tuple[int, ...], names: Clique, domain: Domain, zeros: Sequence[Zeros]
) -> tuple[Ints, Ints]:
    """How far these codes of each row move at least, no others moving, and to which; the largest number if to none."""
    shape = domain.shape(names[at] for at in changed)
    allowed = np.ones((rows.shape[0], *shape), np.bool_)
    for one in zeros:
        places = [names.index(name) for name in one.clique]
        index = tuple(
            np.arange(shape[changed.index(at)]).reshape([1, *(-1 if at == other else 1 for other in changed)])
            if at in changed
            else rows[:, at].reshape([-1, *(1 for _ in changed)])
            for at in places
        )
        allowed &= one.allowed[index]
    distance = sum(
        np.abs(
            np.arange(size).reshape([1, *(-1 if at == other else 1 for other in changed)])
            - rows[:, at].reshape([-1, *(1 for _ in changed)])
        )
        for at, size in zip(changed, shape, strict=True)
    )
    flat = np.where(allowed, distance, np.iinfo(np.int64).max).reshape(rows.shape[0], math.prod(shape))
    cells = flat.argmin(axis=1)
    codes = np.array(np.unravel_index(cells, shape), np.int64).T
    return flat[np.arange(rows.shape[0]), cells], codes


def _complete(rows: Ints, names: Clique, domain: Domain, zeros: Sequence[Zeros]) -> Ints:
    """Rows that break no rule, settled column by column."""
    settled = rows.copy()
    for bucket in reversed(_buckets(domain, zeros)):
        at = names.index(bucket.name)
        allowed = bucket.allowed[tuple(settled[:, names.index(name)] for name in bucket.given)]
        allowed = np.broadcast_to(allowed, (rows.shape[0], domain[bucket.name].size))
        distance = np.abs(np.arange(domain[bucket.name].size) - settled[:, [at]])
        settled[:, at] = np.where(allowed, distance, np.iinfo(np.int64).max).argmin(axis=1)
    return settled
