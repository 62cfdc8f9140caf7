"""The private table behind a published release, and the stores that it was released from."""

from dataclasses import dataclass

from ppsyn.errors import ConfigError
from ppsyn.flows.preflight import read_inputs
from ppsyn.runs.record import read_record, ref_of
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.release import Source
from ppsyn.schemas.run import RunRef
from ppsyn.storage import Store


@dataclass(frozen=True, slots=True)
class Original:
    """What a release was made from.

    Attributes:
        source: The private table.
        ref: The run that released it, and its stores.
    """

    source: Source
    ref: RunRef


def original_of(manifest: Manifest, file: str | None, store: Store | None, private: Store | None) -> Original:
    """The table that a release file describes, or else the one that the release's own run was told.

    Args:
        manifest: Of the release.
        file: The release file.
        store: Where the run was kept, if no file is given.
        private: Where private things are to be kept, if no file is given and it is not in the store.

    Raises:
        ConfigError: If the file describes another release, or the store knows another run of that name.
        RunError: If the store does not know the run.
    """
    if file is not None:
        config, table = read_inputs(file, ())
        for what, named, released in (
            ("dataset", config.dataset, manifest.dataset),
            ("schema", table, manifest.table),
            ("privacy.person", config.privacy.person, manifest.privacy.person),
        ):
            if named != released:
                raise ConfigError(f"{file}: field {what!r}: Expected what the release {manifest.run} was made with.")
        return Original(config.source, ref_of(config, manifest.run))
    if store is None:
        raise ConfigError("Expected a release file, or the store of the release's run.")
    record = read_record(store, manifest.run)
    if record.digest() != manifest.inputs:
        raise ConfigError(f"The run {manifest.run} in {store.location.url} is not the one that made this release.")
    location = store.location
    ref = RunRef(
        run=manifest.run,
        dataset=manifest.dataset,
        root=location,
        private=private.location if private else location,
        releases=location,
    )
    return Original(record.source, ref)
