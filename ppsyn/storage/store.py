"""One interface to folders, buckets and memory, through obstore."""
# obstore's listings may be Arrow batches, of a type that it leaves open.
# pyright: reportUnknownMemberType=false

import io
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from errno import EFBIG, EINVAL
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store
from typing_extensions import override

from ppsyn.errors import MissingError, StoreError, translated
from ppsyn.schemas.limits import ARRAYS_BYTES
from ppsyn.schemas.locations import Location
from ppsyn.storage.local import (
    cause,
    close_file,
    is_private,
    make_folders,
    remove,
    remove_empty,
    rename_folder,
    shown,
    sync,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer
    from obstore import ObjectMeta, ReadableFile, WritableFile
    from obstore.store import S3Config, S3Credential

_READERS = 16
_TRIES = 10
_BUFFER = 2**20
_PATIENCE = timedelta(seconds=120)
"""A store that has answered this process may be away for so long: it restarts."""
_LONGEST_PAUSE = timedelta(seconds=5)
_FIRST_PATIENCE = timedelta(seconds=10)
_ANSWERED: set[str] = set()
"""Places whose server has answered this process."""
_PASSING = re.compile(r"HTTP error|status code: (5\d\d|429)")
"""What an error says that may be over soon: no connection, one that was cut, no answer in time, a server in trouble."""
_DELETED_AT_ONCE = 1000
_T = TypeVar("_T")
_Translated: TypeAlias = Callable[[], AbstractContextManager[None]]
_MEMORY: dict[str, MemoryStore] = {}


class Store:
    """Objects under one location. Keys are relative to it, with slashes.

    Writes are whole objects: a reader sees all of one or nothing. In a folder, runs and accounts are
    their owner's alone.
    """

    def __init__(self, location: Location, backend: ObjectStore, prefix: str = "") -> None:
        """Serve `location` from `backend`, whose keys have `prefix` before ours."""
        self.location, self._backend, self._prefix = location, backend, prefix

    def __repr__(self) -> str:
        """Say where it is."""
        return f"Store({self.location.url})"

    def url(self, key: str) -> str:
        """The address of an object."""
        return f"{self.location.url.rstrip('/')}/{key}"

    def create(self, key: str, data: bytes) -> bool:
        """Write the object if there is none; whether this call did. Of many calls at once, one does.

        In a folder the object is on the disk, not just in its cache, before this returns.
        """
        with self._translated("create", key):
            try:
                self._write(key, data, is_new=True)
            except AlreadyExistsError:
                return False
            if self.location.is_local:
                sync(Path(self.url(key)), Path(self.location.url))
            return True

    def put(self, key: str, data: bytes) -> None:
        """Write the object, in place of one that is there."""
        with self._translated("write", key):
            self._write(key, data, is_new=False)

    def _again(self, call: Callable[[], _T]) -> _T:
        """Repeat what obstore does not, while the store is away: writes, and reads whose answer was cut off.

        It cannot know that to repeat a write does no harm here. What was written at the first try is found at the
        second to be there already: callers of `create` look whether it is their own.
        """
        give_up, pause = time.monotonic() + _patience(self.location).total_seconds(), 0.1
        while True:
            try:
                return call()
            except GenericError as error:
                if not (self.location.is_s3 and _PASSING.search(str(error))) or time.monotonic() > give_up:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE.total_seconds())

    def _write(self, key: str, data: bytes, *, is_new: bool) -> None:
        """Write an object; again, if a process that clears up took away the folder that was just made for it."""
        tries = _TRIES if self.location.is_local else 1
        for left in reversed(range(tries)):
            try:
                self._make_folders(key)
                mode, parts = ("create", False) if is_new else ("overwrite", None)
                write = partial(obstore.put, self._backend, self._prefix + key, data, mode=mode, use_multipart=parts)
                self._again(write)
                self._close_file(key)
            except (GenericError, FileNotFoundError) as error:
                if not left or "No such file" not in str(error):
                    raise
            else:
                return

    def _make_folders(self, key: str) -> None:
        if self.location.is_local:
            make_folders(Path(self.location.url), key)

    def _close_file(self, key: str) -> None:
        if self.location.is_local:
            close_file(Path(self.location.url), key)

    def get(self, key: str, most: int = ARRAYS_BYTES) -> bytes:
        """The object.

        Raises:
            MissingError: If there is none.
            StoreError: If it has more bytes than `most`, or cannot be read.
        """
        with self._translated("read", key):
            self._check_regular(key)
            return self._again(partial(self._get, key, most))

    def _get(self, key: str, most: int) -> bytes:
        found = obstore.get(self._backend, self._prefix + key)
        if found.meta["size"] > most:
            raise OSError(EFBIG, f"it has more than {most:,} bytes")
        return found.bytes().to_bytes()

    def get_all(self, keys: Iterable[str]) -> list[bytes]:
        """The objects; from a server, read side by side."""
        if not self.location.is_s3:
            return [self.get(key) for key in keys]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self.get, keys))

    def size(self, key: str) -> int | None:
        """The length of the object, or None if there is none."""
        try:
            with self._translated("read", key):
                return obstore.head(self._backend, self._prefix + key)["size"]
        except MissingError:
            return None

    def has(self, key: str) -> bool:
        """Whether there is such an object."""
        return self.size(key) is not None

    def keys(self, prefix: str = "") -> list[str]:
        """The keys below a folder, sorted."""
        with self._translated("list", prefix):
            return sorted(meta["path"].removeprefix(self._prefix) for meta in self._listed(prefix))

    def _listed(self, prefix: str) -> "list[ObjectMeta]":
        """What there is below a folder."""
        folder = (self._prefix + prefix).rstrip("/") or None
        return self._again(lambda: [meta for page in obstore.list(self._backend, folder) for meta in page])

    def level(self, prefix: str = "") -> tuple[list[str], list[str]]:
        """The keys right below a folder, and the names of the folders there, sorted; not what these hold."""
        with self._translated("list", prefix):
            folder = (self._prefix + prefix).rstrip("/") or None
            found = self._again(lambda: obstore.list_with_delimiter(self._backend, folder))
            keys = sorted(meta["path"].removeprefix(self._prefix) for meta in found["objects"])
            return keys, sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def folders(self, prefix: str = "") -> list[str]:
        """The names of the folders right below a folder, sorted."""
        return self.level(prefix)[1]

    def holds(self, prefix: str) -> bool:
        """Whether there is anything below a folder, what killed writers left there included."""
        return Path(self.url(prefix)).is_dir() if self.location.is_local else bool(self.keys(prefix))

    def is_older(self, prefix: str, age: timedelta) -> bool:
        """Whether nothing below a folder was written for so long; what goes while we look is in use."""
        with self._translated("list", prefix):
            if self.location.is_local:
                top = Path(self.url(prefix))
                try:
                    times = [datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in (top, *top.rglob("*"))]
                except FileNotFoundError:
                    return False
            else:
                times = [meta["last_modified"] for meta in self._listed(prefix)]
            return all(time < datetime.now(UTC) - age for time in times)

    def delete(self, prefix: str) -> None:
        """Remove all that is below a folder, with what killed writers left there."""
        if self.location.is_local:
            with self._translated("delete", prefix):
                remove(Path(self.url(prefix)), Path(self.location.url))
            return
        self.discard(self.keys(prefix))

    def discard(self, keys: Sequence[str]) -> None:
        """Remove objects, in this order; those that are not there are none to remove."""
        if self.location.is_local:
            for key in keys:
                with self._translated("delete", key):
                    path = Path(self.url(key))
                    path.unlink(missing_ok=True)
                    remove_empty(path.parent, Path(self.location.url))
            return
        for at in range(0, len(keys), _DELETED_AT_ONCE):
            with self._translated("delete", keys[at]), suppress(FileNotFoundError):
                some = [self._prefix + key for key in keys[at : at + _DELETED_AT_ONCE]]
                self._again(partial(obstore.delete, self._backend, some))

    @contextmanager
    def reader(self, key: str) -> Generator["io.BufferedReader[_Source]"]:
        """The object as a file to read and seek in."""
        translated = partial(self._translated, "read", key)
        with translated():
            self._check_regular(key)
            source = _Source(obstore.open_reader(self._backend, self._prefix + key), translated, self._again)
        with io.BufferedReader(source, _BUFFER) as file:
            yield file

    @contextmanager
    def writer(self, key: str) -> Generator[BinaryIO]:
        """A file to write the object to, in bounded memory. The object appears when the block ends without an error."""
        translated = partial(self._translated, "write", key)
        with translated():
            self._make_folders(key)
            sink = _Sink(obstore.open_writer(self._backend, self._prefix + key), translated)
        try:
            yield cast("BinaryIO", sink)
        except BaseException as error:
            sink.give_up(error)
            raise
        sink.finish()
        with translated():
            self._close_file(key)

    def move_folder(self, source: str, target: str, last: str) -> None:
        """Give a folder another name, so that the object `last` appears with all the rest in place.

        A folder of this machine moves at once. Elsewhere objects are copied, `last` after the others;
        whoever looks for `last` never finds a part. May be repeated until it succeeds.
        """
        if self.location.is_local:
            with self._translated("move", source):
                if (Path(self.url(target)) / last).exists():
                    return  # another process was faster
                rename_folder(Path(self.url(source)), Path(self.url(target)), last, Path(self.location.url))
                remove_empty(Path(self.url(source)).parent, Path(self.location.url))
            return
        names = [key.removeprefix(f"{source}/") for key in self.keys(source)]
        if not names and not self.has(f"{target}/{last}"):
            raise MissingError(self.url(source))
        for name in sorted(names, key=lambda name: name == last):
            with self._translated("write", f"{target}/{name}"):
                old, new = f"{self._prefix}{source}/{name}", f"{self._prefix}{target}/{name}"
                self._again(partial(obstore.copy, self._backend, old, new))
        self.delete(source)

    def _check_regular(self, key: str) -> None:
        """Refuse a pipe or a device in a folder, which would be waited for."""
        if not self.location.is_local:
            return
        mode = Path(self.url(key)).stat().st_mode
        if not (S_ISREG(mode) or S_ISDIR(mode)):
            raise OSError(EINVAL, "it is a pipe or a device")

    @contextmanager
    def _translated(self, verb: str, key: str) -> Generator[None]:
        """Tell what failed and where. Addresses are public, and so are keys, but for those of what is private (C11)."""

        def describe(error: Exception) -> str:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" in str(error):
                return f"Cannot use {self.location.url}: there is no such bucket."
            if is_private(key):  # nor what was being done with which of how many objects
                return f"Cannot use the private folder {self.url(shown(key))}: {cause(error)}."
            return f"Cannot {verb} {self.url(key)}: {_reason(error)}"

        with translated((BaseError, OSError, NotImplementedError), to=StoreError, message=describe):
            try:
                yield
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                with translated(OSError, to=MissingError, message=self.url(shown(key))):
                    raise
        if self.location.is_s3:
            _ANSWERED.add(_server(self.location))


class _Again(Protocol):
    """As `Store._again`."""

    def __call__(self, call: Callable[[], _T], /) -> _T:
        """Repeat a call while the store is away."""
        ...


class _Source(io.RawIOBase):
    """obstore's reader, as Python's libraries expect a file to be."""

    def __init__(self, file: "ReadableFile", translated: _Translated, again: "_Again") -> None:
        self._file, self._translated, self._again = file, translated, again

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    @override
    def tell(self) -> int:
        return self._file.tell()

    @override
    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        with self._translated():
            data = self._again(partial(self._read_at, self._file.tell(), len(view)))
        view[: len(data)] = data
        return len(data)

    def _read_at(self, position: int, size: int) -> bytes:
        self._file.seek(position)
        return self._file.read(size).to_bytes()


class _Sink(io.BufferedIOBase):
    """obstore's writer, which has buffers of its own and keeps nothing unless it is finished."""

    def __init__(self, file: "WritableFile", translated: _Translated) -> None:
        self._file, self._translated = file, translated

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: "ReadableBuffer", /) -> int:
        copied = bytes(data)  # obstore keeps what it is given, and the caller may use its buffer again
        with self._translated():
            self._file.write(copied)
        return len(copied)

    def finish(self) -> None:
        """Let the object appear."""
        with self._translated():
            self._file.close()

    def give_up(self, error: BaseException) -> None:
        """Have the store forget what it was given."""
        with suppress(BaseError, OSError):
            self._file.__exit__(type(error), error, error.__traceback__)


def open_store(location: Location) -> Store:
    """The store at a location; a folder is made if it is missing.

    Raises:
        StoreError: If the location cannot be used.
    """
    if location.is_memory:
        name, _, folder = location.url.removeprefix("memory://").partition("/")
        return Store(location, _MEMORY.setdefault(name, MemoryStore()), f"{folder.strip('/')}/".lstrip("/"))
    if location.is_s3:
        return Store(location, _bucket(location))
    unusable = f"Cannot use the folder {location.url}"
    with translated((BaseError, OSError), to=StoreError, message=lambda error: f"{unusable}: {_reason(error)}"):
        return Store(location, LocalStore(Path(location.url), mkdir=True))


def _bucket(location: Location) -> S3Store:
    parts = urlsplit(location.url)
    # What is said here goes before the variables AWS_... of the environment, which may be meant for others.
    config: S3Config = {"region": location.region, "conditional_put": "etag", "skip_signature": False}
    if location.endpoint is not None:
        config["endpoint"] = location.endpoint
        config["virtual_hosted_style_request"] = False
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options={
            "allow_http": (location.endpoint or "").startswith("http://"),
            "connect_timeout": timedelta(seconds=2),
        },
        retry_config={
            "max_retries": 1000 if _server(location) in _ANSWERED else 5,
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": _LONGEST_PAUSE, "base": 2},
            "retry_timeout": _patience(location),
        },
        credential_provider=_keys(location),
    )


def _server(location: Location) -> str:
    return f"{location.endpoint}/{urlsplit(location.url).netloc}"


def _patience(location: Location) -> timedelta:
    """How long a store may be away: one that never answered may have another address."""
    return _PATIENCE if _server(location) in _ANSWERED else _FIRST_PATIENCE


def _keys(location: Location) -> "Callable[[], S3Credential] | None":
    """The keys of a location; those of Amazon's own buckets may also be the machine's, which obstore asks for them."""
    names = [f"{location.credentials}_{part}" for part in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")]
    access, secret, token = (os.environ.get(name) for name in names)
    if access is None or secret is None:
        if location.credentials == "AWS" and location.endpoint is None:
            return None
        missing = names[0] if access is None else names[1]
        raise StoreError(f"Expected the environment to hold {missing} for {location.url}.")
    found: S3Credential = {"access_key_id": access, "secret_access_key": secret, "token": token, "expires_at": None}
    return lambda: found


def _reason(error: Exception) -> str:
    """The first line of what the store said, without its stack, and the code of an S3 server."""
    said = str(error)
    first = next((line for line in said.splitlines() if line.strip()), type(error).__name__)
    code = re.search(r"<Code>(\w+)</Code>", said)
    return f"{first.partition('<?xml')[0][:300]}{code[1] if code else ''}"
