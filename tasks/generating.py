"""Synthetic rows on Dask: any worker makes any block, and whoever asked for them has them in order."""
# Dask leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from ppsyn.errors import ClusterError
from ppsyn.rows import Recipe
from ppsyn.version import code_version
from schemas.config import RuntimeConfig
from tasks.cluster import failures_told, opened

if TYPE_CHECKING:
    from distributed import Future
    from prefect_dask.task_runners import DaskTaskRunner

_AHEAD = 2
"""Blocks under way for each thread of a worker, so that none waits for the writer and memory stays bounded."""


@contextmanager
def made(recipe: Recipe, runtime: RuntimeConfig) -> Generator[Iterator[pd.DataFrame]]:
    """The blocks of a recipe in order, made by Dask's workers.

    Raises:
        ClusterError: If there are no workers, or they do not finish.
    """
    with opened(runtime) as runner:
        yield recipe.made() if runner is None else _gathered(runner, recipe)


def _gathered(runner: "DaskTaskRunner", recipe: Recipe) -> Iterator[pd.DataFrame]:
    client, source = runner.client, code_version().source
    ahead = _AHEAD * sum(cast("Mapping[str, int]", client.nthreads()).values())
    waiting: deque[Future[Any]] = deque()
    shared = client.submit(_kept, recipe, pure=False)  # by a task, so that a worker that dies does not take it along
    for index in range(recipe.blocks):
        waiting.append(client.submit(_block, shared, index, source, pure=False))
        if len(waiting) > ahead:
            yield _made(waiting.popleft())
    while waiting:
        yield _made(waiting.popleft())


def _made(future: "Future[Any]") -> pd.DataFrame:
    with failures_told("try again"):
        return future.result()


def _kept(recipe: Recipe) -> Recipe:
    return recipe


def _block(recipe: Recipe, index: int, source: str) -> pd.DataFrame:
    """A block, on a worker; other code might make other rows of the same seed."""
    if code_version().source != source:
        raise ClusterError("Expected workers with the code of whoever asks for rows. Install the same version on all.")
    return recipe.block(index)
