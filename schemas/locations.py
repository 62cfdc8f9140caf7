"""Where things are kept: a folder, a bucket, or the memory of a process."""

import re
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import parse_qsl

from pydantic import Field, model_validator

from ppsyn.schemas.texts import check_path
from ppsyn.schemas.types import FrozenModel

_S3 = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s]*)?")

_PARAMETERS = {"endpoint", "region", "credentials"}


class Location(FrozenModel):
    """A folder of a store. It never holds a secret.

    It may be given as its address alone, where a bucket's may end in
    `?endpoint=https://s3.example.org&credentials=NAME`.
    """

    url: Annotated[str, Field(min_length=1)]
    """A path, `s3://bucket/prefix`, or `memory://name`, which lasts as long as its process."""
    endpoint: str | None = None
    """The address of an S3 server other than Amazon's."""
    region: str = "us-east-1"
    """Of a bucket."""
    credentials: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] = "AWS"
    """Where the environment holds the keys: NAME_ACCESS_KEY_ID, NAME_SECRET_ACCESS_KEY, NAME_SESSION_TOKEN."""

    @model_validator(mode="before")
    @classmethod
    def _from_address(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        url, has_query, rest = value.partition("?")
        if not (url.startswith("s3://") and has_query):
            return {"url": value}
        parameters = parse_qsl(rest, keep_blank_values=True)
        if len(dict(parameters)) != len(parameters) or not dict(parameters).keys() <= _PARAMETERS:
            raise ValueError("Expected endpoint, region and credentials after the question mark, once each.")
        return {"url": url, **dict(parameters)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_path(self.url)
        if self.is_s3 and not _S3.fullmatch(self.url):
            raise ValueError("Expected an address of the form s3://bucket/prefix.")
        if self.endpoint is not None and not re.fullmatch(r"https?://[^\s@]+", self.endpoint):
            raise ValueError("Expected endpoint to be an http or https address without a user.")
        if self.endpoint is not None and not self.is_s3:
            raise ValueError("Expected an endpoint with an s3:// address only.")
        if "://" in self.url and not (self.is_s3 or self.is_memory):
            raise ValueError("Expected an address to be a path, s3:// or memory://.")
        return self

    @property
    def is_s3(self) -> bool:
        """Whether it is a bucket."""
        return self.url.startswith("s3://")

    @property
    def is_memory(self) -> bool:
        """Whether it ends with its process."""
        return self.url.startswith("memory://")

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine."""
        return not (self.is_s3 or self.is_memory)

    def child(self, name: str) -> Self:
        """A location inside this one."""
        return self.model_copy(update={"url": f"{self.url.rstrip('/')}/{name}"})

    def resolved_against(self, folder: Path) -> Self:
        """The same location, with a relative path taken from `folder`."""
        return self.model_copy(update={"url": str((folder / self.url).resolve())}) if self.is_local else self
