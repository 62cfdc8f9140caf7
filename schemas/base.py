"""The base of every public model."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Checked once, never changed, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
