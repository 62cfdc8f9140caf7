"""The commands that compare a release with its private table: for the public, and for its owner."""

from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import F, FilePath, open_release_at, open_store_at, store_options
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json

if TYPE_CHECKING:
    from ppsyn.flows.cli.release_sources import Original
    from ppsyn.storage import Store


def _original_options(function: F) -> F:
    """Which release, and where its private table is."""
    for option in (
        click.option("--private", help="Where private things are kept, if not in the store; without FILE."),
        store_options,
        click.argument("file", required=False, type=FilePath()),
        click.argument("release", metavar="RELEASE"),
    ):
        function = option(function)
    return function


def _opened(
    release: str, file: str | None, private: str | None, store: str, **location: Any
) -> "tuple[Store, Original]":
    """The release, and the table that it was made from."""
    from ppsyn.flows.cli.release_sources import original_of
    from ppsyn.releases.reader import read_sealed

    folder = open_release_at(release, **location)
    kept = None if file is not None else open_store_at(store, **location)
    hidden = None if file is not None or private is None else open_store_at(private, **location)
    return folder, original_of(read_sealed(folder)[0], file, kept, hidden)


def _named(marginals: tuple[str, ...]) -> list[list[str]]:
    return [[name.strip() for name in text.split(",")] for text in marginals]


@click.command()
@click.option("--rho", type=float, help="What to spend of the dataset's account, as zCDP.")
@click.option("--epsilon", type=float, help="The same as an epsilon, at the account's delta.")
@click.option(
    "--marginal", "marginals", multiple=True, metavar="NAME,NAME",
    help="One more figure, about a marginal of its own; may be repeated.",
)  # fmt: skip
@_original_options
@JSON_OPTION
@handle_errors
def quality(
    rho: float | None, epsilon: float | None, marginals: tuple[str, ...], as_json: bool, release: str, **location: Any
) -> None:
    """Publish noisy figures of how good RELEASE is, paid for by its dataset's account.

    The private table is compared with the synthetic one, marginal by marginal, and figures of the whole are
    published with error bars in RELEASE/quality. FILE is the release file, which says where the private table
    is; without it, it is where the release's own run found it, by its record in the store. RELEASE is audited
    first; one that was changed is refused, and nothing is charged. What is asked for is charged before it is
    drawn. A call that is killed has to be paid for again.

    \b
    Examples:
      ppsyn quality out/releases/adult/RUN --rho 0.001
      ppsyn quality out/releases/adult/RUN --epsilon 0.1 --marginal age,income --marginal sex
      ppsyn quality s3://public/releases/adult/RUN release.yaml --rho 0.001 --json
    """
    from ppsyn.errors import StoreError
    from ppsyn.flows.cli.quality_view import check_release, earlier, measure
    from ppsyn.quality.run import publish

    folder, original = _opened(release, **location)
    check_release(folder, original)
    for sentence in earlier(folder, original):
        click.echo(sentence, err=True)
    found = measure(folder, original, rho, epsilon, _named(marginals))
    try:
        url = publish(folder, found.quality)
    except StoreError:
        click.echo(found.quality.to_bytes(), nl=False)  # they are paid for
        raise
    if as_json:
        print_json({"figures": url, **found.quality.model_dump(mode="json", exclude={"entries"})})
    else:
        click.echo(found.as_text(url, release))


@click.command("private-report")
@click.option(
    "--out", type=FilePath(), default="private-report.html", show_default=True,
    help="The file to write, outside of all releases.",
)  # fmt: skip
@click.option(
    "--marginal", "marginals", multiple=True, metavar="NAME,NAME",
    help="A marginal to show besides those that are chosen; may be repeated.",
)  # fmt: skip
@click.option("--target", "targets", multiple=True, metavar="NAME", help="An attribute to classify; may be repeated.")
@_original_options
@handle_errors
def private_report(
    out: str, marginals: tuple[str, ...], targets: tuple[str, ...], release: str, **location: Any
) -> None:
    """Write a page that shows RELEASE beside its private table, for the owner of the data alone.

    The page is private: it holds exact numbers, and nothing is charged for it. It is not written into a
    release or a folder of releases. FILE is the release file, which says where the private table is;
    without it, it is where the release's own run found it, by its record in the store. Figures that may be
    published are those of `ppsyn quality`.

    \b
    Examples:
      ppsyn private-report out/releases/adult/RUN
      ppsyn private-report out/releases/adult/RUN release.yaml --out private/adult.html
      ppsyn private-report out/releases/adult/RUN --marginal age,income --target income
    """
    from pathlib import Path

    from ppsyn.extras import require
    from ppsyn.flows.cli.owner_report import check_out, write

    check_out(Path(out))
    if targets:
        require("benchmark", "--target")
    folder, original = _opened(release, **location)
    write(folder, original, Path(out), _named(marginals), targets)
    click.echo(f"private   {out}: not to be published; figures that may be: ppsyn quality {release} --rho R")
