"""The command that tells what a release would do."""

import click

from ppsyn.flows.cli.locations import FilePath
from ppsyn.flows.cli.output import JSON_OPTION, print_json, told
from ppsyn.schemas.limits import ROWS


@click.command()
@click.argument("file", type=FilePath())
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: privacy.epsilon=0.5")
@click.option(
    "--rows", type=click.IntRange(min=1, max=ROWS), help="Rows to assume; the true number is private. By default 50000."
)
@JSON_OPTION
@told
def plan(file: str, settings: tuple[str, ...], rows: int | None, as_json: bool) -> None:
    """Tell what a release as FILE says would do, from public facts alone.

    Columns, workload, model, budget, and the noise at this epsilon and at others. No row is read,
    nothing is written or spent. What `ppsyn release` would refuse is refused, and what it would
    tell of a query goes to standard error.

    \b
    Examples:
      ppsyn plan adult.yaml
      ppsyn plan adult.yaml --rows 1000000 --set privacy.epsilon=0.5
    """
    from ppsyn.flows.cli.plan_view import outlook
    from ppsyn.flows.preflight import read_inputs

    found = outlook(*read_inputs(file, settings), rows)
    for sentence in found.doubts:
        click.echo(sentence, err=True)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
