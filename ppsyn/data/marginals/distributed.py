"""A pass over the fragments in parts, each counted wherever there is room for it; the curator adds them up.

What passes between is in the private store: what to count, then the counts of each part. So nothing private travels
in a task's arguments or results, and a part that was counted stays counted whatever becomes of who counted it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import numpy as np
from typing_extensions import Buffer

from ppsyn.arrays import Ints
from ppsyn.data.marginals.kernel import Layout
from ppsyn.data.snapshot import Snapshot
from ppsyn.domain import Clique, Domain
from ppsyn.errors import MissingError, SourceError

Work: TypeAlias = Callable[[str, int], None]
"""Has so many parts of a pass of this name counted, all of them, by `count_part`."""

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Spread:
    """Encoded rows that others count part by part.

    Privacy:
        Each fragment is in one part and each part is added once, so the counts are
        those of one pass over all fragments (C1). A part carries a digest of the
        fragments, the marginals, how many parts there are and which it is, so that
        none is taken for another, nor for that of an earlier snapshot. Names of passes
        follow from the questions, and the number of parts from the settings.
    """

    snapshot: Snapshot
    parts: int
    work: Work

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""
        return self.snapshot.domain

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        """The exact counts of each marginal, from one pass over the fragments.

        Raises:
            SourceError: If a part was not counted, or not where this process looks for it.
        """
        shelf, layout = self.snapshot.shelf, Layout(self.domain, tuple(cliques))
        request = json.dumps({"parts": self.parts, "cliques": cliques}).encode()
        name = hashlib.sha256(request).hexdigest()[:32]
        shelf.write(f"{_folder(name)}/request.json", request)
        self.work(name, self.parts)
        counts = layout.empty()
        for part in range(self.parts):
            found = _read(self.snapshot, name, layout, part, self.parts)
            if found is None:
                raise SourceError(
                    f"Expected the counts of every part at {shelf.store.url(f'{shelf.prefix}/{_folder(name)}')}. "
                    "Workers need the private store of the release: elsewhere, a bucket or a shared folder."
                )
            counts += found
        shelf.store.delete(f"{shelf.prefix}/{_folder(name)}")
        return layout.split(counts)


def count_part(snapshot: Snapshot, name: str, part: int) -> None:
    """Count one part of a pass, unless that was done, and leave the counts in the private store.

    Privacy:
        Reads private codes and writes private counts; draws no noise and spends nothing.

    Raises:
        SourceError: If the snapshot is damaged, or nobody has asked for this pass.
    """
    shelf = snapshot.shelf
    try:
        request = json.loads(shelf.store.get(f"{shelf.prefix}/{_folder(name)}/request.json"))
    except MissingError:
        request = None
    if request is None:
        raise shelf.damage_error()
    layout = Layout(snapshot.domain, tuple(tuple(clique) for clique in cast("list[list[str]]", request["cliques"])))
    parts = int(request["parts"])
    if _read(snapshot, name, layout, part, parts) is None:
        mine = replace(snapshot, fragments=snapshot.fragments[part::parts])
        counts = b"".join(each.astype("<i8").tobytes() for each in mine.count(layout.cliques))
        seal = _seal(snapshot, layout, part, parts, counts)
        shelf.write(f"{_folder(name)}/{part:05d}.bin", seal + counts)


def _read(snapshot: Snapshot, name: str, layout: Layout, part: int, parts: int) -> Ints | None:
    """The counts of a part, if they are there and whole, and of these very rows and marginals."""
    shelf = snapshot.shelf
    try:
        data = shelf.store.get(f"{shelf.prefix}/{_folder(name)}/{part:05d}.bin")
    except MissingError:
        return None
    body = memoryview(data)[_DIGEST_BYTES:]
    if _seal(snapshot, layout, part, parts, body) != data[:_DIGEST_BYTES]:
        return None
    return np.frombuffer(body, "<i8").astype(np.int64, copy=False)


def _seal(snapshot: Snapshot, layout: Layout, part: int, parts: int, counts: Buffer) -> bytes:
    """A digest of the counts and of what they are of."""
    hashed = hashlib.sha256(repr((snapshot.digest(layout.cliques), part, parts)).encode())
    hashed.update(counts)
    return hashed.digest()


def _folder(name: str) -> str:
    return f"passes/{name}"
