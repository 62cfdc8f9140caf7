"""Render every setting as Markdown from the pydantic models: names, values, defaults and docstrings."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

Schema: TypeAlias = Mapping[str, Any]
"""A JSON Schema written by pydantic."""

_KIND = "kind"
_PLAIN = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "null": "`null`",
    "object": "mapping",
}
_FORMATS = {"date": "date", "date-time": "moment"}
_BOUNDS = (
    ("minimum", "from {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "up to {}"),
    ("exclusiveMaximum", "below {}"),
    ("minItems", "at least {}"),
    ("pattern", "of the form `{}`"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping in a file: its path and the schema of its model."""

    title: str
    schema: Schema


def reference(model: type[BaseModel], level: int, path: str = "", known: Collection[type[BaseModel]] = ()) -> str:
    """Render a section for the model and each nested model.

    Args:
        model: The model of a whole file.
        level: The level of the headings.
        path: The prefix of the headings.
        known: Nested models that the page already shows.
    """
    whole = model.model_json_schema()
    parts = {"": Part(path, whole)}
    _collect("", whole, parts, {other.__name__ for other in known})
    return "\n".join(line for part in parts.values() for line in _section(part, parts, whole, level))


def _collect(key: str, whole: Schema, parts: dict[str, Part], known: Collection[str]) -> None:
    """Add the nested models of the one with this key, each once, right after the first that uses it."""
    for name, field in parts[key].schema["properties"].items():
        for inner in dict.fromkeys(_references(field)):
            if inner not in parts and inner not in known:
                path = f"{parts[key].title}.{name}".strip(".")
                parts[inner] = Part(_title(path, inner, whole), whole["$defs"][inner])
                _collect(inner, whole, parts, known)


def _title(path: str, key: str, whole: Schema) -> str:
    schema = whole["$defs"][key]
    if _KIND in schema["properties"]:
        return f"{path}, {_KIND}: {schema['properties'][_KIND]['const']}"
    uses = sum(list(_references(other)).count(key) for other in (whole["properties"], *whole["$defs"].values()))
    return schema["title"].lower() if uses > 1 else path


def _references(node: object) -> Iterator[str]:
    """Yield the models that a part of a schema refers to."""
    if isinstance(node, Mapping):
        for key, value in cast("Schema", node).items():
            if key == "$ref":
                yield _key(value)
            elif key not in ("discriminator", "$defs"):
                yield from _references(value)
    elif isinstance(node, list):
        for value in cast("list[object]", node):
            yield from _references(value)


def _key(reference: str) -> str:
    return reference.rsplit("/", 1)[1]


def _section(part: Part, parts: Mapping[str, Part], whole: Schema, level: int) -> Iterator[str]:
    if part.schema is not whole:
        yield f"{'#' * level} {part.title}\n"
    yield f"{part.schema['description']}\n"
    yield "| field | values | default | meaning |"
    yield "|---|---|---|---|"
    fields: Schema = part.schema["properties"]
    for name in sorted(fields, key=lambda name: name != _KIND):
        field = fields[name]
        default = _default(field, name == _KIND or name in part.schema.get("required", ()))
        yield f"| `{name}` | {_values(field, parts)} | {default} | {_meaning(part, name, field, whole)} |"
    yield ""


def _meaning(part: Part, name: str, field: Schema, whole: Schema) -> str:
    """Return the docstring of the field or of its model.

    Raises:
        LookupError: If neither exists: every setting must be documented.
    """
    text = field.get("description") or ("Which kind it is." if name == _KIND else "")
    models = list(dict.fromkeys(_references(field)))
    if not text and models:
        text = " ".join(whole["$defs"][key]["description"].split("\n\n")[0] for key in models[:1])
    if not text:
        raise LookupError(f"Expected a docstring of the field {name!r} of {part.title or whole['title']}.")
    return " ".join(text.split()).replace("|", "\\|")


def _default(field: Schema, is_required: bool) -> str:
    if is_required:
        return "required"
    if "default" not in field:
        return "computed"
    default = field["default"]
    if default is None:
        return "none"
    if isinstance(default, Mapping):
        return "see below"
    return f"`{_as_yaml(default)}`"


def _as_yaml(value: object) -> str:
    """Return a value as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_as_yaml, cast('list[object]', value)))}]"
    if isinstance(value, str):
        return value if value.isidentifier() or "-" in value else f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(field: Schema, parts: Mapping[str, Part]) -> str:
    """Describe the values that a field accepts."""
    if "$ref" in field:
        return _link(parts.get(_key(field["$ref"])))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field:
            texts = (_values(one, parts) for one in field[key] if one.get("type") != "null")
            return ", or ".join(dict.fromkeys(texts))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_values(field['items'], parts)}{_bounds(field)}"
    return _FORMATS.get(field.get("format", ""), _PLAIN[field["type"]]) + _bounds(field)


def _bounds(field: Schema) -> str:
    bounds = [(key, text) for key, text in _BOUNDS if key in field and not _is_machine_limit(field[key])]
    texts = [text.format(field[key] if key == "pattern" else _as_yaml(field[key])) for key, text in bounds]
    return f", {', '.join(texts)}" if texts else ""


def _is_machine_limit(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) >= 2**62


def _link(part: Part | None) -> str:
    return "see above" if part is None else f"[{part.title}](#{_anchor(part.title)})"


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub forms it."""
    kept = (character for character in title.lower() if character.isalnum() or character in "-_ ")
    return "".join(kept).replace(" ", "-")
