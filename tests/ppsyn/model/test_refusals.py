import numpy as np
import pytest

from ppsyn.domain import Attribute, Domain
from ppsyn.errors import InvariantError
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import GraphicalModel, calibrate
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest

DOMAIN = Domain((Attribute("a", 2), Attribute("b", 3), Attribute("c", 2)))


def test_potentials_that_contradict_each_other_beyond_floating_point_are_refused() -> None:
    left, right = np.zeros((2, 3)), np.zeros((3, 2))
    left[:, 1:], right[0] = -1200.0, -1200.0
    with pytest.raises(InvariantError, match="mass"):
        calibrate(Compression(DOMAIN), {("a", "b"): left, ("b", "c"): right}, 8.0, 0.0)


def test_potentials_on_a_clique_within_another_are_refused() -> None:
    with pytest.raises(InvariantError, match="contain"):
        calibrate(Compression(DOMAIN), {("a", "b"): np.zeros((2, 3)), ("a",): np.zeros(2)}, 8.0, 0.0)


def test_a_warm_start_of_unmeasured_cliques_is_refused() -> None:
    warm = calibrate(Compression(DOMAIN), {("a", "b"): np.zeros((2, 3))}, 8.0, 0.0)
    measured = Measurement(("c",), finest(2), np.array([5, 3]), 1.0)
    with pytest.raises(InvariantError, match="warm"):
        fit([measured], warm, Effort(5, 1e-4))


def test_measurements_listed_in_another_order_are_brought_into_the_domain_s() -> None:
    counts = np.arange(6).reshape(3, 2)
    groups = np.array([0, 0, 1, 1, 2, 2], np.int32)
    whole = exchange.mbi.LinearMeasurement(counts.ravel(), ("b", "a"), 2.0)
    grouped = exchange.mbi.LinearMeasurement(np.array([1, 5, 9]), ("b", "a"), 2.0, query=exchange.GroupQuery(groups, 3))
    ours, merged = exchange.measurements_from_mbi(DOMAIN, [whole, grouped])
    assert ours.clique == merged.clique == ("a", "b")
    assert np.array_equal(ours.noisy_counts.reshape(2, 3), counts.T)
    assert merged.partition == Partition(np.array([0, 1, 2, 0, 1, 2], np.int32), 3)
    assert np.array_equal(merged.partition.sum_counts(ours.noisy_counts), [1, 5, 9])


def test_a_warm_start_that_underflows_in_the_new_tree_is_left_behind() -> None:
    steep = np.zeros((2, 3))
    steep[:, 1:] = -1200.0
    warm = calibrate(Compression(DOMAIN), {("a", "b"): steep, ("c",): np.zeros(2)}, 60.0, 1.0)
    against = GraphicalModel(
        DOMAIN, {**warm.potentials, ("b", "c"): -steep.T}, 60.0, 1.0, warm.tree, warm.beliefs, warm.compression
    )
    measurements = [
        Measurement(("a", "b"), finest(6), np.full(6, 10), 1.0),
        Measurement(("b", "c"), finest(6), np.full(6, 10), 1.0),
    ]
    found = fit(measurements, against, Effort(50, 1e-6))
    assert np.allclose(found.model.project(("a", "b")), 10, atol=1e-3)
