"""Documents about a release, from its published files alone: for registries, lawyers and disclosure control."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import yaml

from ppsyn.privacy.budget import epsilon_from
from ppsyn.reports.charts import SURE
from ppsyn.reports.formatting import plural
from ppsyn.reports.pages import render_page
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.columns.follows import words_of
from ppsyn.schemas.manifest import Manifest
from ppsyn.synthesis import Synthesis

RECORD, STATEMENT, DISCLOSURE = "deployment_record.yaml", "privacy-statement.html", "disclosure-control.html"
DICTIONARY, CITATION, CITATION_TEXT = "data-dictionary.csv", "CITATION.cff", "citation.txt"

TO_FILL = "To be filled in by the curator."

_PRIORS = (0.01, 0.1, 0.5)
_CELLS = (0, 1, 3, 5, 10, 20, 50, 100)
_GROUPS = (1, 2, 3, 5)


@dataclass(frozen=True, slots=True)
class People:
    """What no release says of itself: who publishes it, what for, and about which region."""

    curators: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    intended_use: str = TO_FILL
    region: str = TO_FILL
    sector: str | None = None

    @property
    def missing(self) -> list[str]:
        """What is still to be filled in, as the registry names it."""
        told = {
            "data_curators": bool(self.curators),
            "registry_authors": bool(self.authors),
            "intended_use": self.intended_use != TO_FILL,
            "data_product_region": self.region != TO_FILL,
            "data_product_sector": self.sector is not None,
        }
        return [name for name, is_told in told.items() if not is_told]


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A release as its published files tell.

    Attributes:
        digest: Of the manifest.
    """

    manifest: Manifest
    digest: str
    synthesis: Synthesis
    people: People

    @property
    def title(self) -> str:
        """What the table is called."""
        return f"{self.manifest.dataset}: differentially private synthetic table"

    @property
    def unit(self) -> str:
        """Whom the release protects."""
        person = self.manifest.privacy.person
        return "row" if person is None else f"person, by at most {plural(person.max_rows, 'row')} each"

    @property
    def is_person(self) -> bool:
        """Whether persons are protected, and not rows."""
        return self.manifest.privacy.person is not None

    @property
    def sigma(self) -> float:
        """The standard deviation of the least noise that any answer about plain counts has."""
        plain = [one for one in self.synthesis.measurements if not one.partition.axes]
        return min(one.count_sigma for one in plain or self.synthesis.measurements)


def documents(facts: Facts) -> dict[str, bytes]:
    """All documents by the names of their files.

    Privacy:
        Claim C6. They are functions of published files, and of what the command line says.
    """
    page = Page(facts)
    return {
        RECORD: registry_yaml(facts),
        STATEMENT: render_page("privacy-statement.html.j2", page),
        DISCLOSURE: render_page("disclosure-control.html.j2", page),
        DICTIONARY: dictionary_csv(facts),
        CITATION: citation_cff(facts),
        CITATION_TEXT: f"{citation(facts)}\n".encode(),
    }


# The registry


def registry_yaml(facts: Facts) -> bytes:
    """The record as the registry of deployments keeps it."""
    return yaml.safe_dump(registry_record(facts), sort_keys=False, allow_unicode=True, width=100).encode()


def registry_record(facts: Facts) -> dict[str, object]:
    """A record for the registry of differential privacy deployments, with the fields of its third tier.

    The fields are those of `schemas/deployments-schema.yaml` of OpenDP's deployments-registry-data. What a release does
    not say (why choices were made, whether the source changes) is left to its curator.
    """
    deployment = {
        "basic": _basic(facts),
        "dp_variant": _variant(facts),
        "privacy_loss": _loss(facts),
        "deployment_model": _model(facts),
        "accounting": _accounting(facts),
        "implementation": _implementation(facts),
        "administrative": {
            "sources": "Zhang, Deng and Yin, Partition-based differentially private synthetic data generation, changed "
            "where the printed algorithm is not private.",
            "notes": f"Run {facts.manifest.run}; SHA-256 of its manifest: {facts.digest}. Anyone can verify the "
            "release with `ppsyn audit`, without the private table.",
            "registry_authors": list(facts.people.authors) or [TO_FILL],
        },
    }
    return {"url_slug": _slug(facts), "status": "Draft", "tier": 3, "deployment": deployment}


def _curators(facts: Facts) -> list[str]:
    return list(facts.people.curators) or [TO_FILL]


def _slug(facts: Facts) -> str:
    """The address of the record, as the registry derives it from name, curators and year."""
    parts = (facts.title, "-".join(_curators(facts)), str(facts.manifest.published_at.year))
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


def _basic(facts: Facts) -> dict[str, object]:
    manifest, people = facts.manifest, facts.people
    columns = ", ".join(column.name for column in manifest.table.columns)
    sector = {} if people.sector is None else {"data_product_sector": people.sector}
    return {
        "name": facts.title,
        "data_curators": _curators(facts),
        "intended_use": people.intended_use,
        "data_product_type": "Synthetic data",
        "data_product_region": people.region,
        "description": f"A synthetic table of {manifest.rows:,} rows and {len(manifest.table.columns)} columns "
        f"({columns}), drawn from a graphical model that was fitted to noisy marginals of the private table.",
        "publication_date": manifest.published_at.date().isoformat(),
        **sector,
    }


def _variant(facts: Facts) -> dict[str, object]:
    names = ", ".join(column.name for column in facts.manifest.table.columns)
    return {
        "variant_name": "Zero-concentrated DP",
        "data_domain": f"Tables with the columns {names}, whose domains a public schema declares, of any number of "
        "rows. How values outside of their domain are encoded follows from the schema alone.",
        "unprotected_quantities": "None: the number of rows is protected too. The schema, the settings, the workload "
        "and the names of the columns are public inputs.",
    }


def _loss(facts: Facts) -> dict[str, object]:
    manifest, guarantee = facts.manifest, facts.manifest.together
    told: dict[str, float] = {"rho": float(guarantee.rho)}
    details = f"rho is {guarantee.rho} exactly."
    if manifest.rests_on:
        details += (
            f" It is the cost of this release together with the {len(manifest.rests_on)} earlier ones it rests on; "
            f"its own answers cost {manifest.guarantee.rho}."
        )
    if guarantee.epsilon is not None and guarantee.delta is not None:
        told |= {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
        details += (
            " Epsilon and delta follow from it by the conversion of Canonne, Kamath and Steinke (2020), rounded up."
        )
    neighbours = "Two tables are neighbours if one is the other with one row added or removed."
    if facts.is_person:
        neighbours = (
            "Two tables are neighbours if one is the other with all rows of one person added or removed. Of each "
            f"person {facts.unit.removeprefix('person, by ').removesuffix(' each')} count, chosen at random before "
            "anything is measured."
        )
        details += (
            " This holds but for an event of probability below 2^-119, that the pseudonyms of two persons are equal."
        )
    return {
        "privacy_unit": f"{'person' if facts.is_person else 'row'} of {manifest.dataset}",
        "privacy_unit_details": neighbours,
        "privacy_parameters": told,
        "privacy_parameters_details": details,
    }


def _model(facts: Facts) -> dict[str, object]:
    cap, rho = facts.manifest.account.cap, facts.manifest.guarantee.rho
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the private table and releases noisy answers.",
        "actors": "The curator, who is trusted with the private table; everybody else sees the published folder alone, "
        "and the guarantee holds against all of them, whatever else they know or compute.",
        "release_type": "Many releases" if cap > rho else "One release",
        "release_type_details": f"All releases of this dataset together may spend at most rho {float(cap):.6g}, which "
        "an account enforces before noise is drawn. It is never reset.",
        "access_type": "Non-interactive",
        "access_type_details": "The table, the noisy answers, the fitted model and the ledger are published as files.",
    }


def _accounting(facts: Facts) -> dict[str, object]:
    return {
        "post_processing": "Private-PGM fits a graphical model to the noisy answers; rows are drawn from it and "
        "refined by swaps towards measured counts. Which marginals are measured, and how their cells are merged, "
        "follows from earlier answers.",
        "composition": f"{plural(facts.manifest.account.charges, 'charge')} in sequence, each of an exact fraction of "
        "rho, which add up by the composition of zCDP (fully adaptive). Each is charged before its noise is drawn. "
        "dp-accounting recomputes the total in every audit.",
    }


def _implementation(facts: Facts) -> dict[str, object]:
    code = facts.manifest.code
    opendp = code.libraries.get("opendp", "of an unknown version")
    selects = any(spend.kind == "select" for spend in facts.synthesis.ledger.spends)
    selected = "Marginals are selected by the exponential mechanism. " if selects else ""
    return {
        "preprocessing_and_hyperparameter_tuning": "Values are encoded one by one, by the public schema. The software "
        "tunes nothing on the private table; whether the curator chose schema and settings without looking at it is "
        "for the curator to say.",
        "mechanisms": f"{selected}Marginals are measured with discrete Gaussian noise. Noise comes from OpenDP "
        f"{opendp} and is drawn on integers, so that no floating-point number is added to a count; its scale is "
        "rounded up. Answers wait for the next beat of a clock, against timing. "
        f"The mechanism is {facts.manifest.algorithm.mechanism!r} of ppsyn {code.ppsyn}.",
    }


# The data dictionary


def dictionary_csv(facts: Facts) -> bytes:
    """A row for each column: kind, type, domain, bins, nulls, and what was measured of it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADINGS)
    writer.writerows(dictionary(facts))
    return file.getvalue().encode()


HEADINGS = (
    "column", "kind", "type", "domain", "codes", "may be null", "values outside the domain", "times measured",
    "finest groups", "sd of the noise", "measured together with",
)  # fmt: skip


def dictionary(facts: Facts) -> list[list[str]]:
    """The rows of the data dictionary, a text for each heading."""
    return [_described(facts, column) for column in facts.manifest.table.columns]


def _described(facts: Facts, column: ColumnSchema) -> list[str]:
    about = [one for one in facts.synthesis.measurements if column.name in one.clique]
    alone = [one for one in about if one.clique == (column.name,)]
    finest = min(alone, key=lambda one: (-one.partition.count, one.count_sigma), default=None)
    others = dict.fromkeys(name for one in about for name in one.clique if name != column.name)
    return [
        column.name,
        column.kind,
        column.decoded_dtype,
        column.rule.removeprefix("expected ") if column.follows is None else words_of(column.follows),
        str(column.size),
        "yes" if column.nullable else "no",
        column.outside,
        str(len(about)),
        "" if finest is None else str(finest.partition.count),
        "" if finest is None else f"{finest.count_sigma:.1f}",
        "; ".join(others),
    ]


# Citation


def citation(facts: Facts) -> str:
    """One line to cite the release by."""
    manifest = facts.manifest
    who = ", ".join(facts.people.curators) or TO_FILL.removesuffix(".")
    return (
        f"{who} ({manifest.published_at.year}). {facts.title} [data set]. Release {manifest.run}, "
        f"{manifest.together.cost}. SHA-256 {facts.digest}."
    )


def citation_cff(facts: Facts) -> bytes:
    """The same in the Citation File Format."""
    manifest = facts.manifest
    document = {
        "cff-version": "1.2.0",
        "message": "If you use this table, please cite it as below.",
        "type": "dataset",
        "title": facts.title,
        "authors": [{"name": name} for name in _curators(facts)],
        "date-released": manifest.published_at.date().isoformat(),
        "version": manifest.run,
        "abstract": f"A synthetic table of {manifest.rows:,} rows that satisfies differential privacy for each "
        f"{facts.unit}: {manifest.together.cost}.",
        "identifiers": [
            {"type": "other", "value": f"sha256:{facts.digest}", "description": "The digest of the release's manifest"}
        ],
        "keywords": ["differential privacy", "synthetic data"],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100).encode()


# The pages


@dataclass(frozen=True, slots=True)
class Belief:
    """What an intruder may come to believe at most, who believed `before` that a unit is in the table."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a published count: where its answers lie, and how often an answer is zero or less."""

    true: int
    lower: int
    upper: int
    as_zero: float


@dataclass(frozen=True, slots=True)
class Group:
    """What the guarantee is for several units together."""

    size: int
    rho: Fraction
    epsilon: float | None
    guess: float


@dataclass(frozen=True, slots=True)
class Page:
    """What the templates show."""

    facts: Facts

    @property
    def beliefs(self) -> list[Belief]:
        """For beliefs before the release; empty if there is no epsilon."""
        epsilon = self.facts.manifest.together.epsilon
        return [] if epsilon is None else [Belief(prior, _up(belief(prior, epsilon))) for prior in _PRIORS]

    @property
    def cells(self) -> list[Cell]:
        """Small cells under the least noise of the release."""
        return [small_cell(true, self.facts.sigma) for true in _CELLS]

    @property
    def groups(self) -> list[Group]:
        """One unit, and several together."""
        guarantee = self.facts.manifest.together
        return [_group(size, guarantee.rho, guarantee.delta) for size in _GROUPS]

    @property
    def headings(self) -> Sequence[str]:
        """Of the data dictionary."""
        return HEADINGS

    @property
    def dictionary(self) -> list[list[str]]:
        """The rows of the data dictionary."""
        return dictionary(self.facts)


def belief(prior: float, epsilon: float) -> float:
    """What somebody may believe at most after the release: the odds grow by the factor exp(epsilon)."""
    odds = math.log(prior / (1 - prior)) + epsilon
    return 1 / (1 + math.exp(-odds))


def guess(rho: Fraction) -> float:
    """How often a guess whether a unit is in the table is right at most, where either is as likely (Pinsker)."""
    return min(1.0, 0.5 + math.sqrt(float(rho) / 8))


def small_cell(true: int, sigma: float) -> Cell:
    """Where noisy answers about a cell lie, with a probability of 95%."""
    reach = SURE * sigma
    as_zero = 0.5 * math.erfc((true - 0.5) / (sigma * math.sqrt(2)))
    return Cell(true, math.floor(true - reach), math.ceil(true + reach), as_zero)


def _group(size: int, rho: Fraction, delta: float | None) -> Group:
    joint = size * size * rho
    return Group(size, joint, None if delta is None else epsilon_from(joint, delta), _up(guess(joint)))


def _up(part: float) -> float:
    """A bound to two decimals of a percent, which stays a bound."""
    return math.ceil(part * 10_000) / 10_000
