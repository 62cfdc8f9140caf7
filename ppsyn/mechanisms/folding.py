"""From single attributes to the smaller domain that the model lives on."""

import math
from dataclasses import replace

import numpy as np

from ppsyn.domain import Attribute
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.grid import partition_in_order
from ppsyn.model.fold import Fold, equal_mass, fold_values
from ppsyn.model.graphical_model import unfitted
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition

_WORTHWHILE = 1.5
"""An attribute is folded if it has this many times more values than it would have groups."""


def folded(state: State, most: int) -> State:
    """Fold large attributes into at most `most` groups each and restate what was measured of them.

    The model knows all that the answers about single attributes said. What it
    says of the groups takes their place, with the noise of the answer it rests on most.
    """
    fold = Fold(
        state.plan.domain,
        {a.name: fold_values(state.model.project((a.name,)), _groups(state, a, most)) for a in _large(state, most)},
    )
    kept = tuple(m for m in state.evidence if m.clique[0] not in fold.folded)
    restated = tuple(_restated(state, name, fold) for name in fold.folded)
    return replace(state, model=unfitted(fold), evidence=(*kept, *restated))


def _large(state: State, most: int) -> list[Attribute]:
    """The attributes to fold; of one whose answers were all lost nothing is known to fold it by."""
    known = {m.clique[0] for m in state.evidence}
    return [a for a in state.plan.domain.attributes if a.size > _WORTHWHILE * most and a.name in known]


def _groups(state: State, attribute: Attribute, most: int) -> Partition:
    expected = state.model.project((attribute.name,))
    return partition_in_order(expected, (attribute.is_ordered,), lambda arranged: (equal_mass(arranged, most),))[0]


def _restated(state: State, name: str, fold: Fold) -> Measurement:
    groups = fold.folded[name].groups
    sums = groups.sum_expected(state.model.project((name,)))
    finest = max((m for m in state.evidence if m.clique == (name,)), key=lambda m: m.partition.count)
    sigma = finest.sigma * math.sqrt(max(1.0, finest.partition.count / groups.count))
    return Measurement((name,), groups, np.rint(sums).astype(np.int64), sigma)
