"""Which objects are their owner's alone, and what may be said of one."""

import os
import re
from contextlib import suppress
from pathlib import Path

_OWNED = ("accounts", "runs")
"""What a store keeps for the pipeline; published and staged releases are as readable as the umask has it."""

_PRIVATE = "private"
"""The folder of a run whose objects tell of the table by their names and numbers alone (claim C11)."""

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def is_private(key: str) -> bool:
    """Whether an object, or a folder, is in or is the private folder of a run."""
    return _PRIVATE in key.split("/")


def shown(key: str) -> str:
    """The key as it may be told; of what is private, the private folder."""
    parts = key.split("/")
    return "/".join(parts[: parts.index(_PRIVATE) + 1]) if is_private(key) else key


def cause(error: Exception) -> str:
    """What an operating system or a server calls the failure, without a word of where it was."""
    said = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if (number := re.search(r"\(os error (\d+)\)", said)) is not None:
        return os.strerror(int(number[1]))
    if (code := re.search(r"<Code>(\w+)</Code>", said)) is not None:
        return code[1]
    return type(error).__name__


def make_folders(root: Path, key: str) -> None:
    """Make the folders of an object of its owner's, closed to all others from the first moment on."""
    parts = key.split("/")[:-1]
    if _is_owned(key):
        for depth in range(1, len(parts) + 1):
            root.joinpath(*parts[:depth]).mkdir(mode=_FOLDER_MODE, exist_ok=True)


def close_file(root: Path, key: str) -> None:
    """Close an object of its owner's to all others; nobody else could reach it meanwhile."""
    if _is_owned(key):
        with suppress(FileNotFoundError):  # another process has removed it
            (root / key).chmod(_FILE_MODE)


def _is_owned(key: str) -> bool:
    return key.split("/", 1)[0] in _OWNED or is_private(key)
