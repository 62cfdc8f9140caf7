"""The exact marginals of a run: counted once, cached beside its fragments, and gone with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from pydantic import Field, ValidationError

from ppsyn.arrays import Ints
from ppsyn.data.marginals.counter import Rows, TableCounter, fitting
from ppsyn.data.snapshot import Fragment, Snapshot
from ppsyn.domain import Clique
from ppsyn.errors import MissingError, SourceError
from ppsyn.schemas.types import FrozenModel

_MARKER = "marginals.json"
_SHARD_CELLS = 2**21


class _CacheManifest(FrozenModel):
    """What marginals.json holds. It is private, as are the counts it names."""

    of: str = Field(repr=False)
    shards: tuple[Fragment, ...] = Field(repr=False)


def open_counter(
    snapshot: Snapshot, cliques: Iterable[Clique], room_mb: float, rows: Rows | None = None
) -> TableCounter:
    """The exact counts of a snapshot, for the curator; of these cliques, as many as there is room for at once.

    Args:
        snapshot: The encoded rows.
        cliques: What will be asked, as far as that is known.
        room_mb: Memory for exact marginals.
        rows: What counts the snapshot, if not this process alone.

    Privacy:
        Reads private codes, or the counts that were made of them before; both are for
        the curator alone. Which are kept is a public rule.

    Raises:
        SourceError: If the snapshot is damaged.
    """
    kept = fitting(snapshot.domain, cliques, room_mb)
    counter = TableCounter(rows or snapshot, room_mb)
    found = _load(snapshot, kept)
    if found is None:
        _store(snapshot, dict(counter.marginals(kept)), kept)
    else:
        counter.keep(found)
    return counter


def _load(snapshot: Snapshot, kept: Sequence[Clique]) -> dict[Clique, Ints] | None:
    """The counts of an earlier process, if they are whole and are those of this snapshot."""
    shelf = snapshot.shelf
    try:
        cached = _CacheManifest.model_validate_json(shelf.store.get(f"{shelf.prefix}/{_MARKER}"))
        if cached.of != snapshot.digest(kept):
            return None
        shards = [np.frombuffer(shelf.read(shard), "<i8") for shard in cached.shards]
    except (MissingError, SourceError, ValidationError):
        return None
    found: dict[Clique, Ints] = {}
    for part, counts in zip(_sharded(snapshot, kept), shards, strict=True):
        ends = np.cumsum([snapshot.domain.size(clique) for clique in part])
        found |= zip(part, np.split(counts, ends[:-1]), strict=True)
    return found


def _store(snapshot: Snapshot, found: Mapping[Clique, Ints], kept: Sequence[Clique]) -> None:
    shards = tuple(
        snapshot.shelf.write(
            f"marginals/{number:05d}.bin", np.concatenate([found[clique] for clique in part]).astype("<i8").tobytes()
        )
        for number, part in enumerate(_sharded(snapshot, kept))
    )
    cached = _CacheManifest(of=snapshot.digest(kept), shards=shards)
    snapshot.shelf.write(_MARKER, cached.model_dump_json().encode())


def _sharded(snapshot: Snapshot, kept: Sequence[Clique]) -> Iterator[list[Clique]]:
    """The cliques in groups, so that no object is large and none is empty."""
    part, cells = list[Clique](), 0
    for clique in kept:
        part.append(clique)
        cells += snapshot.domain.size(clique)
        if cells >= _SHARD_CELLS:
            yield part
            part, cells = [], 0
    if part:
        yield part
