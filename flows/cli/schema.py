"""Writing a schema: `ppsyn schema draft` and `ppsyn schema check`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.errors import ConfigError, StoreError, translated
from ppsyn.flows.cli.locations import FilePath, bucket_options, files_at, table_at
from ppsyn.flows.cli.output import Exit, handle_errors, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ppsyn.evaluation.schema_check import EncodingSummary
    from ppsyn.schemas.columns import ColumnSchema
    from ppsyn.schemas.config import PersonUnit
    from ppsyn.schemas.release import Source
    from ppsyn.schemas.table import TableSchema

_DELIMITER = click.option("--delimiter", default=",", show_default=True, help="Between the fields of a CSV file.")


@click.group()
def schema() -> None:
    """Draft a schema, and check what it does to a table.

    TABLE is a CSV or Parquet file or folder, local or s3://, or a release file, whose source is used.

    \b
    Examples:
      ppsyn schema draft people.parquet --out people.yaml
      ppsyn schema check people.parquet people.yaml
    """


@schema.command()
@click.argument("table")
@click.option("--out", type=FilePath(), help="The file to write; by default standard output.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--public", "sample", metavar="SAMPLE", help="A table of public values, to fill in the draft from.")
@bucket_options
@_DELIMITER
@handle_errors
def draft(table: str, out: str | None, force: bool, sample: str | None, **location: Any) -> None:
    """Draft a schema of TABLE from the names and types of its columns. No row of it is read.

    For a query, the database declares them, with the values of enumerated types. What you must fill in from public
    knowledge is marked !fill; a schema with such a mark is refused. With --public, the draft is filled in from the
    values of SAMPLE: kinds, bounds, bins, categories, nulls. SAMPLE must be public.

    \b
    Examples:
      ppsyn schema draft people.csv --out people.yaml
      ppsyn schema draft s3://bucket/people --endpoint https://s3.example.org
      ppsyn schema draft people.parquet --public census-sample.csv --out people.yaml
      ppsyn schema draft release.yaml
    """
    from ppsyn.schema_draft import draft_schema

    public = None if sample is None else files_at(sample, **location)
    text = draft_schema(table_at(table, **location).source, public)
    if out is None:
        click.echo(text, nl=False)
        return
    _write(Path(out), text, is_forced=force)
    left = text.count(": !fill ")
    click.echo(f"{out}: {left} to fill in" if left else f"{out}: nothing left to fill in; look it over")


def _write(path: Path, text: str, *, is_forced: bool) -> None:
    exists = f"There is a file {path} already. Give --force to replace it."
    with (
        translated(OSError, to=StoreError, message=lambda error: f"Cannot write {path}: {error.strerror}."),
        translated(FileExistsError, to=ConfigError, message=exists),
        path.open("w" if is_forced else "x", encoding="utf-8") as file,
    ):
        file.write(text)


@schema.command()
@click.argument("table")
@click.argument("schema_file", metavar="SCHEMA", type=FilePath())
@click.option("--anywhere", is_flag=True, help="Print even if standard output is not a terminal.")
@bucket_options
@_DELIMITER
@handle_errors
def check(table: str, schema_file: str, anywhere: bool, **location: Any) -> None:
    """Show what SCHEMA does to the values of TABLE: which are kept, clipped, made other or null, or refused.

    Reads every row. The numbers are exact and private: they are printed to the terminal and written nowhere. Exit
    code 2 means that a release would stop.

    \b
    Examples:
      ppsyn schema check people.csv people.yaml
      ppsyn schema check release.yaml people.yaml
    """
    from ppsyn.domain import domain_of
    from ppsyn.evaluation.schema_check import summarize_encoding
    from ppsyn.flows.preflight import read_schema
    from ppsyn.possible import check_rules

    if not (anywhere or sys.stdout.isatty()):
        raise ConfigError(
            "Expected standard output to be a terminal: the numbers are private, and a file or a log would keep them. "
            "Use --anywhere to print them all the same."
        )
    named, described = table_at(table, **location), read_schema(schema_file)
    check_rules(domain_of(described))
    summary = summarize_encoding(named.source, described, named.person)
    _print_check(summary, described, named.person)
    if summary.is_refused:
        sys.exit(Exit.MISTAKE)


_WARNING = (
    "These numbers are private: they are exact, and no noise covers them. Do not save, send or publish them, "
    "and do not change the schema because of them in a way that reveals them to others."
)
_LOST = (
    "Most values of {} do not fit the schema and would be lost, judging by the first rows of the table. Nothing is "
    "spent yet: to stop, press Ctrl-C. `ppsyn schema check` shows what happens to the values."
)
_LOST_IS_PRIVATE = "This is private: it is exact, and no noise covers it. Do not save, send or publish it."
_UNREADABLE = (
    "{} rows are lines that cannot be read: an open quote, another number of fields than the header has, or characters "
    "of another encoding. They count below in every column."
)

_FITS = {"INSIDE": "in the domain", "OUTSIDE": "outside", "MISFIT": "not comparable", "NULL": "null"}
_FATES = {
    "KEPT": "kept",
    "CLIPPED": "clipped to the nearest bin",
    "NULL": "made null",
    "FIRST": "put into the first bin",
    "REFUSED": "REFUSED: the release stops",
}


def _print_check(summary: EncodingSummary, schema: TableSchema, person: PersonUnit | None) -> None:
    """Print, column by column, which values there are and what happens to them."""
    click.secho(_WARNING, bold=True)
    kept = "" if person is None else f", {summary.kept} kept after contribution bounding (max_rows={person.max_rows})"
    click.echo(f"\n{summary.rows} rows{kept}")
    if summary.unreadable:
        click.echo(_UNREADABLE.format(summary.unreadable))
    rows = [
        ("" if number else name, *line)
        for name, column in summary.columns.items()
        for number, line in enumerate(_lines(summary, column))
    ]
    print_table(("column", "values", "rows", "outcome"), rows, numbers=("rows",), unwrapped=("rows",))
    _print_broken(summary, schema)
    print_lines(_describe_names(summary))


_BECOMES = {
    "repair": "made the nearest possible row",
    "null": "made null where the rule says so",
    "drop": "left out",
}


def _print_broken(summary: EncodingSummary, schema: TableSchema) -> None:
    """Print how many rows break each rule, once all values are in their domains, and what becomes of them."""
    from ppsyn.schemas.columns.follows import words_of

    rules = [(rule.name, rule.words, rule.broken) for rule in schema.rules]
    rules += [
        (one.column.name, f"{one.column.name} {words_of(one.follows)}", one.follows.broken) for one in schema.derived
    ]
    rows = [
        (name, words, str(summary.broken[name]), _BECOMES[policy])
        for name, words, policy in rules
        if name in summary.broken
    ]
    if rows:
        click.echo()
        print_table(("rule", "what it says", "rows that break it", "outcome"), rows, numbers=("rows that break it",))


def _lines(summary: EncodingSummary, column: ColumnSchema) -> Iterator[tuple[str, str, str]]:
    """The classes of values that occur; those in the domain always."""
    from ppsyn.data.encoding.parsing import Fit
    from ppsyn.data.encoding.table import Fate, fate_of

    counts = summary.fits[column.name]
    for fit in Fit:
        if fit is Fit.INSIDE or counts[fit]:
            fate = fate_of(fit, column)
            yield _FITS[fit.name], str(counts[fit]), f"{column.other!r}" if fate is Fate.OTHER else _FATES[fate.name]


def _describe_names(summary: EncodingSummary) -> Iterator[str]:
    names = summary.names
    for name in names.missing:
        yield f"Missing: the table has no column {name!r}; a release would be refused."
    for name in names.absent:
        yield f"Missing: the table has no column {name!r}, which `excluded` names; a release would be refused."
    for name in names.unknown:
        yield f"Unknown: {name!r} is neither in `columns` nor in `excluded`; a release would be refused."
    for name in names.excluded:
        yield f"Left out: {name!r} is in `excluded`, and was not read."


def warn_of_lost_columns(source: Source, schema: TableSchema) -> None:
    """Name, if standard error is a terminal, the columns of which a release would lose most values.

    Otherwise nothing is read. Nothing else depends on what is found, nor on whether the table could be read: the
    release itself reports what stops it.
    """
    if not sys.stderr.isatty():
        return
    lost: list[str] = []
    with suppress(Exception):
        from ppsyn.evaluation.schema_check import lost_columns

        lost = lost_columns(source, schema)
    if lost:
        for line in (_LOST.format(", ".join(map(repr, lost))), _LOST_IS_PRIVATE):
            click.secho(line, bold=True, err=True)
