"""Synthetic rows on Dask: any worker makes any part of the table, and whoever asked has the parts in order."""
# Dask leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ppsyn.code_version import code_version
from ppsyn.errors import InvariantError
from ppsyn.generation.plan import Recipe
from ppsyn.releases.parts import kept, make_part, part_rows
from ppsyn.schemas.config import RuntimeConfig
from ppsyn.tasks.cluster import failures_told, opened

if TYPE_CHECKING:
    from distributed import Future

_AHEAD = 2
"""Parts under way for each thread of a worker: none waits for the writer, and memory stays bounded."""


def made_parts(recipe: Recipe, group_rows: int, runtime: RuntimeConfig) -> Iterator[tuple[int, bytes]]:
    """The parts of a table in order, with how many rows each has, made by Dask's workers.

    Raises:
        ClusterError: If there are no workers, or they do not finish.
    """
    with opened(runtime) as runner:
        if runner is None:
            raise InvariantError("Expected workers to be asked for.")
        client, source = runner.client, code_version().source
        ahead = _AHEAD * sum(cast("Mapping[str, int]", client.nthreads()).values())
        shared = client.submit(kept, recipe, pure=False)  # by a task: a worker that dies does not take it along
        waiting: deque[tuple[int, Future[Any]]] = deque()
        for number, rows in enumerate(part_rows(recipe)):
            waiting.append((rows, client.submit(make_part, shared, number, group_rows, source, pure=False)))
            if len(waiting) > ahead:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _finished(rows: int, future: "Future[Any]") -> tuple[int, bytes]:
    with failures_told("try again"):
        return rows, future.result()
