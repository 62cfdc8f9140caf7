"""Answers about an earlier schema as answers about today's, where they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.domain import Clique, Domain, domain_of
from ppsyn.mechanisms.past import Past, with_answers
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition
from ppsyn.schemas.columns import BooleanColumn, CategoricalColumn, ColumnSchema
from ppsyn.schemas.table import TableSchema


@dataclass(frozen=True, slots=True, eq=False)
class _Renamed:
    """An attribute of an earlier schema, as today's has it.

    Attributes:
        codes: For each code of today, the one of then that holds it.
    """

    name: str
    codes: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """From an earlier schema to today's.

    Attributes:
        left_out: Why answers about some columns are of no use, a sentence for each.
    """

    before: Domain
    now: Domain
    names: Mapping[str, _Renamed]
    left_out: tuple[str, ...]

    def answers(self, answers: Sequence[Measurement]) -> list[Measurement]:
        """Those that say something of today's schema."""
        return [found for answer in answers if (found := self._answer(answer)) is not None]

    def groups(self, name: str, groups: Partition) -> tuple[str, Partition] | None:
        """Groups of one attribute's values, under its name of today."""
        found = self._answer(Measurement((name,), groups, np.zeros(groups.count, np.int64), 1.0))
        return None if found is None else (found.clique[0], found.partition)

    def _answer(self, answer: Measurement) -> Measurement | None:
        if not all(name in self.names for name in answer.clique):
            return None
        clique, partition = self._moved(answer.clique, answer.partition)
        if partition is None:
            return None
        return replace(answer, clique=clique, partition=partition, is_off_tree=False)

    def _moved(self, before: Clique, partition: Partition) -> tuple[Clique, Partition | None]:
        """The same groups, of cells of today's marginal; None where a grid's axes would change places."""
        groups = partition.groups.reshape(self.before.shape(before))
        for axis, name in enumerate(before):
            groups = groups.take(self.names[name].codes, axis)
        names = [self.names[name].name for name in before]
        order = sorted(range(len(names)), key=lambda axis: self.now.rank[names[axis]])
        clique = tuple(names[axis] for axis in order)
        if partition.axes and order != sorted(order):
            return clique, None
        moved = np.ascontiguousarray(groups.transpose(order).ravel())
        return clique, Partition(moved, partition.count, partition.axes)


def translation(before: TableSchema, now: TableSchema) -> Translation:
    """How answers about one schema become answers about another."""
    names, left_out = dict[str, _Renamed](), list[str]()
    was = {column.formerly or column.name: column for column in now.columns}
    for column in before.columns:
        today = was.get(column.name)
        if today is None:
            left_out.append(f"column {column.name!r} is not in the schema any more")
        elif (codes := _codes(column, today)) is None:
            left_out.append(f"column {today.name!r} has values that no value of then stands for")
        else:
            names[column.name] = _Renamed(today.name, codes)
    known = {renamed.name for renamed in names.values()}
    of_then = {column.name for column in before.columns}
    left_out += [
        f"column {column.name!r} is new"
        for column in now.columns
        if column.name not in known and (column.formerly or column.name) not in of_then
    ]
    return Translation(domain_of(before), domain_of(now), names, tuple(left_out))


def _codes(before: ColumnSchema, now: ColumnSchema) -> Ints | None:
    """For each code of today the one of then that holds it, if each of then holds some and all do."""
    if before.kind != now.kind:
        return None
    found = list(_found(before, now))
    if now.nullable:
        found.append(before.null_code)
    if None in found or {*found} != {*range(before.size)}:
        return None
    return np.array(found, np.int64)


def _found(before: ColumnSchema, now: ColumnSchema) -> Iterator[int | None]:
    """For each value or bin of today, what held it then."""
    if isinstance(now, CategoricalColumn | BooleanColumn):
        listed = before.labels if isinstance(before, CategoricalColumn | BooleanColumn) else ()
        labels = {repr(label): code for code, label in enumerate(listed)}
        outside = {"other": before.other_code, "null": before.null_code}.get(before.outside)
        yield from (labels.get(repr(label), outside) for label in now.labels)
    elif not isinstance(before, CategoricalColumn | BooleanColumn):
        first, last = (before.intervals.nearest(ends) for ends in (now.intervals.starts, now.intervals.ends))
        is_held = before.intervals.hold(now.intervals.starts) & before.intervals.hold(now.intervals.ends)
        is_known = (first == last) & (is_held | (before.outside == "clip"))
        yield from (int(code) if known else None for code, known in zip(first, is_known, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """What an earlier release has told: released values.

    Attributes:
        measurements: Its own answers, as they were drawn.
        value_groups: The groups of values of large attributes that its model held apart.
    """

    table: TableSchema
    measurements: tuple[Measurement, ...]
    value_groups: Mapping[str, Partition]


def past_of(releases: Sequence[Earlier], now: TableSchema) -> tuple[Past | None, tuple[str, ...]]:
    """What these releases, oldest first, tell of a table of today's schema, and what of them is left out."""
    past, left_out = None, dict[str, None]()
    for release in releases:
        found = translation(release.table, now)
        left_out |= dict.fromkeys(found.left_out)
        value_groups = dict(filter(None, (found.groups(name, groups) for name, groups in release.value_groups.items())))
        past = with_answers(past, found.answers(release.measurements), value_groups)
    return past, tuple(left_out)
