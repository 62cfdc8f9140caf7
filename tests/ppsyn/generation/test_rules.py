"""No row that is made breaks a rule: drawn, swapped, decoded, and whatever the model has forgotten."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.ruled import leaves_all, ruled_domains, ruled_schema
from support.small_models import joint_of, marginal_of, rng_of

from ppsyn.arrays import Codes
from ppsyn.data.encoding import encode, rows_broken
from ppsyn.domain import Attribute, Domain, Zeros, domain_of
from ppsyn.generation.decoding import decode
from ppsyn.generation.refinement import Aim
from ppsyn.generation.sampling import generate, make_block, prepare
from ppsyn.model.compression import CompressedAttribute, Compression
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import ZERO, GraphicalModel, calibrate, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.possible import broken, nearest
from ppsyn.privacy.partition import Partition, finest
from ppsyn.schemas.table import TableSchema

EFFORT = Effort(iterations=50, tolerance=1e-5)


def noisy(domain: Domain, seed: int) -> list[Measurement]:
    """Answers that know nothing of rules: of all single attributes and of some pairs, loose ones among them."""
    rng, found = rng_of(seed), list[Measurement]()
    pairs = [(a, b) for at, a in enumerate(domain.names) for b in domain.names[at + 1 :]]
    for clique in [*((name,) for name in domain.names), *pairs]:
        if len(clique) == 1 or rng.random() < 0.5:
            counts = rng.integers(-20, 100, domain.size(clique)).astype(np.int64)
            is_off_tree = len(clique) == 2 and bool(rng.random() < 0.3)
            found.append(Measurement(clique, finest(counts.size), counts, 5.0, is_off_tree))
    return found


def is_kept(codes: dict[str, Codes], domain: Domain) -> bool:
    return not any(broken(codes, zeros).any() for zeros in domain.zeros)


def aims_of(model: GraphicalModel, seed: int) -> tuple[Aim, ...]:
    """Aims that no table can meet without breaking rules."""
    rng, names = rng_of(seed), model.domain.names
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    return tuple(Aim(pair, rng.dirichlet(np.ones(model.domain.size(pair)))) for pair in pairs)


@given(domain=ruled_domains(), seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=60)
def test_no_row_of_a_model_breaks_a_rule_whatever_was_measured(domain: Domain, seed: int) -> None:
    assume(leaves_all(domain))
    model = fit(noisy(domain, seed), uniform_model(Compression(domain)), EFFORT).model
    for aims in ((), aims_of(model, seed)):
        plan = prepare(model.steps(), model.compression.generation_domain, aims)
        assert is_kept(make_block(plan, 0, 300, seed), domain)
    for zeros in domain.zeros:
        assert not model.project(zeros.clique)[~zeros.allowed].any()


@given(domain=ruled_domains(), seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_a_model_with_rules_is_the_distribution_given_that_none_is_broken(domain: Domain, seed: int) -> None:
    assume(leaves_all(domain))
    potentials = {
        zeros.clique: rng_of(seed).normal(size=domain.shape(zeros.clique))
        for zeros in domain.zeros
        if not any(set(zeros.clique) < set(other.clique) for other in domain.zeros)
    }
    masked = {clique: np.where(domain.allowed(clique), table, -1e4) for clique, table in potentials.items()}
    joint = joint_of(domain, masked, 100.0)
    model = calibrate(Compression(domain), potentials, 100.0, 1.0)
    for clique in [*((name,) for name in domain.names), domain.names]:
        np.testing.assert_allclose(model.project(clique), marginal_of(domain, joint, clique), rtol=1e-6, atol=1e-9)


PAIR = Zeros("pair", ("a", "b"), np.array([[True, False, True], [True, True, False]]))
CHAIN = Zeros("chain", ("b", "c"), np.array([[True, True], [True, False], [False, True]]))
DOMAIN = Domain((Attribute("a", 2), Attribute("b", 3), Attribute("c", 2), Attribute("d", 4)), (PAIR, CHAIN))


def test_what_the_fit_has_forgotten_takes_a_cell_that_breaks_no_rule() -> None:
    # Potentials so far apart that whole rows of a conditional table underflow.
    potentials = {("a", "b"): np.array([[0.0, 0.0, -1e5], [-1e5, -1e5, 0.0]]), ("b", "c"): np.zeros((3, 2))}
    model = calibrate(Compression(DOMAIN), potentials, 1.0, 1.0)
    for step in model.steps():
        if step.given:
            assert (step.weights.sum(axis=1) > 0).any()
    forced = [replace(step, weights=np.ones_like(step.weights)) if not step.given else step for step in model.steps()]
    made = generate(forced, DOMAIN, 5000, 1)
    assert not (broken(made, CHAIN) & ~broken(made, PAIR)).any()


def test_values_that_a_rule_tells_apart_are_not_taken_as_one() -> None:
    groups = Partition(np.array([0, 0, 1], np.int32), 2)
    with pytest.raises(Exception, match="the rule 'pair' tells apart"):
        Compression(DOMAIN, {"b": CompressedAttribute(groups, np.array([0.5, 0.5, 1.0]))})


def test_the_potential_of_a_zero_stays_what_it_is_from_fit_to_fit() -> None:
    model = uniform_model(Compression(DOMAIN))
    for seed in range(3):
        model = fit([m for m in noisy(DOMAIN, seed) if not m.is_off_tree and len(m.clique) == 1], model, EFFORT).model
        assert {model.potentials[zeros.clique].min() for zeros in DOMAIN.zeros} == {ZERO}


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=25)
def test_values_come_in_order_and_what_follows_is_exact(seed: int) -> None:
    schema = ruled_schema()
    rng = rng_of(seed)
    codes = {column.name: rng.integers(0, column.size, 400).astype(np.int32) for column in schema.attributes}
    made = decode(nearest(codes, domain_of(schema)), schema, rng)
    assert not any(found.any() for _, found in rows_broken(made, schema))
    kept = nearest(codes, domain_of(schema))
    assert all((encode(made, schema).columns[name] == kept[name]).all() for name in kept)


TIGHT = """
name: tight
columns:
  - {name: a, kind: integer, lower: 0, upper: 999, bins: 1}
  - {name: b, kind: integer, lower: 999, upper: 1000, bins: 1}
  - {name: c, kind: integer, lower: 0, upper: 1001, bins: 1, nullable: true}
  - {name: x, kind: datetime, lower: "2020-01-01", upper: "2020-01-01T00:00:03", bins: 1, dtype: "datetime64[ms]"}
  - {name: y, kind: datetime, lower: "2020-01-01", upper: "2020-01-01T00:00:03", bins: 1, dtype: "datetime64[ms]"}
  - {name: u, kind: real, lower: 0, upper: 1, bins: 1, dtype: float32}
  - {name: v, kind: real, lower: 0, upper: 0.001, bins: 1, dtype: float32}
rules:
  - {name: far apart, order: [a, b, c], strict: true}
  - {name: moments, order: [x, y], strict: true}
  - {name: reals, order: [u, v]}
"""


def test_an_order_that_chance_hardly_meets_is_kept_too() -> None:
    schema = TableSchema.model_validate(yaml.safe_load(TIGHT))
    codes = {column.name: np.zeros(20_000, np.int32) for column in schema.attributes}
    codes["c"][::7] = 1
    made = decode(codes, schema, rng_of(0))
    assert {name: int(found.sum()) for name, found in rows_broken(made, schema)} == {
        "far apart": 0, "moments": 0, "reals": 0,
    }  # fmt: skip
    assert set(made["c"].dropna()) <= {1000, 1001}
