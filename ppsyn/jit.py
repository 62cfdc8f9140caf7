"""Machine code for the few loops that need it."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile to machine code on first use, cached on disk; no reordering of sums. Other threads run meanwhile.

    The cache watches the file of the function alone: after editing a compiled
    function that another module's compiled code calls, remove `__pycache__`.
    """
    return cast("Callable[_P, _R]", numba.njit(cache=True, nogil=True)(function))
