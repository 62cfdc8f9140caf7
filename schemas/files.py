"""Reading YAML strictly, with faults told in plain sentences."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic_core import ErrorDetails
from typing_extensions import override


class SchemaFileError(ValueError):
    """A file that does not hold what it should.

    Attributes:
        path: The file.
        problems: One sentence per fault.
    """

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        """Put the file's name before every fault."""
        self.path, self.problems = path, tuple(problems)
        super().__init__("\n".join(f"{path}: {problem}" for problem in problems))


@dataclass(frozen=True, slots=True)
class Unfilled:
    """What a draft leaves to a person, as `!fill` and a hint."""

    hint: str

    @override
    def __repr__(self) -> str:
        return "!fill"


class _StrictLoader(yaml.SafeLoader):
    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"expected the key {key.value!r} once", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """An integer as written; YAML would read 010 as eight and 1:30 as ninety."""
        text = str(node.value)
        if not re.fullmatch(r"[-+]?(0|[1-9][0-9]*)", text):
            problem = f"expected plain decimal digits, got {text}; put it in quotes if it is text"
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
        yaml.YAMLError: If it is not YAML, or a key is repeated, or a number is not in plain decimal digits.
    """
    try:
        return yaml.load(text, _StrictLoader)
    except ValueError as error:
        problem = str(error)
    except (TypeError, KeyError, AttributeError, RecursionError) as error:  # PyYAML's constructors, of odd tags
        problem = f"it cannot be read ({type(error).__name__})"
    raise yaml.YAMLError(problem)


def read_yaml(path: Path) -> object:
    """The document in a YAML file, as `yaml.safe_load` reads it.

    Raises:
        SchemaFileError: If there is no such file, or it is not YAML, or a key is
            repeated, or a number is not in plain decimal digits.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"Expected a readable file: {error.strerror}."
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        problem = f"{line}{error.problem}."
    except (yaml.YAMLError, ValueError) as error:
        problem = f"Expected YAML in UTF-8: {error}."
    raise SchemaFileError(path, [problem])


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
            return f"{fault['msg']}." if is_secret else f"{fault['msg']}, got {fault['input']!r}."
