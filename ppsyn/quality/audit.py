"""Anyone's check of figures about a release: what they were asked of, what they cost, and what follows from them."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ppsyn.domain import Clique, domain_of
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.requests import CompareRequest, Measured, noise_scale
from ppsyn.privacy.scores import joint_sensitivity, sensitivity
from ppsyn.quality.questions import cliques_of, compare_request, figures_of, rows_request, scaled_to, shares_of
from ppsyn.releases.budget_checks import Fault, check_chain, check_spending, check_stored, guarantee_of
from ppsyn.releases.layout import QUALITY
from ppsyn.releases.reader import published_counts
from ppsyn.releases.tables import charges_of
from ppsyn.reports.quality import render
from ppsyn.schemas.account import Charge
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.quality import Quality
from ppsyn.storage import Store


def check_quality(store: Store, manifest: Manifest, digest: str, key: str, account: StoredAccount | None) -> None:
    """See that a file of figures belongs to the release, was paid for, and says what its answers imply.

    Args:
        store: The release's folder.
        manifest: The release's manifest.
        digest: Of the manifest.
        key: The file.
        account: The account it was paid from, for whoever may read it.

    Raises:
        Fault: If it does not.
    """
    data = store.get(key)
    quality = Quality.model_validate_json(data)
    entries = [entry.encode() for entry in quality.entries]
    if quality.to_bytes() != data or key != f"{QUALITY}/{quality.request.run}.json":
        raise Fault("It is not written as ppsyn writes figures.")
    _check_asked(manifest, digest, quality)
    check_chain(quality.account, entries, key)
    _check_cost(quality, entries)
    _check_answers(store, manifest, quality, entries)
    if account is not None:
        check_stored(account, quality.request.run, quality.account, entries, hashlib.sha256(data).hexdigest())


def check_page(store: Store, key: str) -> None:
    """See that a page says what the figures beside it say.

    Raises:
        Fault: If it does not.
    """
    figures = f"{key.removesuffix('.html')}.json"
    if not store.has(figures):
        raise Fault("It is a page without figures.")
    if render(Quality.model_validate_json(store.get(figures))) != store.get(key):
        raise Fault("It is not the page that the figures give.")


def _check_asked(manifest: Manifest, digest: str, quality: Quality) -> None:
    request = quality.request
    if (request.dataset, request.release, request.manifest) != (manifest.dataset, manifest.run, digest):
        raise Fault("It is about another release.")
    if request.person != manifest.privacy.person:
        raise Fault("It protects another unit than the release.")


def _check_cost(quality: Quality, entries: Sequence[bytes]) -> None:
    request = quality.request
    grant = check_spending(entries, request.run, quality.account, quality.guarantee)
    if (grant.inputs, grant.quality_of, grant.rho) != (request.digest(), request.release, request.rho):
        raise Fault("It was paid for with other inputs.")
    if quality.guarantee != guarantee_of(request.rho, request.privacy):
        raise Fault("The guarantee does not follow from what was spent.")


def _check_answers(store: Store, manifest: Manifest, quality: Quality, entries: Sequence[bytes]) -> None:
    request, rows = quality.request, quality.rows
    synthetic = published_counts(store, manifest, cliques_of(request.sets))
    first, second = shares_of(request.rho, request.sets)
    counted = rows_request(domain_of(manifest.table), first)
    compared = compare_request(request.sets, synthetic, scaled_to(rows), second)
    if [_as_charged(charge) for charge in charges_of(entries, request.run)] != [
        ("measure", counted.clique, first, counted.digest()),
        ("compare", (), second, compared.digest()),
    ]:
        raise Fault("What was charged is not what the figures state.")
    if (rows.sigma, quality.sigma) != (
        noise_scale(first, request.max_rows),
        _compared_noise(compared, request.max_rows),
    ):
        raise Fault("The noise is not what its charge buys.")
    answer = Measured(np.array([figure.noisy for figure in quality.figures], np.int64), quality.sigma)
    if figures_of(request.sets, synthetic, rows, answer) != quality.figures:
        raise Fault("The figures do not follow from the answers.")


def _as_charged(charge: Charge) -> tuple[str, Clique, Fraction, str]:
    return charge.mechanism, charge.clique, charge.rho, charge.request


def _compared_noise(request: CompareRequest, max_rows: int) -> float:
    return noise_scale(request.rho, joint_sensitivity(max_rows * sensitivity(request.candidates), len(request.figures)))
