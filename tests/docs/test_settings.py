"""The reference is what the models say."""

from typing import Annotated, Literal

import pytest
from commands import commands
from pydantic import BaseModel, ConfigDict, Field
from settings import reference

from ppsyn.flows.cli.main import main


class _Told(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Inner(_Told):
    """What is inside."""

    share: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """A part."""


class Whole(_Told):
    """A file."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    """Who."""
    inner: Inner | None = None
    kind: Literal["a"] = "a"
    way: Literal["a", "b"] = "b"
    """How: a | b."""


class Silent(BaseModel):
    """A file with a field that nobody explains."""

    mute: int


def test_rows_tell_values_bounds_defaults_and_docstrings() -> None:
    lines = reference(Whole, 3).splitlines()
    assert lines[0] == "A file."
    assert lines[4:8] == [
        "| `kind` | `a` | required | Which kind it is. |",
        "| `names` | list of text, at least 1 | required | Who. |",
        "| `inner` | [inner](#inner) | none | What is inside. |",
        "| `way` | `a`, `b` | `b` | How: a \\| b. |",
    ]
    assert lines[9] == "### inner"
    assert "| `share` | number, above 0, up to 0.5 | `0.25` | A part. |" in lines


def test_headings_may_begin_with_a_path_and_leave_out_what_is_known() -> None:
    assert "### whole.inner" in reference(Whole, 3, "whole")
    assert "inner` | see above |" in reference(Whole, 3, "whole", (Inner,))


def test_a_setting_without_a_docstring_is_refused() -> None:
    with pytest.raises(LookupError, match="'mute' of Silent"):
        reference(Silent, 3)


def test_help_is_shown_in_paragraphs_and_examples_line_by_line() -> None:
    text = commands(2)
    assert "\b" not in text
    assert [name for name in main.commands if f"## ppsyn {name}\n" not in text] == []
    assert "Examples:\n\n```text\nppsyn release adult.yaml\n" in text
