"""The form of a record in the registry of differential privacy deployments, as a JSON schema.

Written after the list of fields of `schemas/deployments-schema.yaml` in github.com/opendp/deployments-registry-data
(MIT), as of 15 July 2026 (commit 3e9c812): the names of the fields, which are required, their types and the words they
allow.
"""

from typing import Any

TEXT = {"type": "string"}
NAMES = {"type": "array", "items": TEXT, "minItems": 1}


def one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def fields(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


BASIC = fields(
    (
        "name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
        "publication_date",
    ),
    name=TEXT,
    data_curators=NAMES,
    intended_use=TEXT,
    data_product_type=one_of(
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
    ),
    data_product_region=TEXT,
    description=TEXT,
    publication_date={"type": "string", "format": "date"},
    data_product_sector=one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
)  # fmt: skip

SCHEMA = fields(
    ("url_slug", "status", "tier", "deployment"),
    url_slug=TEXT,
    status=one_of(
        "Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)",
        "Approved (Pending)",
    ),
    tier={"type": "integer", "enum": [1, 2, 3]},
    deployment=fields(
        ("basic",),
        basic=BASIC,
        dp_variant=fields(
            variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
            data_domain=TEXT,
            unprotected_quantities=TEXT,
        ),
        privacy_loss=fields(
            privacy_unit=TEXT,
            privacy_unit_details=TEXT,
            privacy_parameters=fields(
                epsilon={"type": "number"}, delta={"type": ["number", "string"]}, rho={"type": "number"}
            ),
            privacy_parameters_details={},
        ),
        deployment_model=fields(
            model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            model_name_details=TEXT,
            actors=TEXT,
            release_type=one_of("One release", "Many releases"),
            release_type_details=TEXT,
            data_source_type=one_of("Static", "Dynamic"),
            data_source_type_details={},
            access_type=one_of("Interactive", "Non-interactive"),
            access_type_details=TEXT,
        ),
        accounting=fields(post_processing=TEXT, composition=TEXT),
        implementation=fields(preprocessing_and_hyperparameter_tuning=TEXT, mechanisms=TEXT, justification=TEXT),
        administrative=fields(("registry_authors",), sources=TEXT, notes=TEXT, registry_authors=NAMES),
    ),
)  # fmt: skip
