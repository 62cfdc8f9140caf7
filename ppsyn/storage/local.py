"""Folders of this machine as stores: durable writes, atomic moves, and objects that are closed to other users."""

import errno
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path


def sync(path: Path, root: Path) -> None:
    """Have a new file, its name and those of its folders on the disk."""
    for target in (path, *(above for above in path.parents if above.is_relative_to(root))):
        handle = os.open(target, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def rename_folder(source: Path, target: Path, last: str, root: Path) -> None:
    """Give a folder another name, unless another process was faster; then `last` is there."""
    if not source.exists():
        if target.exists():
            return
        raise FileNotFoundError
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError:
        if not (target / last).exists():  # another process was faster
            raise
        return
    sync(target, root)


def remove(path: Path, root: Path) -> None:
    """Remove a folder, or what the root holds, and the folders above that it leaves empty."""
    for inside in root.iterdir() if path == root else (path,):
        if inside.is_dir():
            while inside.is_dir():  # another process may clear up beside us, or write into what we clear
                try:
                    shutil.rmtree(inside)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                        raise
        elif path == root:
            inside.unlink(missing_ok=True)
    _remove_above(path.parent, root)


def remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder that holds nothing but folders, and those above that it leaves empty; stores have no such."""
    with suppress(OSError):  # not empty, or another process was faster
        nested = [path for path in folder.rglob("*") if path.is_dir()] if folder.is_dir() else []
        for path in sorted(nested, reverse=True):
            path.rmdir()
    _remove_above(folder, root)


def _remove_above(folder: Path, root: Path) -> None:
    """Remove a folder that is empty, and those above that it leaves empty; not those beside it, which are others'."""
    above = [path for path in (folder, *folder.parents) if path.is_relative_to(root) and path != root]
    with suppress(OSError):  # not empty, or another process was faster
        for path in above:
            path.rmdir()


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
