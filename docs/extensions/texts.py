"""Pages of the site whose text lies elsewhere, with their links led to the site's pages."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {"ppsyn/PRIVACY.md": "proofs.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Where the site has a page that lies beside its code, by its path from the root."""


def linked(text: str, folder: str) -> str:
    """The text of a page that lies `folder` above the docs, its links as the site has them."""
    for path, page in ELSEWHERE.items():
        text = text.replace(f"]({folder}{path}", f"]({page}")
    return text


def _whole(path: str) -> str:
    return linked((ROOT / path).read_text(encoding="utf-8"), "")


def _introduction() -> str:
    """What the readme says before its first heading; links have their page's name there."""
    opening = _whole("README.md").split("\n## ")[0]
    return re.sub(r"\[`docs/(\S+)`\]\(docs/", r"[`\1`](", opening)


def _security() -> str:
    return _whole("SECURITY.md").replace("](docs/", "](")


TEXTS: Mapping[str, Callable[[], str]] = {
    "introduction": _introduction,
    "proofs": partial(_whole, "ppsyn/PRIVACY.md"),
    "changelog": partial(_whole, "CHANGELOG.md"),
    "security": _security,
}
"""By the names that pages use."""
