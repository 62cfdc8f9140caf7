"""HTML and SVG as values: text becomes markup by being escaped, and in no other way."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Markup:
    """Finished markup; outside this module it is made by `tag` and `join`, and of constants."""

    text: str


Part: TypeAlias = Markup | str | None
"""What may stand inside an element: text is escaped, and None leaves nothing."""

_EMPTY = frozenset({"meta", "rect", "line", "circle", "path"})
"""Elements that hold nothing and have no end."""


def tag(name: str, /, *parts: Part, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        name: Its name, a constant.
        parts: What stands inside.
        attributes: As in HTML, with underscores for hyphens and one more behind names that Python keeps for itself;
            those that are None are left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(parts).text}</{name}>")


def join(parts: Iterable[Part]) -> Markup:
    """One part after the other."""
    return Markup("".join(_written(part) for part in parts))


def short(number: float) -> str:
    """A coordinate, to a tenth."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _written(part: Part) -> str:
    if part is None:
        return ""
    return part.text if isinstance(part, Markup) else escape(part)


def _attribute(key: str, value: str | float) -> str:
    text = value if isinstance(value, str) else short(value)
    return f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"'
