"""A release file: all settings of a release, in one YAML document."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self, cast

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from ppsyn.errors import translated
from ppsyn.schemas.config import AlgorithmConfig, Budget, PrivacyConfig, RuntimeConfig
from ppsyn.schemas.files import SchemaFileError, parse_yaml, read_yaml, rule_of
from ppsyn.schemas.limits import BATCH_ROWS, ROWS
from ppsyn.schemas.locations import Location
from ppsyn.schemas.texts import check_path
from ppsyn.schemas.types import FrozenModel, Name, Run, Text

BatchRows = Annotated[int, Field(ge=1, le=BATCH_ROWS)]

_PASSWORD = re.compile(r"://[^/@:]*:(?P<password>.*)@|[?&]\w*(password|passwd|pwd)=(?P<value>[^&]*)", re.IGNORECASE)
_PARTS = frozenset("YymdjbBHIMSfpz")
"""Of a form of dates: what does not depend on the machine. Names of months are English."""

_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


class _FileSource(FrozenModel):
    """Files of one format: one file, or a folder with all the files of that format below it."""

    path: Location
    """A file or a folder, local or s3://."""
    batch_rows: BatchRows = 131_072
    """Rows read at a time."""


class CsvSource(_FileSource):
    """Comma-separated text, plain or compressed by gzip (`.csv.gz`), with a header in every file. A line is a row."""

    kind: Literal["csv"]
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    """What stands between two values."""
    nulls: tuple[str, ...] = ("",)
    """What stands for a missing value; a quoted one is the text itself."""
    encoding: Literal["utf-8", "latin-1", "cp1252"] = "utf-8"
    """How characters are written; a byte order mark is passed over."""
    newlines_in_values: bool = False
    """Whether quoted values hold newlines. A row is then no line any more, and a stray quote can swallow others."""
    decimal: Literal[".", ","] = "."
    """What stands before the fraction of a number."""
    thousands: Literal[".", ",", " ", "'"] | None = None
    """What stands between groups of three digits, in all of a number or nowhere; any space will do for a space."""
    dates: str | None = None
    """How dates are written, as `%d.%m.%Y`; without it, as 2020-12-31. Any other way is a value outside the domain."""
    datetimes: str | None = None
    """How moments are written, as `%d.%m.%Y %H:%M`; without it, as 2020-12-31T23:59:00."""
    trues: tuple[Text, ...] = ()
    """Words for true, beside true and 1; letter by letter."""
    falses: tuple[Text, ...] = ()
    """Words for false, beside false and 0."""

    @model_validator(mode="after")
    def _check_writing(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError("Expected thousands to be another mark than decimal. Change one of them.")
        if set(self.trues) & set(self.falses):
            raise ValueError("Expected no word in both trues and falses. Remove it from one.")
        for name, form in (("dates", self.dates), ("datetimes", self.datetimes)):
            if form is not None:
                _check_form(name, form)
        return self


class ParquetSource(_FileSource):
    """Parquet files."""

    kind: Literal["parquet"]


def _check_form(name: str, form: str) -> None:
    """Refuse a form of dates that leaves the day open, or that means one thing here and another there."""
    parts = set(re.findall(r"%(.)", form.replace("%%", "")))
    if not parts <= _PARTS:
        listed = " ".join(f"%{part}" for part in sorted(_PARTS))
        raise ValueError(f"Expected {name} to be made of {listed}; got %{min(parts - _PARTS)}.")
    if not parts & {"Y", "y"} or not ("j" in parts or ("d" in parts and parts & {"m", "b", "B"})):
        raise ValueError(f"Expected {name} to tell year, month and day, such as %d.%m.%Y; got {form!r}.")
    rule = f"Expected {name} to be a form of dates, such as %d.%m.%Y; got {form!r}."
    with translated((ValueError, re.error), to=ValueError, message=rule):
        datetime.strptime(datetime(2001, 2, 3, tzinfo=UTC).strftime(form), form)


class SqlSource(FrozenModel):
    """A query against a PostgreSQL or SQLite database."""

    kind: Literal["sql"]
    url: str
    """postgresql://user:${PASSWORD}@host/name or sqlite:///path; the environment holds what ${NAME} stands for."""
    query: Annotated[str, Field(min_length=1)]
    """What is asked; its answer is the table. It runs in one read-only transaction."""
    batch_rows: BatchRows = 131_072
    """Rows fetched at a time."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.url.startswith(("postgresql://", "sqlite:///")):
            raise ValueError("Expected url to start with postgresql:// or sqlite:///.")
        if self.url.startswith("postgresql://") and not all(
            _VARIABLE.fullmatch(found["password"] or found["value"] or "") for found in _PASSWORD.finditer(self.url)
        ):
            raise ValueError("Expected no password in url: write ${NAME} and put it into the environment.")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that the environment must hold."""
        return tuple(_VARIABLE.findall(self.url))

    def resolved_against(self, folder: Path) -> Self:
        """The same source, with a relative path of a SQLite file taken from `folder`."""
        path = self.url.removeprefix("sqlite:///")
        return self if path == self.url else self.model_copy(update={"url": f"sqlite:///{(folder / path).resolve()}"})


Source = Annotated[CsvSource | ParquetSource | SqlSource, Field(discriminator="kind")]


class StoresConfig(FrozenModel):
    """Where a release keeps what it needs and what it makes."""

    root: Location
    """Accounts and runs, and all the rest by default."""
    private: Location | None = None
    """Encoded fragments of the private table, removed when the run ends; with credentials of its own, best."""
    releases: Location | None = None
    """What is published."""


class AccountConfig(FrozenModel):
    """The budget of a dataset, across its releases."""

    cap: Budget | None = None
    """What all releases of the dataset may spend together; needed when the account is opened."""


class GenerationConfig(FrozenModel):
    """The synthetic table."""

    rows: Annotated[int, Field(ge=1, le=ROWS)] | None = None
    """How many; without it, the noisy total."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """For drawing rows from the fitted model; it has no part in the noise."""


class LearnFrom(FrozenModel):
    """The earlier releases that a release learns from, at no further cost. Given as a word or a list, as `releases`."""

    releases: Literal["all", "none"] | tuple[Run, ...] = "none"
    """All published releases of the same account, or none, or a list of runs."""
    last: Annotated[int, Field(ge=1)] | None = None
    """So many of the published releases, the latest."""
    unusable: Literal["refuse", "leave out"] = "refuse"
    """What becomes of a release that learns from one which is missing, changed, or of another format."""

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: object) -> object:
        is_choice = isinstance(value, str | list | tuple)
        return {"releases": cast("object", value)} if is_choice else value

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Self:
        if self.last is not None and self.releases != "none":
            raise ValueError("give releases or last, not both")
        return self

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to learn from."""
        return self.last is not None or self.releases != "none"


class ReleaseConfig(FrozenModel):
    """A release. Paths are seen from the file that holds it."""

    dataset: Name
    """Names the account, so that all releases of the same people share one."""
    source: Source
    """The private table: CSV or Parquet files, or a query."""
    table: Annotated[str, Field(alias="schema"), AfterValidator(check_path)]
    """The YAML file of the public schema."""
    privacy: PrivacyConfig
    purpose: Name | None = None
    """What the release is for: one of the purposes of the account's policy, if that names any."""
    account: AccountConfig = AccountConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    generation: GenerationConfig = GenerationConfig()
    learn_from: LearnFrom = LearnFrom()
    stores: StoresConfig
    runtime: RuntimeConfig = RuntimeConfig()

    @model_validator(mode="after")
    def _shared_stores(self) -> Self:
        if self.runtime.is_spread and (
            self.stores.root.is_memory or (self.stores.private or self.stores.root).is_memory
        ):
            raise ValueError("Expected stores that Dask workers reach, got stores in memory. Give folders or buckets.")
        return self

    def resolved_against(self, folder: Path) -> Self:
        """The same release, with relative paths taken from `folder`."""
        source, stores = self.source, self.stores
        moved = (
            source.resolved_against(folder)
            if isinstance(source, SqlSource)
            else source.model_copy(update={"path": source.path.resolved_against(folder)})
        )
        locations = {name: location.resolved_against(folder) for name, location in stores if location is not None}
        table = str((folder / self.table).resolve())
        return self.model_copy(update={"source": moved, "table": table, "stores": stores.model_copy(update=locations)})


def load_release(path: Path | str, settings: Sequence[str] = ()) -> ReleaseConfig:
    """Read a release file, with settings of the form `field.field=value` in the place of what it says.

    Relative paths are seen from the folder of the file.

    Raises:
        SchemaFileError: With one sentence per fault, which names the field.
    """
    path = Path(path)
    document = read_yaml(path)
    if not isinstance(document, dict):
        raise SchemaFileError(path, ["Expected fields and their values."])
    for setting in settings:
        _apply(cast("dict[str, object]", document), setting, path)
    try:
        return ReleaseConfig.model_validate(document).resolved_against(path.resolve().parent)
    except ValidationError as error:
        problems = [
            f"{_field(fault['loc'])}: {rule_of(fault, is_secret=fault['loc'][:1] in _ADDRESSES)}"
            for fault in error.errors()
        ]
    raise SchemaFileError(path, problems)


def _apply(document: dict[str, object], setting: str, path: Path) -> None:
    name, is_given, text = setting.partition("=")
    *above, last = name.strip().split(".")
    if not is_given or not all((*above, last)):
        listed = " ".join(name.split()[:1])
        raise SchemaFileError(path, [f"Expected a setting of the form field.field=value, got {listed!r}."])
    for step in above:
        inner = document.setdefault(step, {})
        if not isinstance(inner, dict):
            raise SchemaFileError(path, [f"Expected {name!r} to lead through fields; {step!r} holds a plain value."])
        document = cast("dict[str, object]", inner)
    try:
        document[last] = parse_yaml(text)
    except yaml.YAMLError:
        problem = f"Expected the value of {name!r} to be YAML."
    else:
        return
    raise SchemaFileError(path, [problem])


def _field(location: tuple[int | str, ...]) -> str:
    """The field at fault; the tag of a kind of source is not a field."""
    steps = [step for at, step in enumerate(location) if not (at == 1 and location[0] == "source" and step in _KINDS)]
    return f"field {'.'.join(map(str, steps))!r}" if steps else "release"


_KINDS = ("csv", "parquet", "sql")
_ADDRESSES = (("source",), ("stores",), ("runtime",))
"""Parts of a file that a password may have been written into by mistake."""
