"""Site pages whose text is kept elsewhere in the repository, with their links rewritten for the site."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {"ppsyn/PRIVACY.md": "proofs.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Site page of each file outside docs, by its path from the root."""


def linked(text: str, folder: str) -> str:
    """Return the text of a page `folder` above the docs with links that work on the site."""
    for path, page in ELSEWHERE.items():
        text = text.replace(f"]({folder}{path}", f"]({page}")
    return text


def _whole(path: str) -> str:
    return linked((ROOT / path).read_text(encoding="utf-8"), "").replace("](docs/", "](")


def _introduction() -> str:
    """Return the readme up to its first heading, with page names in link texts instead of paths."""
    opening = _whole("README.md").split("\n## ")[0]
    return re.sub(r"\[`docs/(\S+)`\]", r"[`\1`]", opening)


TEXTS: Mapping[str, Callable[[], str]] = {
    "introduction": _introduction,
    "proofs": partial(_whole, "ppsyn/PRIVACY.md"),
    "changelog": partial(_whole, "CHANGELOG.md"),
    "security": partial(_whole, "SECURITY.md"),
}
"""By the names that pages use."""
