"""A release beside its private table: `ppsyn quality` for the public, `ppsyn private-report` for the data's owner."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.errors import AuditError, ConfigError, StoreError, translated
from ppsyn.flows.cli.locations import (
    F,
    FilePath,
    check_unpublished,
    open_release_at,
    open_store_at,
    short_path,
    store_options,
)
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json, print_lines, print_table
from ppsyn.flows.cli.releases import Original, original_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from ppsyn.data.marginals.kernel import Block
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.privacy.account_state import RunBudget
    from ppsyn.schemas.quality import Quality
    from ppsyn.schemas.run import RunRef
    from ppsyn.storage import Store

_RELEASE = click.argument("release", metavar="RELEASE")
_FILE = click.argument("file", required=False, type=FilePath())
_PRIVATE = click.option("--private", help="Where private objects are kept, if not in the store. Not with FILE.")


def _release_options(function: F) -> F:
    """Which release, and where its private table is."""
    return _RELEASE(_FILE(store_options(_PRIVATE(function))))


def _open(release: str, file: str | None, private: str | None, store: str, **location: Any) -> tuple[Store, Original]:
    """The release, and the table that it was made from."""
    from ppsyn.releases.reader import read_sealed

    folder = open_release_at(release, **location)
    root = None if file is not None else open_store_at(store, **location)
    private_store = None if file is not None or private is None else open_store_at(private, **location)
    return folder, original_of(read_sealed(folder)[0], file, root, private_store)


def _split(marginals: tuple[str, ...]) -> list[list[str]]:
    return [[name.strip() for name in text.split(",")] for text in marginals]


@click.command()
@click.option("--rho", type=float, help="Budget to spend from the dataset's account, as zCDP.")
@click.option("--epsilon", type=float, help="The same as an epsilon at the account's delta.")
@click.option(
    "--marginal", "marginals", multiple=True, metavar="NAME,NAME",
    help="A marginal with a figure of its own; may be repeated.",
)  # fmt: skip
@_release_options
@JSON_OPTION
@handle_errors
def quality(
    rho: float | None, epsilon: float | None, marginals: tuple[str, ...], as_json: bool, release: str, **location: Any
) -> None:
    """Publish noisy figures about the quality of RELEASE, charged to its dataset's account.

    Compares the private table with the synthetic one, marginal by marginal, and publishes summary figures with error
    bars in RELEASE/quality. FILE is the release file, which says where the private table is. Without FILE, the run's
    record in the store says so. RELEASE is audited first; if it was changed, it is refused and nothing is charged.
    The budget is charged before noise is drawn, so a call that is killed must be paid for again.

    \b
    Examples:
      ppsyn quality out/releases/adult/RUN --rho 0.001
      ppsyn quality out/releases/adult/RUN --epsilon 0.1 --marginal age,income --marginal sex
      ppsyn quality s3://public/releases/adult/RUN release.yaml --rho 0.001 --json
    """
    from ppsyn.quality.run import publish

    folder, original = _open(release, **location)
    check_release(folder, original)
    for sentence in describe_unanswered(folder, original):
        click.echo(sentence, err=True)
    found = measure(folder, original, rho, epsilon, _split(marginals))
    try:
        url = publish(folder, found.quality)
    except StoreError:
        click.echo(found.quality.to_bytes(), nl=False)  # they are paid for
        raise
    if as_json:
        print_json({"figures": url, **found.quality.model_dump(mode="json", exclude={"entries"})})
    else:
        found.print(url, release)


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures, and how the account stands after them."""

    quality: Quality
    left: float
    cap: float

    def print(self, url: str, release: str) -> None:
        """For a person."""
        from ppsyn.reports.formatting import exact_percent
        from ppsyn.reports.quality import name_figures

        guarantee, folder = self.quality.guarantee, short_path(release)
        click.echo("Total variation distance from the private table, with 95% confidence intervals:")
        rows = [
            (f"  {name}", exact_percent(f.distance), f"{exact_percent(f.lower)} to {exact_percent(f.upper)}")
            for name, _, f in name_figures(self.quality)
        ]
        print_table(("  marginals", "distance", "interval"), rows, numbers=("distance",))
        print_lines(
            (
                f"figures   {short_path(url)}",
                f"page      {short_path(url).removesuffix('.json')}.html",
                f"spent     {guarantee.cost}, protecting {guarantee.unit}",
                f"account   {self.quality.request.dataset}: rho {self.left:.6g} left of {self.cap:.6g}",
                f"audit     ppsyn audit {folder}",
            )
        )


def requested_rho(account: StoredAccount, rho: float | None, epsilon: float | None) -> Fraction:
    """What to spend.

    Raises:
        ConfigError: If it is not given, or given twice, or the account has no delta to convert epsilon at.
    """
    from ppsyn.privacy.budget import rho_from, rho_of
    from ppsyn.schemas.config import Budget

    if (rho is None) == (epsilon is None):
        raise ConfigError("Expected --rho or --epsilon, the budget of the figures. Give one of them.")
    if rho is not None:
        if not 0 < rho < float("inf"):
            raise ConfigError(f"Expected --rho={rho:g} to be positive and finite.")
        return rho_of(Budget(rho=rho))
    delta = account.state.opening.delta
    if delta is None or epsilon is None:
        raise ConfigError("The account has no delta. Give --rho instead of --epsilon.")
    return rho_from(epsilon, delta)


def check_release(release: Store, original: Original) -> None:
    """See that the release is as it was published and paid for, before anything is spent on figures about it.

    Raises:
        AuditError: If it is not.
    """
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.releases.audit import audit
    from ppsyn.storage import open_store

    account = StoredAccount(open_store(original.ref.root), original.ref.dataset)
    problems = [f"{found.subject}: {found.problem}" for found in audit(release, account) if found.problem is not None]
    if problems:
        raise AuditError(release.location.url, problems)


def measure(
    release: Store, original: Original, rho: float | None, epsilon: float | None, marginals: Sequence[Sequence[str]]
) -> Measured:
    """Measure a release, at a cost to its dataset's account.

    Raises:
        CapExceededError: If the account does not have it; no row was read.
    """
    from ppsyn.domain import domain_of
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.quality import run as runs
    from ppsyn.quality.questions import cliques_of, sets_of
    from ppsyn.releases.reader import published_counts, read_sealed
    from ppsyn.schemas.quality import QualityRecord
    from ppsyn.storage import open_store
    from ppsyn.tasks.step import sealed

    manifest, digest = read_sealed(release)
    account = StoredAccount(open_store(original.ref.root), manifest.dataset)
    domain = domain_of(manifest.table)
    record = QualityRecord(
        run=runs.new_run(manifest.run),
        dataset=manifest.dataset,
        release=manifest.run,
        manifest=digest,
        rho=requested_rho(account, rho, epsilon),
        delta=account.state.opening.delta,
        person=manifest.privacy.person,
        sets=sets_of(domain, manifest.algorithm.workload, [tuple(names) for names in marginals]),
    )
    ref = original.ref.model_copy(update={"run": record.run})
    runs.check_possible(ref, record, original.source, manifest.table, release)
    synthetic = published_counts(release, manifest, cliques_of(record.sets))

    @sealed
    def measure_sealed(ref: RunRef) -> Quality:
        return runs.measure(ref, record, original.source, manifest.table, synthetic)

    quality, state = measure_sealed(ref), account.state
    return Measured(quality, float(state.left), float(state.cap))


def describe_unanswered(release: Store, original: Original) -> list[str]:
    """The earlier calls that were charged and left no figures, a sentence each."""
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.quality.run import unanswered
    from ppsyn.storage import open_store

    account = StoredAccount(open_store(original.ref.root), original.ref.dataset)
    return [_describe_charge(budget) for budget in unanswered(account, release, original.ref.run)]


def _describe_charge(budget: RunBudget) -> str:
    text = f"Run {budget.run} was charged rho {float(budget.spent):.6g} and left no figures here; it stays charged."
    if budget.is_open:
        text += f" Unless another process is running it, `ppsyn abandon {budget.run}` frees the rho that it reserved."
    return text


@click.command("private-report")
@click.option(
    "--out", type=FilePath(), default="private-report.html", show_default=True,
    help="The file to write, outside of all releases.",
)  # fmt: skip
@click.option(
    "--marginal", "marginals", multiple=True, metavar="NAME,NAME",
    help="A marginal to show besides the selected ones; may be repeated.",
)  # fmt: skip
@click.option("--target", "targets", multiple=True, metavar="NAME", help="An attribute to classify; may be repeated.")
@_release_options
@handle_errors
def private_report(
    out: str, marginals: tuple[str, ...], targets: tuple[str, ...], release: str, **location: Any
) -> None:
    """Write a page that compares RELEASE with its private table, only for the owner of the data.

    The page is private: it holds exact numbers, and nothing is charged for it. It cannot be written into a release or
    a folder of releases. FILE is the release file, which says where the private table is. Without FILE, the run's
    record in the store says so. For figures that may be published, use `ppsyn quality`.

    \b
    Examples:
      ppsyn private-report out/releases/adult/RUN
      ppsyn private-report out/releases/adult/RUN release.yaml --out private/adult.html
      ppsyn private-report out/releases/adult/RUN --marginal age,income --target income
    """
    from ppsyn.extras import require

    if targets:
        require("benchmark", "--target")
    check_out(Path(out))
    folder, original = _open(release, **location)
    write_owner_report(folder, original, Path(out), _split(marginals), targets)
    click.echo(f"private   {out}: do not publish it. For figures to publish: ppsyn quality {release} --rho R")


def check_out(out: Path) -> None:
    """Check that a private file would lie outside of all releases.

    Raises:
        ConfigError: If it would not, or cannot be a file.
    """
    check_unpublished(out, "--out", "the page is private")
    path = out.resolve()
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"Expected --out={out} to be a file in an existing folder.")


def write_owner_report(
    folder: Store, original: Original, out: Path, marginals: Sequence[Sequence[str]], targets: Sequence[str]
) -> None:
    """Compare a release with its private table, and write the page; only its owner may read the file.

    Privacy:
        Reads the private table and charges nothing (limit L13). All rows are counted, whoever they belong to.

    Raises:
        PPSynError: If the tables cannot be compared.
    """
    from ppsyn.data.ingest import encoded_batches
    from ppsyn.data.sources import check_source
    from ppsyn.domain import domain_of
    from ppsyn.evaluation.comparison import StreamedTable, TablePair, compare
    from ppsyn.evaluation.owner_report import render
    from ppsyn.releases.reader import open_release, published_codes, read_sealed
    from ppsyn.tasks.step import sealed

    manifest, _ = read_sealed(folder)
    table, domain = manifest.table, domain_of(manifest.table)
    check_source(original.source, table, None)

    def private() -> Iterator[Block]:
        return (codes for _, codes in encoded_batches(original.source, table, None))

    @sealed
    def page(ref: RunRef) -> bytes:
        synthetic = StreamedTable(domain, lambda: published_codes(folder, manifest))
        both = TablePair(StreamedTable(domain, private), synthetic)
        columns = {column.name: column for column in table.columns}
        found = compare(both, columns, manifest.algorithm.workload, [tuple(names) for names in marginals], targets)
        return render(manifest, open_release(folder), found, short_path(folder.location.url))

    _write_closed(out, page(original.ref))


def _write_closed(out: Path, data: bytes) -> None:
    """Write a file that only its owner may read; it appears when it is complete."""
    partial = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {out}: {error.strerror}."):
            with open(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
                file.write(data)
            partial.replace(out)
    finally:
        with suppress(OSError):
            partial.unlink()
