"""The mechanisms that a release may name: what each asks, and what it makes of the answers."""

from collections.abc import Mapping
from types import MappingProxyType

from ppsyn.mechanisms.aim import Aim
from ppsyn.mechanisms.base import Mechanism
from ppsyn.mechanisms.independent import Independent
from ppsyn.mechanisms.mst import Mst
from ppsyn.mechanisms.mwem import Mwem
from ppsyn.mechanisms.ppsyn import PPSyn

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {"ppsyn": PPSyn(), "aim": Aim(), "mst": Mst(), "mwem": Mwem(), "independent": Independent()}
)

__all__ = ["MECHANISMS", "Mechanism"]
