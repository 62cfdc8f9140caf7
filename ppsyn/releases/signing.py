"""Signatures of a release: made when it is published or later, and checked with public keys alone."""

import re
from datetime import UTC, datetime

from ppsyn.errors import SignatureError, translated
from ppsyn.privacy.account_state import AccountState
from ppsyn.privacy.signatures import Signer, read_statement, verify
from ppsyn.releases.budget_checks import Fault
from ppsyn.releases.layout import MANIFEST, SIGNATURES
from ppsyn.releases.reader import read_sealed
from ppsyn.schemas.limits import DOCUMENT_BYTES
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.signature import Envelope, ReleaseSigned, Trust, keyid_of
from ppsyn.storage import Store


def is_signature(key: str) -> bool:
    """Whether a file of a release is a signature, which is put there after the release."""
    return re.fullmatch(rf"{SIGNATURES}/[0-9a-f]{{64}}\.json", key) is not None


def signatures_in(store: Store) -> list[str]:
    """The signatures of the release in this store."""
    return [key for key in store.keys(SIGNATURES) if is_signature(key)]


def sign_release(store: Store, signer: Signer) -> str:
    """Vouch for the release in this store; returns the file. One that this key has signed stays as it is.

    Raises:
        ConfigError: If there is none, or it was changed.
    """
    manifest, digest = read_sealed(store)
    key = f"{SIGNATURES}/{signer.keyid}.json"
    told = ReleaseSigned(dataset=manifest.dataset, run=manifest.run, signed_at=datetime.now(UTC).replace(microsecond=0))
    if not store.has(key):
        store.put(key, signer.sign(MANIFEST, digest, told).to_bytes())
    return key


def is_demanded(state: AccountState, run: str) -> bool:
    """Whether the policy asked for signatures when a run was closed."""
    budget, since = state.budgets.get(run), state.signed_since
    return since is not None and (budget is None or budget.closed is None or budget.closed > since)


def read_signature(store: Store, digest: str, file: str) -> Envelope:
    """A signature, which states that it is of the manifest with this digest. Whether it is right, keys tell."""
    with translated(ValueError, to=Fault, message="It is no DSSE envelope of an in-toto statement."):
        envelope = Envelope.model_validate_json(store.get(file, DOCUMENT_BYTES))
        about = read_statement(envelope, ReleaseSigned).subject[0].digest.sha256
    if file != f"{SIGNATURES}/{envelope.keyid}.json":
        raise Fault("It is not in the file that its key names.")
    if about != digest:
        raise Fault("It is of another release, or of this one before it was changed.")
    return envelope


def check_signature(envelope: Envelope, manifest: Manifest, trust: Trust | None, state: AccountState | None) -> None:
    """See that a signature was made by somebody who may release, with a key that was trusted then.

    Args:
        envelope: The signature, of this release.
        manifest: The manifest of the release.
        trust: Keys, and what their owners may do; without them, nothing more can be told.
        state: The account, whose order of entries tells more than clocks.
    """
    if trust is None:
        return
    key = next((key for key in trust.keys if keyid_of(key.public) == envelope.keyid), None)
    if key is None:
        raise Fault(f"It is of key {envelope.keyid[:16]}, which nobody trusts.")
    with translated(SignatureError, to=Fault, message=f"It was not made with the key of {key.name}."):
        _, told = verify(envelope, key.public, ReleaseSigned)
    if (told.dataset, told.run) != (manifest.dataset, manifest.run):
        raise Fault("It is of another release.")
    if "release" not in key.rights:
        raise Fault(f"{key.name} may not release.")
    if key.revoked_at is not None and told.signed_at >= key.revoked_at:
        raise Fault(f"It was made {told.signed_at:%Y-%m-%d}, after the key of {key.name} was revoked.")
    if state is not None and _is_late(state, manifest.run, envelope.keyid):
        raise Fault(f"The key of {key.name} was revoked before the release was published.")


def _is_late(state: AccountState, run: str, keyid: str) -> bool:
    """Whether a key was revoked before a run was closed, by the order of the entries."""
    key, budget = state.keys.get(keyid), state.budgets.get(run)
    if key is None or key.revoked is None:
        return False
    return budget is None or budget.closed is None or budget.closed > key.revoked
