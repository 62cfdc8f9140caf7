"""A draft as a YAML file."""

import re
from collections.abc import Sequence
from typing import cast

import yaml
from typing_extensions import override

from ppsyn.schema_draft.from_types import Drafted
from ppsyn.schemas.files import Unfilled

_WIDTH = 110
_LIKE_A_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9eE]*")


class _Dumper(yaml.SafeDumper):
    """Puts quotes around all texts that look like numbers, not just around those that YAML takes for some."""

    @override
    def represent_str(self, data: str) -> yaml.ScalarNode:
        node = super().represent_str(data)
        if _LIKE_A_NUMBER.fullmatch(data):
            node.style = "'"
        return node


_Dumper.add_representer(str, _Dumper.represent_str)


def page(title: str, origin: str, drafted: Sequence[Drafted]) -> str:
    """The file: what it is made from, what is to be done, and the columns."""
    columns = [line for one in drafted if one.fields is not None for line in _column(one)]
    left_out = [one for one in drafted if one.fields is None]
    lines = [
        f"# A draft of a schema, from {origin}.",
        "# Replace every !fill by what is publicly known: a code book, a law, common sense. Never look at the",
        "# rows: bounds or values read off the table leak, and no noise covers that.",
        "# Ids, names and free text belong into `excluded`. Few, wide bins make better synthetic data.",
        f"name: {_slug(title)}",
        *(["columns:", *columns] if columns else ["columns: []"]),
        *(["excluded:"] if left_out else []),
        *(f"  - {_written(one.name)}  # {_plain(one.note)}" for one in left_out),
    ]
    return "\n".join(lines) + "\n"


def _column(one: Drafted) -> list[str]:
    note = f"  # {_plain(one.note)}" if one.note else ""
    fields = one.fields or {}
    return [
        f"  - name: {_written(one.name)}{note}",
        *(f"    {name}:{_value(value)}" for name, value in fields.items()),
    ]


def _value(value: object) -> str:
    if isinstance(value, Unfilled):
        return f" !fill {value.hint}"
    if not isinstance(value, list):
        return f" {_written(value)}"
    lines = _dumped(cast("list[object]", value), _WIDTH).splitlines()
    return f" {lines[0]}" if len(lines) == 1 else "".join(f"\n      {line.strip()}" for line in lines)


def _written(value: object) -> str:
    """A plain value as YAML has it, in quotes where it would be read as something else."""
    return _dumped([value], 10**9)[1:-1]


def _dumped(value: object, width: int) -> str:
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=width).strip()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower())) or "table"
