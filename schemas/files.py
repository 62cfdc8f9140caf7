"""Reading YAML strictly and within limits, with faults in plain sentences."""

import json
import os
import re
import stat
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import cast

import yaml
from pydantic_core import ErrorDetails
from typing_extensions import override
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, Event, ScalarEvent

from ppsyn.schemas.limits import DEPTH, DOCUMENT_BYTES, MAX_CHARACTERS_SHOWN, MAX_FAULTS_SHOWN, NODES


class SchemaFileError(ValueError):
    """A file that does not hold what it should.

    Attributes:
        path: The file.
        problems: One sentence per fault.
    """

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        """Put the file's name before every fault."""
        self.path, self.problems = path, tuple(problems)
        sentences = [f"{path}: {problem}" for problem in self.problems[:MAX_FAULTS_SHOWN]]
        if len(self.problems) > len(sentences):
            sentences.append(f"{path}: There are {len(self.problems) - len(sentences):,} faults more.")
        super().__init__("\n".join(sentences))


@dataclass(frozen=True, slots=True)
class Unfilled:
    """What a draft leaves to a person, as `!fill` and a hint."""

    hint: str

    @override
    def __repr__(self) -> str:
        return "!fill"


class _StrictLoader(yaml.CSafeLoader):
    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"expected the key {quoted(key.value)} once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """An integer as written; YAML would read 010 as eight and 1:30 as ninety."""
        text = str(node.value)
        if not re.fullmatch(r"[-+]?(0|[1-9][0-9]*)", text):
            problem = (
                f"expected plain decimal digits, got {text[:MAX_CHARACTERS_SHOWN]}; put it in quotes if it is text"
            )
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return int(text)

    def construct_unfilled(self, node: yaml.Node) -> Unfilled:
        """What is marked is yet to be said, whatever stands there."""
        return Unfilled(str(node.value) if isinstance(node, yaml.ScalarNode) else "")


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_decimal)
_StrictLoader.add_constructor("!fill", _StrictLoader.construct_unfilled)


def parse_yaml(text: str) -> object:
    """The document in a YAML text.

    Raises:
        yaml.YAMLError: If it is not YAML or past the limits, or a key is repeated, or a number is not in plain
            decimal digits.
    """
    try:
        _check_limits(text)
        return yaml.load(text, _StrictLoader)
    except ValueError as error:
        problem = str(error)
    except (TypeError, KeyError, AttributeError, RecursionError) as error:  # PyYAML's constructors, of odd tags
        problem = f"it cannot be read ({type(error).__name__})"
    raise yaml.YAMLError(problem)


def _check_limits(text: str) -> None:
    """Refuse a document that is too deep, or too large once every alias is what it stands for."""
    count, started, sizes = 0, list[tuple[str | None, int]](), dict[str | None, int]()
    events = cast("Iterator[Event]", yaml.parse(text, yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType]
    for event in events:
        problem = None
        match event:
            case AliasEvent():
                if any(anchor == event.anchor for anchor, _ in started):
                    problem = f"expected the anchor {quoted(event.anchor)} not to hold itself"
                count += sizes.get(event.anchor, 0)
            case CollectionStartEvent():
                started.append((event.anchor, count))
                count += 1
            case CollectionEndEvent():
                anchor, before = started.pop()
                sizes[anchor] = count - before
            case ScalarEvent():
                sizes[event.anchor] = 1
                count += 1
            case _:
                pass
        if count > NODES:
            problem = f"expected at most {NODES:,} values, those counted again that an alias repeats"
        if len(started) > DEPTH:
            problem = f"expected at most {DEPTH} lists and fields within each other"
        if problem is not None:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=cast("yaml.Mark", event.start_mark))


def read_yaml(path: Path) -> object:
    """The document in a YAML file, as `yaml.safe_load` reads it.

    Raises:
        SchemaFileError: If there is no such file, or it is not YAML or past the limits, or
            a key is repeated, or a number is not in plain decimal digits.
    """
    text = ""
    try:
        text = read_whole(path, DOCUMENT_BYTES).decode()
        return parse_yaml(text)
    except OSError as error:
        problem = f"Expected a readable file: {error.strerror}."
    except yaml.MarkedYAMLError as error:
        last = len(text.splitlines())  # libyaml has what is missing at the end on a line of its own
        line = "" if error.problem_mark is None else f"line {max(1, min(error.problem_mark.line + 1, last))}: "
        problem = f"{line}{error.problem}."
    except (yaml.YAMLError, ValueError) as error:
        problem = f"Expected YAML in UTF-8: {error}."
    raise SchemaFileError(path, [problem])


def read_whole(path: Path, most: int) -> bytes:
    """The bytes of a file: never those of a pipe or a device, which may have no end.

    Raises:
        OSError: If there is no such file, it is not a regular one, or it has more bytes than `most`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # a name that no file can have
        raise OSError(EINVAL, "no file can have such a name") from None
    with open(handle, "rb") as file:  # noqa: PTH123  # opened without waiting for a writer
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(EINVAL, "it is a folder, a pipe or a device")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(EFBIG, f"it has more than {most:,} bytes")
    return data


def quoted(value: object) -> str:
    """A value as an error quotes it: no more of it than a person reads."""
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS_SHOWN else f"{text[:MAX_CHARACTERS_SHOWN]}..."


def rule_of(fault: ErrorDetails, *, is_secret: bool = False) -> str:
    """What a fault of a model comes down to, in a sentence; without the value where that may hold a password."""
    match fault["type"]:
        case "missing":
            return "Expected this field to be given."
        case "extra_forbidden":
            return "Expected no field of this name."
        case "union_tag_invalid" | "union_tag_not_found":
            return f"Expected one of {fault.get('ctx', {}).get('expected_tags', 'the kinds that exist')}."
        case "value_error":
            return str(fault.get("ctx", {})["error"])
        case _:
            return f"{fault['msg']}." if is_secret else f"{fault['msg']}, got {quoted(fault['input'])}."


_FORMAT, _VERSION = re.compile(r"(ppsyn-[a-z]{1,20})-\d{1,4}"), re.compile(r"[0-9][0-9a-z.+-]{0,40}")


def other_format(data: bytes, expected: str) -> str | None:
    """What to say of a document of an earlier or a later format than `expected`: which ppsyn reads it.

    Returns:
        A sentence; None if the document has the expected format, or says of no other.
    """
    try:
        document: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    found, code = fields.get("format"), fields.get("code")
    if not isinstance(found, str) or found == expected or not (kind := _FORMAT.fullmatch(found)):
        return None
    if not expected.startswith(f"{kind[1]}-"):
        return None
    said = cast("dict[str, object]", code) if isinstance(code, dict) else {}
    version, source = (str(said.get(name, "")) for name in ("ppsyn", "source"))
    wrote = f"ppsyn {version}" if _VERSION.fullmatch(version) else "a development version of ppsyn 0.1.0"
    wrote += f" (source {source[:12]})" if re.fullmatch(r"[0-9a-f]{64}", source) else ""
    return f"Expected format {expected}, got {found}. Read it with {wrote}, which wrote it."
