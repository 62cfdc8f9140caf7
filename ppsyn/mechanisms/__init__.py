"""The methods that a release may name: what each asks, and what it makes of the answers."""

from collections.abc import Mapping
from types import MappingProxyType

from ppsyn.mechanisms.aim import Aim
from ppsyn.mechanisms.base import Method
from ppsyn.mechanisms.independent import Independent
from ppsyn.mechanisms.mst import Mst
from ppsyn.mechanisms.mwem import Mwem
from ppsyn.mechanisms.ppsyn import Partitioned

METHODS: Mapping[str, Method] = MappingProxyType(
    {"ppsyn": Partitioned(), "aim": Aim(), "mst": Mst(), "mwem": Mwem(), "independent": Independent()}
)

__all__ = ["METHODS", "Method"]
