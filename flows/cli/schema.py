"""The commands that help to write a schema."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ppsyn.flows.cli.exit_codes import Exit
from ppsyn.flows.cli.locations import FilePath, bucket_options
from ppsyn.flows.cli.output import handle_errors

F = TypeVar("F", bound=Callable[..., Any])


def _table_options(function: F) -> F:
    """How to read a table that is named by its address."""
    option = click.option("--delimiter", default=",", show_default=True, help="Between the fields of a CSV file.")
    return option(bucket_options(function))


@click.group()
def schema() -> None:
    """Write a schema, and see what it would do.

    TABLE is a CSV or Parquet file or folder, local or s3://, or a release file whose source is meant.

    \b
    Examples:
      ppsyn schema draft people.parquet --out people.yaml
      ppsyn schema check people.parquet people.yaml
    """


@schema.command()
@click.argument("table")
@click.option("--out", type=FilePath(), help="The file to write; by default standard output.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--public", "sample", metavar="SAMPLE", help="A table whose values are public, to fill the draft from.")
@_table_options
@handle_errors
def draft(table: str, out: str | None, force: bool, sample: str | None, **location: Any) -> None:
    """Draft a schema of TABLE from the names and types of its columns. No row of it is read.

    Of a query they are those that its database declares, with the values of enumerated types.
    What a person has to say from public knowledge is marked !fill; a schema is refused while a mark is left.
    With --public, values of SAMPLE fill it: kinds, bounds, bins, categories, nulls. SAMPLE must be public.

    \b
    Examples:
      ppsyn schema draft people.csv --out people.yaml
      ppsyn schema draft s3://bucket/people --endpoint https://s3.example.org
      ppsyn schema draft people.parquet --public census-sample.csv --out people.yaml
      ppsyn schema draft release.yaml
    """
    from ppsyn.flows.cli.tables import files_at, table_at
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
    from ppsyn.errors import ConfigError, StoreError, translated

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
@click.option("--anywhere", is_flag=True, help="Print even where standard output is no terminal.")
@_table_options
@handle_errors
def check(table: str, schema_file: str, anywhere: bool, **location: Any) -> None:
    """Tell what SCHEMA would make of the values of TABLE: kept, clipped, to other, to null, refused.

    Reads every row. The numbers are exact and private: they are printed to the terminal, and written
    nowhere. Exit code 2 says that a release would stop.

    \b
    Examples:
      ppsyn schema check people.csv people.yaml
      ppsyn schema check release.yaml people.yaml
    """
    from rich.console import Console

    from ppsyn.errors import ConfigError
    from ppsyn.evaluation.schema_check import summarize_encoding
    from ppsyn.flows.cli.schema_check_view import show
    from ppsyn.flows.cli.tables import table_at
    from ppsyn.flows.preflight import read_schema

    if not (anywhere or sys.stdout.isatty()):
        raise ConfigError(
            "Expected standard output to be a terminal: the numbers are private, and a file or a log would keep them. "
            "Give --anywhere to print them all the same."
        )
    asked = table_at(table, **location)
    summary = summarize_encoding(asked.source, read_schema(schema_file), asked.person)
    show(summary, Console())
    if summary.is_refused:
        sys.exit(Exit.MISTAKE)
