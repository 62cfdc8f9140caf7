"""What can fit a model, by name."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ppsyn.extras import require
from ppsyn.model.estimation import Effort, Fit, fit
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.measurement import Measurement


class Engine(Protocol):
    """Fits a model to measurements, starting from `warm`. Deterministic."""

    def __call__(self, measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
        """Return the fitted model and how the fit went."""
        ...


def fit_with_mbi(measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
    """Fit with mbi's mirror descent: the reference. It compiles a program for every new set of cliques."""
    require("mbi", "The estimator 'mbi'")
    from ppsyn.model import mbi_adapter as exchange  # noqa: PLC0415  # JAX takes seconds to import; only this engine needs it

    return exchange.fit(measurements, warm, effort)


ENGINES: Mapping[str, Engine] = {"tree": fit, "mbi": fit_with_mbi}
