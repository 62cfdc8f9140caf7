"""Keys and signatures: `ppsyn keys`, `ppsyn sign` and `ppsyn head`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import FilePath, bucket_options, open_release_at, open_store_at, store_options
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json, print_table

if TYPE_CHECKING:
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.privacy.signatures import Signer
    from ppsyn.schemas.signature import Trust

_KEY = click.option(
    "--key", type=FilePath(Path), envvar="PPSYN_KEY", help="The file of your private key.", required=True
)


@click.group()
def keys() -> None:
    """Make keys, and say whose keys an account trusts.

    PPSYN_KEY names the file of your private key; PPSYN_KEY_PASSPHRASE holds its passphrase, if it has one.

    \b
    Examples:
      ppsyn keys new ana
      ppsyn keys trust people ana ana.pub
      ppsyn keys list people --json
      ppsyn keys revoke people ana
    """


@keys.command()
@click.argument("name")
@click.option("--out", default=".", show_default=True, help="The folder to write NAME.key and NAME.pub to.")
@click.option("--passphrase", is_flag=True, help="Ask for a passphrase that protects the key.")
@handle_errors
def new(name: str, out: str, passphrase: bool) -> None:
    """Make an Ed25519 key for the person NAME: NAME.key, which nobody else may read, and NAME.pub, for everybody.

    \b
    Examples:
      ppsyn keys new ana
      ppsyn keys new ana --out ~/.ppsyn --passphrase
    """
    from ppsyn.errors import ConfigError
    from ppsyn.privacy.signatures import new_key

    _check_name(name)
    folder = Path(out).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {out}.")
    secret = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True) if passphrase else None
    signer = new_key(folder / f"{name}.key", secret)
    click.echo(f"key       {folder / f'{name}.key'}: keep it to yourself")
    click.echo(f"public    {folder / f'{name}.pub'}: key {signer.keyid[:16]}")


def _check_name(name: str) -> None:
    """See that a person can have this name.

    Raises:
        ConfigError: If not.
    """
    from pydantic import TypeAdapter, ValidationError

    from ppsyn.errors import ConfigError, translated
    from ppsyn.schemas.types import Name

    rule = f"Expected a name of lower-case letters and digits, with single hyphens between them, got {name!r}."
    with translated(ValidationError, to=ConfigError, message=rule):
        TypeAdapter[str](Name).validate_python(name)


@keys.command("list")
@click.argument("dataset")
@store_options
@JSON_OPTION
@handle_errors
def list_keys(dataset: str, as_json: bool, **location: Any) -> None:
    """List the keys that the account of DATASET trusts, or has revoked. As JSON, this is what --trust reads.

    \b
    Examples:
      ppsyn keys list people
      ppsyn keys list people --json
    """
    from ppsyn.schemas.signature import keyid_of

    trust = _account(dataset, location).state.trust()
    if as_json:
        print_json(trust.model_dump(mode="json"))
        return
    rows = [
        (key.name, keyid_of(key.public)[:16], ", ".join(key.rights), _day(key.trusted_at), _day(key.revoked_at))
        for key in trust.keys
    ]
    print_table(("name", "key", "may", "trusted", "revoked"), rows, unwrapped=("name", "key"))


def _day(at: Any) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


@keys.command("trust")
@click.argument("dataset")
@click.argument("name")
@click.argument("file", type=FilePath(Path))
@store_options
@handle_errors
def trust_key(dataset: str, name: str, file: Path, **location: Any) -> None:
    """Trust the public key in FILE as that of the person NAME, from now on.

    Once a policy names people, only those who may change it can do this. To rotate a key, trust the new one, then
    revoke the old one.

    \b
    Example:
      ppsyn keys trust people ana ana.pub
    """
    from ppsyn.privacy.signatures import read_public
    from ppsyn.schemas.signature import keyid_of

    _check_name(name)
    public = read_public(file)
    _account(dataset, location).change_key(name, public, is_trusted=True)
    click.echo(f"trusted   key {keyid_of(public)[:16]} of {name}, for {dataset}")


@keys.command()
@click.argument("dataset")
@click.argument("key")
@store_options
@handle_errors
def revoke(dataset: str, key: str, **location: Any) -> None:
    """Revoke KEY, for good: what is signed with it from now on is refused. KEY is a person's name or begins its number.

    \b
    Examples:
      ppsyn keys revoke people ana
      ppsyn keys revoke people 4f1c09aa
    """
    from ppsyn.errors import ConfigError

    account = _account(dataset, location)
    trusted = {keyid: each for keyid, each in account.state.keys.items() if each.revoked is None}
    found = {keyid: each for keyid, each in trusted.items() if each.name == key or keyid.startswith(key)}
    if len(found) != 1:
        listed = ", ".join(f"{keyid[:16]} ({each.name})" for keyid, each in (found or trusted).items()) or "none"
        raise ConfigError(f"Expected {key!r} to name one trusted key. Name one of: {listed}.")
    ((keyid, each),) = found.items()
    account.change_key(each.name, each.public, is_trusted=False)
    click.echo(f"revoked   key {keyid[:16]} of {each.name}, for {dataset}")


@click.command()
@click.argument("release", metavar="RELEASE")
@_KEY
@bucket_options
@handle_errors
def sign(release: str, key: Path, **location: Any) -> None:
    """Sign RELEASE, a published folder. The signature is put into its folder `signatures`.

    A release is signed when it is published if PPSYN_KEY names a key that its account trusts.

    \b
    Examples:
      ppsyn sign out/releases/people/latest --key ana.key
      ppsyn sign s3://bucket/releases/people/RUN --key ana.key
    """
    from ppsyn.releases.signing import sign_release

    store = open_release_at(release, **location)
    click.echo(f"signed    {store.url(sign_release(store, _signer(key)))}")


@click.group()
def head() -> None:
    """Keep the state of an account elsewhere, signed, and see later that the account was not set back.

    \b
    Examples:
      ppsyn head save people --out people-2026-11.json --key ana.key
      ppsyn head check people people-2026-11.json --trust keys.json
    """


@head.command()
@click.argument("dataset")
@click.option("--out", type=FilePath(Path), required=True, help="The file to write; keep it where the store is not.")
@_KEY
@store_options
@handle_errors
def save(dataset: str, out: Path, key: Path, **location: Any) -> None:
    """Sign what the account of DATASET is as of now, and write it to a file.

    \b
    Example:
      ppsyn head save people --out people-2026-11.json --key ana.key
    """
    from ppsyn.errors import StoreError, translated

    account = _account(dataset, location)
    envelope = account.signed_head(_signer(key))
    with (
        translated(OSError, to=StoreError, message=lambda error: f"Cannot write {out}: {error.strerror}."),
        out.open("xb") as file,
    ):
        file.write(envelope.to_bytes())
    click.echo(f"saved     {out}: {dataset} up to entry {account.state.count - 1}")


@head.command()
@click.argument("dataset")
@click.argument("file", type=FilePath(Path))
@click.option("--trust", type=FilePath(Path), required=True, help="Keys: of `ppsyn keys list --json`, or a .pub file.")
@store_options
@handle_errors
def check(dataset: str, file: Path, trust: Path, **location: Any) -> None:
    """Check that the account of DATASET still holds all that FILE, a signed head, tells of it.

    \b
    Example:
      ppsyn head check people people-2026-11.json --trust keys.json
    """
    from ppsyn.errors import ConfigError, SignatureError, translated
    from ppsyn.privacy.signatures import read_limited
    from ppsyn.schemas.signature import Envelope, keyid_of

    with translated(ValueError, to=ConfigError, message=f"Expected {file} to be a signed head of an account."):
        envelope = Envelope.model_validate_json(read_limited(file))
    key = next((key for key in read_trust(trust).keys if keyid_of(key.public) == envelope.keyid), None)
    if key is None:
        raise SignatureError(f"{file} is signed with key {envelope.keyid[:16]}, which {trust} does not hold.")
    told = _account(dataset, location).check_head(envelope, key.public)
    click.echo(
        f"ok        {dataset} holds all that {key.name} signed on {_day(told.signed_at)}, up to entry {told.number}"
    )


def read_trust(file: Path) -> Trust:
    """The keys in a file: those of an account, or one public key, whose owner may do anything.

    Raises:
        ConfigError: If it holds none.
    """
    from ppsyn.errors import ConfigError, translated
    from ppsyn.privacy.signatures import read_limited, read_public
    from ppsyn.schemas.signature import Trust, TrustedKey

    data = read_limited(file)
    if data.startswith(b"-----BEGIN"):
        every = ("release", "approve", "policy")
        return Trust(keys=(TrustedKey(name="signer", public=read_public(file), rights=every),))
    rule = f"Expected {file} to hold keys, as `ppsyn keys list DATASET --json` prints them, or a public key in PEM."
    with translated(ValueError, to=ConfigError, message=rule):
        return Trust.model_validate_json(data)


def _account(dataset: str, location: dict[str, Any]) -> StoredAccount:
    from ppsyn.flows.cli.accounts import read_statement
    from ppsyn.privacy.account import StoredAccount

    store = open_store_at(**location)
    read_statement(store, dataset)
    return StoredAccount(store, dataset)


def _signer(key: Path) -> Signer:
    import os

    from ppsyn.privacy.signatures import PASSPHRASE, read_key

    return read_key(key, os.environ.get(PASSPHRASE))
