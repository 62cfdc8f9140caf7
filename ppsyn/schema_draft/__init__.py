"""Drafts of schemas: what the names and types of a table say, and what a person has to say."""

from ppsyn.schema_draft.draft import draft_schema

__all__ = ["draft_schema"]
