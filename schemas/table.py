"""The public facts about a table."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self, cast

import yaml
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic_core import ErrorDetails

from ppsyn.schemas.columns import KINDS, ColumnSchema
from ppsyn.schemas.derivation import Derivation, derivations
from ppsyn.schemas.files import SchemaFileError, Unfilled, quoted, read_yaml, rule_of
from ppsyn.schemas.limits import COLUMNS, TABLE_CODES
from ppsyn.schemas.rules import Precedence, Reader, Rule, Table, precedences
from ppsyn.schemas.types import FrozenModel, Text

_CONSEQUENCE = "default_factory_not_called"
"""The fault of a field whose default depends on a field at fault."""


class TableSchema(FrozenModel):
    """The columns of a table, from public knowledge alone."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")]
    """Of the table: lower-case letters and digits, with single hyphens and underscores between them."""
    columns: tuple[ColumnSchema, ...]
    """Those that are released, each of one of the kinds below."""
    excluded: Annotated[tuple[Text, ...], Field(max_length=COLUMNS)] = ()
    """Columns of the private table that are left out on purpose."""
    rules: Annotated[tuple[Rule, ...], Field(max_length=COLUMNS)] = ()
    """What is publicly known of which rows there can be. No row of a release breaks one."""

    @field_validator("columns", mode="wrap")
    @classmethod
    def _within_limits(cls, value: object, handler: ValidatorFunctionWrapHandler) -> object:
        """See that columns are not too many, one after another: what they hold takes memory."""
        if not isinstance(value, list | tuple):
            return handler(value)
        given = cast("Sequence[object]", value)
        if len(given) > COLUMNS:
            raise ValueError(f"Expected at most {COLUMNS:,} columns, got {len(given):,}; leave out some.")
        try:
            columns, codes = list[ColumnSchema](), 0
            for column in given:
                columns += handler([column])
                codes += columns[-1].size
                if codes > TABLE_CODES:
                    break
        except ValidationError:
            return handler(value)  # tells every fault, each with its place
        if codes > TABLE_CODES:
            raise ValueError(f"Expected at most {TABLE_CODES:,} codes in all columns together; use fewer bins.")
        return tuple(columns)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.columns:
            raise ValueError("Expected at least one column in columns, got none. Describe one.")
        seen: set[str] = set()
        for name in (*(column.name for column in self.columns), *self.excluded):
            if name in seen:
                raise ValueError(f"Expected the name {name!r} once in columns and excluded. Remove the second.")
            seen.add(name)
        named = [rule.name for rule in self.rules]
        if len(set(named)) < len(named):
            raise ValueError("Expected the names of rules to differ from each other.")
        if not self.attributes:
            raise ValueError("Expected a column that follows from no other.")
        _ = self.tables
        return self

    @cached_property
    def attributes(self) -> tuple[ColumnSchema, ...]:
        """The columns that the model is of: those that follow from no other."""
        return tuple(column for column in self.columns if column.follows is None)

    @cached_property
    def derived(self) -> tuple[Derivation, ...]:
        """The columns that follow from others, each after those that it follows from."""
        return derivations(self.columns, frozenset((step.before, step.after) for step in self.precedences))

    @cached_property
    def precedences(self) -> tuple[Precedence, ...]:
        """The columns of which one is never greater than another."""
        return precedences(self.rules)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """What the rules allow, over codes of attributes."""
        return Reader(self.columns, self.derived).tables(self.rules)

    @property
    def read(self) -> tuple[ColumnSchema, ...]:
        """The columns that must be in the private table: all but those that are computed whatever it says."""
        return tuple(one for one in self.columns if one.follows is None or one.follows.broken != "repair")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a schema from a YAML file.

        Raises:
            SchemaFileError: With one sentence per fault, which names the column and the field.
        """
        document = read_yaml(Path(path))
        if unfilled := list(_unfilled(document)):
            raise SchemaFileError(Path(path), unfilled)
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            problems = [_sentence(fault, document) for fault in error.errors() if fault["type"] != _CONSEQUENCE]
        raise SchemaFileError(Path(path), problems)

    def to_yaml(self) -> str:
        """A file that loads as this schema."""
        return yaml.safe_dump(self.model_dump(mode="json", exclude_none=True), sort_keys=False)

    def digest(self) -> str:
        """SHA-256 of the schema as canonical JSON; of a schema without rules, as if there were no such thing."""
        fields = self.model_dump(mode="json", exclude=None if self.rules else {"rules"})
        fields["columns"] = [_without_nothing(column, "follows") for column in fields["columns"]]
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _without_nothing(fields: dict[str, object], name: str) -> dict[str, object]:
    """The fields without one that says nothing."""
    return {key: value for key, value in fields.items() if key != name or value is not None}


def _unfilled(document: object) -> Iterator[str]:
    """What a draft still leaves open, column by column."""
    fields = cast("dict[str, object]", document if isinstance(document, dict) else {})
    if names := _open_fields(fields):
        yield f"table: {_still(names)}"
    columns = fields.get("columns")
    for index, column in enumerate(cast("list[object]", columns if isinstance(columns, list) else [])):
        if names := _open_fields(column):
            yield f"{_column(fields, index)}: {_still(names)}"


def _open_fields(fields: object) -> list[str]:
    if isinstance(fields, Unfilled):
        return ["all"]
    named = cast("dict[str, object]", fields if isinstance(fields, dict) else {})
    return [name for name, value in named.items() if isinstance(value, Unfilled) or _holds_unfilled(value)]


def _holds_unfilled(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, Unfilled) for item in cast("list[object]", value))


def _still(names: list[str]) -> str:
    return f"Expected {', '.join(names)} to be filled in: put what is publicly known in the place of !fill."


def _sentence(fault: ErrorDetails, document: object) -> str:
    return f"{_place(fault['loc'], document)}: {_rule(fault)}"


def _place(location: tuple[int | str, ...], document: object) -> str:
    match location:
        case ("columns", int(index), _, *fields):
            return ", ".join([_column(document, index), *_fields(fields)])
        case ("columns", int(index)):
            return f"{_column(document, index)}, field 'kind'"
        case (*fields,):
            return ", ".join(["table", *_fields(fields)])


def _column(document: object, index: int) -> str:
    """The column by name, or by number if it has none."""
    column = cast("dict[str, list[object]]", document)["columns"][index]
    name = cast("dict[str, object]", column).get("name") if isinstance(column, dict) else None
    return f"column number {index + 1}" if name is None else f"column {quoted(name)}"


def _fields(steps: list[int | str]) -> list[str]:
    return [f"item {step + 1}" if isinstance(step, int) else f"field {step!r}" for step in steps]


def _rule(fault: ErrorDetails) -> str:
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found", "model_attributes_type"):
        return f"Expected one of {', '.join(KINDS)}."
    return rule_of(fault)
