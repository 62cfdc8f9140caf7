"""Rules: small domains whose rows can all be listed, and a schema with rules and columns that follow."""

from itertools import product

import numpy as np
import pandas as pd
import yaml
from hypothesis import strategies as st

from ppsyn.arrays import Codes, Flags
from ppsyn.domain import Attribute, Domain, Zeros
from ppsyn.possible import broken
from ppsyn.schemas.table import TableSchema

POLICIES = ("repair", "null", "drop")

_SCHEMA = """
name: staff
columns:
  - {{name: age, kind: integer, lower: 0, upper: 99, step: 3}}
  - {{name: status, kind: categorical, values: [never, married, widowed], nullable: true}}
  - {{name: role, kind: categorical, values: [husband, wife, other], other: other}}
  - {{name: sex, kind: categorical, values: [female, male], nullable: true}}
  - {{name: grown, kind: boolean, outside: refuse, follows: {{by: cut, of: age, at: [18]}}}}
  - {{name: start, kind: date, lower: 2020-01-01, upper: 2020-12-31, unit: month}}
  - {{name: end, kind: date, lower: 2020-01-01, upper: 2021-12-31, unit: quarter, nullable: true}}
  - {{name: days, kind: integer, lower: 0, upper: 730, nullable: true, follows: {{by: elapsed, of: [start, end]}}}}
  - {{name: office, kind: categorical, values: [bonn, ulm, kiel], nullable: true}}
  - {{name: region, kind: categorical, values: [north, south], nullable: true,
      follows: {{by: group, of: office, groups: {{north: [kiel], south: [bonn, ulm]}}, broken: {policy}}}}}
rules:
  - {{name: children are single, when: {{grown: false}}, then: {{status: never}}, broken: {policy}}}
  - {{name: husbands, when: {{role: husband}}, then: {{sex: male, status: married}}, broken: {policy}}}
  - {{name: in time, order: [start, end], broken: {policy}}}
  - {{name: no wives in ulm, never: {{role: wife, office: ulm}}}}
"""


def ruled_schema(policy: str = "repair") -> TableSchema:
    """The schema, with one policy for rows that break rules; `never` always repairs."""
    return TableSchema.model_validate(yaml.safe_load(_SCHEMA.format(policy=policy)))


def private_rows(count: int, seed: int = 0) -> pd.DataFrame:
    """Rows that know nothing of the rules, and values outside the domains among them."""
    rng = np.random.default_rng(seed)
    days = pd.to_datetime("2019-12-01") + pd.to_timedelta(rng.integers(0, 400, count), unit="D")
    ends = pd.to_datetime("2019-12-01") + pd.to_timedelta(rng.integers(0, 800, count), unit="D")
    return pd.DataFrame(
        {
            "age": rng.integers(-2, 105, count),
            "status": rng.choice(np.array(["never", "married", "widowed", "else", None], object), count),
            "role": rng.choice(np.array(["husband", "wife", "other", "else"], object), count),
            "sex": rng.choice(np.array(["female", "male", None], object), count),
            "grown": rng.choice(np.array([True, False]), count),
            "start": days.date,
            "end": pd.Series(ends.date, dtype=object).where(rng.random(count) < 0.8, None),
            "days": rng.integers(-5, 900, count),
            "office": rng.choice(np.array(["bonn", "ulm", "kiel", None], object), count),
            "region": rng.choice(np.array(["north", "south", None], object), count),
        }
    )


@st.composite
def ruled_domains(draw: st.DrawFn) -> Domain:
    """Up to five attributes and up to four rules about two or three of them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    attributes = tuple(Attribute(f"a{place}", size) for place, size in enumerate(sizes))
    domain, zeros = Domain(attributes), list[Zeros]()
    for number in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(domain.names), min_size=2, max_size=3, unique=True))
        clique = domain.clique(names)
        cells = domain.size(clique)
        allowed = draw(st.lists(st.sampled_from([True, True, False]), min_size=cells, max_size=cells))
        zeros.append(Zeros(f"rule {number}", clique, np.array(allowed).reshape(domain.shape(clique))))
    return Domain(attributes, tuple(zeros))


def all_rows(domain: Domain) -> Codes:
    """Every row that the attributes alone allow."""
    return np.array(list(product(*(range(attribute.size) for attribute in domain.attributes))), np.int32)


def keeps(domain: Domain) -> Flags:
    """Which of all rows break no rule."""
    rows = all_rows(domain)
    codes = {name: rows[:, place] for place, name in enumerate(domain.names)}
    return ~np.logical_or.reduce([broken(codes, zeros) for zeros in domain.zeros])


def leaves_all(domain: Domain) -> bool:
    """Whether there is a row for every value."""
    rows = all_rows(domain)[keeps(domain)]
    return all(set(rows[:, place].tolist()) == set(range(a.size)) for place, a in enumerate(domain.attributes))
