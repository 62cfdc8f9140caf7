"""Folders of this machine as stores: what is on the disk for good, what moves at once, what is left when it is gone."""

import errno
import os
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
