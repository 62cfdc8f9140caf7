"""Whether one row of the tables beneath a query moves one row of its answer, as far as its text tells."""
# sqlglot's expressions hold whatever their dialect has.
# pyright: reportUnknownMemberType=false

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from ppsyn.errors import SourceError

_AGGREGATES = {"every", "total", "json_group_object", "xmlagg", "range_agg", "range_intersect_agg"}
_RANDOM = {"randomblob", "random_normal", "uuidv4", "uuidv7", "setseed"}
"""Functions that the parser has no name of its own for."""

_CHOSEN = "which rows it takes depends on all the others"
_EQUAL = "whether a row is in the answer, and which of those that compare equal, depends on the others"
_TOGETHER = "it makes a value from many rows, so that each of them moves it, and with it what others contribute"
_TWICE = "a row can then enter the answer several times, or decide about the rows of others"
_DRAWN = "the table would be another one each time it is read"
_RECURSIVE = "a row can then decide about any number of others"

_RANDOM_NAME = "functions that draw at random"
_NEVER: tuple[tuple[type[exp.Expr], str, str], ...] = (
    (exp.Limit, "LIMIT", _CHOSEN),
    (exp.Fetch, "FETCH", _CHOSEN),
    (exp.Offset, "OFFSET", _CHOSEN),
    (exp.TableSample, "TABLESAMPLE", f"{_CHOSEN}, and {_DRAWN}"),
    (exp.Except, "EXCEPT", _EQUAL),
    (exp.Intersect, "INTERSECT", _EQUAL),
    (exp.Rand, _RANDOM_NAME, _DRAWN),
    (exp.Randn, _RANDOM_NAME, _DRAWN),
    (exp.Uuid, _RANDOM_NAME, _DRAWN),
)


@dataclass(frozen=True, slots=True)
class _Flaw:
    name: str
    reason: str
    is_mended_by_person: bool = False
    """Whether it is allowed among the rows of one person."""


def judge(query: str, dialect: str, person_column: str | None, views: Collection[str]) -> list[str]:
    """What cannot be told from the text of a query, a sentence each; they are for its owner to answer for.

    Args:
        query: One that the database understands.
        dialect: "postgres" or "sqlite".
        person_column: Where persons are the unit of privacy; what stays among the rows of one is allowed.
        views: Names of the database's views, whose own queries are not looked at.

    Raises:
        SourceError: If the query lets one row, or one person, move the rows of others. It names what does.
    """
    tree = _parsed(query, dialect)
    if tree is None:
        return [
            "Whether the query is row by row could not be told, as it could not be parsed. "
            f"See that one {_unit(person_column)} moves no row of another."
        ]
    for flaw in _flaws(tree, _Person(person_column, dialect)):
        advice = (
            f"Take it out, or query a view of which you know that one {_unit(person_column)} moves no row of another."
        )
        if flaw.is_mended_by_person:
            advice = (
                f"{advice} It is allowed among the rows of one person, by the person column itself, where "
                "privacy.person says so."
            )
        raise SourceError(f"Expected the query to be row by row, without {flaw.name}: {flaw.reason}. {advice}")
    return list(_doubts(tree, _Person(person_column, dialect), views))


def _parsed(query: str, dialect: str) -> exp.Query | None:
    try:
        tree = normalize_identifiers(sqlglot.parse_one(query.strip().rstrip(";"), dialect=dialect), dialect=dialect)
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Query) else None


def _unit(person_column: str | None) -> str:
    return "row of the tables beneath" if person_column is None else "person"


class _Person:
    """The person column, as a query names it."""

    def __init__(self, column: str | None, dialect: str) -> None:
        identifier = None if column is None else exp.to_identifier(column, quoted=True)
        self.name = None if identifier is None else normalize_identifiers(identifier, dialect=dialect).name

    def is_meant(self, node: exp.Expr | None) -> bool:
        return self.name is not None and isinstance(node, exp.Column | exp.Identifier) and node.name == self.name

    def is_plain(self, tree: exp.Expr) -> bool:
        """Whether nothing but the column itself bears its name, wherever rows come from."""
        name = self.name
        return (
            name is not None
            and all(self.is_meant(alias.this) for alias in tree.find_all(exp.Alias) if alias.alias == name)
            and not any(name in [each.name for each in alias.columns] for alias in tree.find_all(exp.TableAlias))
            and all(_place(union.left, name) == _place(union.right, name) >= 0 for union in tree.find_all(exp.Union))
        )

    def parts(self, among: Collection[exp.Expr]) -> bool:
        """Whether rows that are alike in these are one person's."""
        return any(self.is_meant(each) for each in among)

    def joins(self, condition: exp.Expr | None) -> bool:
        """Whether a condition holds among rows of one person only."""
        each = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        return any(
            isinstance(one, exp.EQ)
            and self.is_meant(one.left)
            and self.is_meant(one.right)
            and one.left.text("table") != one.right.text("table")
            for one in each
        )


def _place(query: exp.Expr, name: str) -> int:
    """Where among the columns of a query this one is; -1 if that cannot be told."""
    names = query.named_selects if isinstance(query, exp.Query) else []
    return -1 if "*" in names or name not in names else names.index(name)


def _flaws(tree: exp.Expr, person: _Person) -> Iterator[_Flaw]:
    is_plain = person.is_plain(tree)
    yield from (flaw for node in tree.walk() if (flaw := _flaw_of(node)) is not None)
    for window in tree.find_all(exp.Window):
        if not _is_reference(window) and not (is_plain and person.parts(window.args.get("partition_by") or ())):
            yield _Flaw("window functions (OVER) that reach beyond a person", _TOGETHER, is_mended_by_person=True)
    for select in tree.find_all(exp.Select):
        if _is_grouped(select) and not (is_plain and _groups_by_person(select, person)):
            yield _Flaw("GROUP BY and aggregates that reach beyond a person", _TOGETHER, is_mended_by_person=True)
    yield from _repeated(tree, person, is_plain=is_plain)


def _flaw_of(node: exp.Expr) -> _Flaw | None:
    """What no query may have, whatever stands around it."""
    if isinstance(node, exp.Select | exp.Union):
        return (
            _Flaw("UNION" if isinstance(node, exp.Union) else "DISTINCT", _EQUAL) if node.args.get("distinct") else None
        )
    if isinstance(node, exp.With):
        return _Flaw("WITH RECURSIVE", _RECURSIVE) if node.recursive else None
    if isinstance(node, exp.Anonymous):
        return _Flaw(_RANDOM_NAME, _DRAWN) if node.name.lower() in _RANDOM else None
    return next((_Flaw(name, reason) for kind, name, reason in _NEVER if isinstance(node, kind)), None)


def _is_reference(window: exp.Window) -> bool:
    """Whether it names a window of the WINDOW clause, which is looked at by itself."""
    return bool(window.args.get("alias")) and not window.args.get("partition_by") and window.arg_key != "windows"


def _is_grouped(select: exp.Select) -> bool:
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(
        node.find_ancestor(exp.Select) is select and not isinstance(_over(node), exp.Window)
        for node in select.find_all(exp.AggFunc, exp.Anonymous)
        if isinstance(node, exp.AggFunc) or node.name.lower() in _AGGREGATES
    )


def _over(node: exp.Expr) -> exp.Expr | None:
    """What an aggregate stands under, but for its filter and its order."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return above


def _groups_by_person(select: exp.Select, person: _Person) -> bool:
    group = select.args.get("group")
    if not isinstance(group, exp.Group) or any(
        group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets", "totals", "all")
    ):
        return False
    places = [int(each.name) for each in group.expressions if isinstance(each, exp.Literal) and each.is_int]
    meant = [select.expressions[place - 1] for place in places if 0 < place <= len(select.expressions)]
    return person.parts([*group.expressions, *(each.unalias() for each in meant)])


def _repeated(tree: exp.Expr, person: _Person, *, is_plain: bool) -> Iterator[_Flaw]:
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for table in tree.find_all(exp.Table):
        folders[table.name].append(table.text("db"))
    twice = [name for name, found in folders.items() if name and len(found) > len({*found} - {""} or {""})]
    if twice and not (is_plain and all(_stays(each, person) for each in _meetings(tree))):
        yield _Flaw(f"{sorted(twice)[0]!r} in several places", _TWICE, True)


def _meetings(tree: exp.Expr) -> Iterator[exp.Join | exp.Lateral | exp.Select]:
    """Where rows meet rows: joins, and queries inside an expression."""
    yield from tree.find_all(exp.Join, exp.Lateral)
    yield from (select for select in tree.find_all(exp.Select) if _is_inner(select))


def _is_inner(select: exp.Select) -> bool:
    above = select.parent
    while isinstance(above, exp.Subquery | exp.SetOperation | exp.Paren):
        above = above.parent
    return above is not None and not isinstance(above, exp.From | exp.Join | exp.CTE | exp.Lateral)


def _stays(meeting: exp.Join | exp.Lateral | exp.Select, person: _Person) -> bool:
    """Whether only rows of one person meet."""
    if isinstance(meeting, exp.Join):
        return person.joins(meeting.args.get("on")) or person.parts(meeting.args.get("using") or ())
    if isinstance(meeting, exp.Select):
        where = meeting.args.get("where")
        return where is not None and person.joins(where.this)
    return False


def _doubts(tree: exp.Expr, person: _Person, views: Collection[str]) -> Iterator[str]:
    unit = "row" if person.name is None else "person"
    within = person.is_plain(tree)
    meetings = [each for each in _meetings(tree) if not (within and _stays(each, person))]
    if meetings or any(True for _ in tree.find_all(exp.Lateral, exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries)):
        yield (
            "The query joins tables, or asks of one for the rows of another. See that what it joins is public or holds "
            f"nothing of another {unit}, and that a row finds one match at most"
            f"{'' if person.name is None else ', or bound what it finds by max_rows'}."
        )
    used = {table.name for table in tree.find_all(exp.Table)}
    for view in sorted(used & {view.lower() for view in views} | used & set(views)):
        yield (
            f"{view!r} is a view, which hides what it does. That it is row by row, so that one {unit} moves no "
            "row of another, is your statement."
        )
    unknown = {node.name for node in tree.find_all(exp.Anonymous) if node.name.lower() not in _AGGREGATES}
    if unknown:
        yield (
            f"The query calls {', '.join(sorted(unknown))}, of which nothing is known here. See that they look at "
            "nothing but what they are given, and give one value."
        )
