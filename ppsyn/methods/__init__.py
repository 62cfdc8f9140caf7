"""The methods that a release may name: what each asks, and what it makes of the answers."""

from collections.abc import Mapping
from types import MappingProxyType

from ppsyn.methods.aim import Aim
from ppsyn.methods.base import Method
from ppsyn.methods.independent import Independent
from ppsyn.methods.mst import Mst
from ppsyn.methods.mwem import Mwem
from ppsyn.methods.partitioned import Partitioned

METHODS: Mapping[str, Method] = MappingProxyType(
    {"ppsyn": Partitioned(), "aim": Aim(), "mst": Mst(), "mwem": Mwem(), "independent": Independent()}
)

__all__ = ["METHODS", "Method"]
