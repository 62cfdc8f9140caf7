"""Machine code for the few loops that need it."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from typing_extensions import override

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Cache(FunctionCache):
    """Machine code on disk. What an earlier version left there, with types that are gone by now, counts as nothing."""

    @override
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return cast(Any, super()).load_overload(sig, target_context)
        except (AttributeError, ImportError):
            self.flush()
            return None


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile to machine code on first use, cached on disk; no reordering of sums. Other threads run meanwhile.

    The cache watches the file of the function alone: after editing a compiled
    function that another module's compiled code calls, remove `__pycache__`.
    """
    made = cast(Any, numba.njit(cache=True, nogil=True)(function))
    made._cache = _Cache(function)
    return made
