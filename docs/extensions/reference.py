"""The generated parts of the reference, by the names that pages use."""

from collections.abc import Callable, Mapping
from functools import partial

import commands
import settings

from ppsyn.schemas.benchmark import BenchmarkSettings
from ppsyn.schemas.config import AlgorithmConfig, PrivacyConfig
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.policy import PolicyFile
from ppsyn.schemas.release import GenerationConfig, ReleaseConfig
from ppsyn.schemas.table import TableSchema

_SHOWN = (TableSchema, PrivacyConfig, AlgorithmConfig, GenerationConfig)

REFERENCES: Mapping[str, Callable[[], str]] = {
    "release file": partial(settings.reference, ReleaseConfig, 3),
    "schema": partial(settings.reference, TableSchema, 3),
    "policy": partial(settings.reference, PolicyFile, 3, "policy"),
    "benchmark": partial(settings.reference, BenchmarkSettings, 3),
    "manifest": partial(settings.reference, Manifest, 3, "manifest", _SHOWN),
    "commands": partial(commands.commands, 2),
    "exit codes": commands.exit_codes,
}
