"""Cases: a command, and what is put in the place of files of the stage. Equal seeds make equal cases."""

import base64
import gzip
import hashlib
import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from fuzzing.stage import CANARY_NUMBER, CANARY_TEXT, PUBLISHED, RELEASE, RUN, SCHEMA

FIFO, ZERO, GONE, FOLDER = "fifo", "/dev/zero", "gone", "folder"
"""What a file may be instead of one."""

_WORDS = (
    "", " ", "0", "-1", "1", "1.5", "1e999", "-1e-999", "nan", "inf", "10" * 40, "1e30", "0x10", "true", "null", "~",
    "a", "a" * 300, "a/" * 3000, "é", "\u202e", "\x00", "\udcff", "\ud800", "\r\n", "../..", "/", ".", "/dev/zero",
    "/proc/self/mem", "/etc", "s3://", "s3://x", "s3://bucket/a", "memory://a", "http://a", "people.yaml", "store",
    "${HOME}", "%s%n", "{0}", "--", "-", "*", "[", "{", "!fill", "&a [*a]", "2020-13-45", "9999-12-31", "0001-01-01",
    "=", "'", '"', ",", "age", "age,age", "age,sex", "sex", "who", RUN, PUBLISHED,
)  # fmt: skip

_NUMBERS = (0, -1, 1, 2, 3, 2**31, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 0.5, 1e-300, 1e300, 5e-324, -0.0, 1e15)


@dataclass(frozen=True, slots=True)
class Case:
    """A command in a folder that is the stage but for these files."""

    arguments: tuple[str, ...]
    files: dict[str, bytes | str] = field(default_factory=dict[str, bytes | str])
    """By path, what stands there: bytes, or in a word what it is instead of a file."""

    def as_json(self) -> str:
        """To be kept."""
        files = {
            path: {"is": data} if isinstance(data, str) else {"base64": base64.b64encode(data).decode()}
            for path, data in self.files.items()
        }
        words = [word.encode("utf-8", "surrogatepass").hex() for word in self.arguments]
        readable = [ascii(word)[1:-1][:60] for word in self.arguments]
        return json.dumps({"reads": readable, "arguments": words, "files": files}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Case":
        """As it was kept."""
        told = json.loads(text)
        words = tuple(bytes.fromhex(word).decode("utf-8", "surrogatepass") for word in told["arguments"])
        files = {path: base64.b64decode(d["base64"]) if "base64" in d else d["is"] for path, d in told["files"].items()}
        return cls(words, files)


def make(seed: int, stage: Path) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    return KINDS[seed % len(KINDS)](rng, stage)


# Texts and bytes


def _damaged(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut out, put in, repeated or moved."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + rng.choice((1, 4, 64, 10**9)))
        match rng.randrange(7):
            case 0:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[to:]
            case 2:
                data = data[:at] + rng.randbytes(rng.choice((1, 3, 40))) + data[at:]
            case 3:
                data = data[:to] + data[at:to] * rng.choice((1, 2, 50)) + data[to:]
            case 4:
                data = data[:at]
            case 5:
                odd = rng.choice((b"\0", b'"', b"\r", b"\n", b",", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"'"))
                data = data[:at] + odd * rng.choice((1, 1, 1000)) + data[at:]
            case _:
                number = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1))
                data = data[:at] + struct.pack("<Q", number) + data[at + 8 :]
    return data


def _odd(rng: random.Random, depth: int = 0) -> Any:  # noqa: ANN401  # any value that YAML or JSON may hold
    match rng.randrange(7 if depth < 3 else 4):
        case 0 | 1:
            return rng.choice([word for word in _WORDS if word.isprintable()])
        case 2:
            return rng.choice(_NUMBERS)
        case 3:
            return rng.choice((None, True, False, float("nan"), float("inf")))
        case 4:
            return [_odd(rng, depth + 1) for _ in range(rng.randrange(4))]
        case 5:
            return {
                str(rng.choice(("a", "age", "kind", "bins"))): _odd(rng, depth + 1) for _ in range(rng.randrange(3))
            }
        case _:
            return ["x"] * rng.choice((100, 10_000))


def _places(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    found = [above]
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            found += _places(value, (*above, key))
    return found


def _changed(rng: random.Random, document: Any) -> Any:  # noqa: ANN401
    """A document with a few of its values replaced, taken out, added or repeated."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = _places(document)[1:]
        if not places:
            return document
        *above, last = rng.choice(places)
        inner = document
        for key in above:
            inner = inner[key]
        match rng.randrange(5):
            case 0 | 1 | 2:
                inner[last] = _odd(rng)
            case 3:
                del inner[last]
            case _:
                if isinstance(inner, dict):
                    inner[rng.choice(("extra", "unit", "edges", "bins", "step", "dtype", "timezone", "max_rows"))] = (
                        _odd(rng)
                    )
                else:
                    inner.extend([inner[last]] * rng.choice((1, 50)))
    return document


def _bombs(rng: random.Random) -> bytes:
    """YAML that is small and means much."""
    deep = rng.choice((8, 30, 2000, 100_000))
    many = rng.choice((20, 2_000, 100_000, 1_000_000))
    nested = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    nested += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, min(deep, 30))]
    merged = ["a0: &a0 {k: v}"]
    merged += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, min(deep, 30))]
    return rng.choice(
        (
            "\n".join(nested),
            "name: t\ncolumns: [{name: a, kind: categorical, values: *a7}]\n" + "\n".join(nested),
            "\n".join([*nested, "columns: *a" + str(min(deep, 30) - 1)]),
            "\n".join(merged),
            "[" * deep,
            "{a: " * deep,
            "&a [*a]",
            "a: &a {<<: *a}",
            "- " * deep + "x",
            "? " * deep,
            "name: t\ncolumns:\n- {name: a, kind: real, edges: [" + ", ".join(map(str, range(many))) + "]}",
            "name: t\ncolumns:\n"
            + "".join(f"- {{name: c{n}, kind: boolean, nullable: true}}\n" for n in range(many // 50)),
            "name: t\ncolumns:\n"
            + "".join(f"- {{name: c{n}, kind: real, lower: 0, upper: 1, bins: 100000}}\n" for n in range(many // 50)),
            "name: t\ncolumns:\n- {name: a, kind: categorical, values: ["
            + ", ".join(f"v{n}" for n in range(many))
            + "]}",
            "name: " + "x" * many,
            "\n".join(f"k{n}: 1" for n in range(many // 10)),
            "name: !!python/object:os.system [x]",
            "name: !!binary " + "A" * many,
            "name: !!timestamp 2020-99-99",
            "name: !!set {a, b}",
            "!fill",
            "columns: !fill",
            "name: 1:2:3:4\ncolumns: 0o17",
            "%YAML 9.9\n---\na",
            "name: |\n" + " " * deep + "x",
            "#" * many,
        )
    ).encode()


def _yaml(rng: random.Random, document: Any) -> bytes | str:  # noqa: ANN401
    match rng.randrange(8):
        case 0:
            return rng.choice((FIFO, ZERO, GONE, FOLDER))
        case 1:
            return _bombs(rng)
        case 2 | 3:
            return _damaged(rng, yaml.safe_dump(document, sort_keys=False).encode())
        case _:
            return yaml.safe_dump(_changed(rng, document), sort_keys=False, allow_unicode=True).encode(
                "utf-8", "replace"
            )


def _schema(rng: random.Random, _: Path) -> Case:
    data = _yaml(rng, json.loads(SCHEMA.model_dump_json(exclude_none=True)))
    command = rng.choice(
        (
            ("plan", "parquet.yaml"),
            ("plan", "csv.yaml", "--json"),
            ("schema", "check", "csv.yaml", "people.yaml", "--anywhere"),
            ("ingest", "parquet.yaml"),
        )
    )
    return Case(command, {"people.yaml": data})


def _release(rng: random.Random, _: Path) -> Case:
    document = {**RELEASE, "source": rng.choice(_SOURCES)}
    document["runtime"], document["algorithm"] = (
        {},
        {"rounds": 4, "max_fit_steps": 100, "workload": {"degree": 2}, "max_model_size_mb": 2.0},
    )
    command = rng.choice(
        (("plan", "r.yaml"), ("plan", "r.yaml", "--rows", "1000"), ("schema", "draft", "r.yaml"), ("ingest", "r.yaml"))
    )
    return Case(command, {"r.yaml": _yaml(rng, document)})


_SOURCES: tuple[Any, ...] = (
    {"kind": "parquet", "path": "people.parquet", "batch_rows": 50},
    {"kind": "csv", "path": {"url": "people.csv", "region": "us-east-1"}, "delimiter": ",", "nulls": ["", "NA"]},
    {
        "kind": "csv", "path": "people.csv", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y",
        "datetimes": "%d.%m.%Y %H:%M", "trues": ["ja"], "falses": ["nein"], "encoding": "cp1252",
        "newlines_in_values": True,
    },
    {"kind": "sql", "url": "sqlite:///people.db", "query": "select 1"},
)  # fmt: skip


# Tables


_WRITINGS: Mapping[str, tuple[Any, ...]] = {
    "delimiter": (";", "\t", "|", ".", "0", '"', "\n", "é", ",,"),
    "nulls": ([], ["", "NA"], ["0"], ["f", "m"], [CANARY_TEXT]),
    "encoding": ("latin-1", "cp1252", "utf-8", "utf-16", "utf-7"),
    "newlines_in_values": (True, True, False, "yes"),
    "decimal": (",", ".", ";"),
    "thousands": (".", ",", " ", "'", "_"),
    "dates": (
        "%d.%m.%Y",
        "%m/%d/%y",
        "%Y%m%d",
        "%Y-%j",
        "%d.%b %Y",
        "%B %d, %Y",
        "%d.%m.%Y%%",
        "%Y",
        "%s",
        "%d%m%Y" * 50,
    ),
    "datetimes": ("%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %I:%M:%S.%f %p", "%H:%M", "%Y-%m-%d"),
    "trues": (["ja", "t"], ["0"], ["true", "True"], [""], ["x"] * 10_000),
    "falses": (["nein", "f"], ["1"], ["false"], ["ja"], ["x" * 10_000]),
}
"""What a release file may say of how a CSV file is written, and some that it may not."""


def _writing(rng: random.Random) -> dict[str, Any]:
    chosen = rng.sample(sorted(_WRITINGS), rng.choice((1, 2, 4)))
    return {name: rng.choice(_WRITINGS[name]) for name in chosen}


def _rewritten(rng: random.Random, data: bytes, writing: Mapping[str, Any]) -> bytes:
    """The table as such a file might have it: some of its numbers, dates, words and ends of lines."""
    text = data.decode()
    if rng.random() < 0.7:
        mark, comma = str(writing.get("thousands", ",")), str(writing.get("decimal", "."))
        delimiter = str(writing.get("delimiter", ","))
        text = text.replace(",", delimiter).replace("0.", f'"0{comma}' if comma == delimiter else f"0{comma}")
        text = text.replace(str(CANARY_NUMBER), f'"{f"{CANARY_NUMBER:,}".replace(",", mark)}"')
    if rng.random() < 0.5:
        text = re.sub(r"(20\d\d)-(\d\d)-(\d\d)", rng.choice((r"\3.\2.\1", r"\2/\3/\1", r"\1\2\3", r"\1-\2-99")), text)
    if rng.random() < 0.5:
        text = text.replace("True", rng.choice(("ja", "0", '"1\n1"', '"'))).replace(
            "False", rng.choice(("nein", "1", ""))
        )
    if rng.random() < 0.3:
        text = text.replace(
            CANARY_TEXT, rng.choice((f"{CANARY_TEXT}é", f'"{CANARY_TEXT}\n{CANARY_TEXT}"', f'"{CANARY_TEXT}'))
        )
    if rng.random() < 0.2:
        text = text.replace("\n", rng.choice(("\r\n", "\r", "\n\n")))
    return text.encode(rng.choice(("utf-8", "latin-1", "cp1252")), "replace")


def _written(rng: random.Random, stage: Path) -> Case:
    """A CSV file as it is in the world, with what a release file says of it."""
    writing = _writing(rng)
    data = _rewritten(rng, (stage / "people.csv").read_bytes(), writing)
    if rng.random() < 0.3:
        data = _damaged(rng, data)
    path = "people.csv"
    if rng.random() < 0.4:
        path, data = "people.csv.gz", gzip.compress(data) * rng.choice((1, 1, 2))
        data = _damaged(rng, data) if rng.random() < 0.4 else data
    release = {**RELEASE, "source": {"kind": "csv", "path": path, **writing}}
    files: dict[str, bytes | str] = {path: data, "csv.yaml": yaml.safe_dump(release, sort_keys=False).encode()}
    return Case(_reading(rng, "csv"), files)


def _csv(rng: random.Random, stage: Path) -> Case:
    data = (stage / "people.csv").read_bytes()
    match rng.randrange(6):
        case 0:
            lines = data.splitlines()
            rng.shuffle(lines)
            data = b"\n".join(lines)
        case 1:
            data = data.decode().encode(rng.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7")))
        case 2:
            data = rng.choice((gzip.compress(data), gzip.compress(bytes(2**28)), b"", b"\n" * 10**6, b"," * 10**6))
        case 3:
            data = data.split(b"\n")[0] + b"\n" + b"x" * rng.choice((10**4, 10**7, 3 * 10**7)) + b"," * 5 + b"\n"
        case _:
            data = _damaged(rng, data)
    return Case(_reading(rng, "csv"), {"people.csv": rng.choice((data, data, data, data, FIFO, ZERO, FOLDER))})


def _reading(rng: random.Random, kind: str) -> tuple[str, ...]:
    return rng.choice(
        (
            ("plan", f"{kind}.yaml"),
            ("schema", "draft", f"people.{kind}"),
            ("schema", "check", f"{kind}.yaml", "people.yaml", "--anywhere"),
            ("schema", "check", f"{kind}.yaml", "people.yaml", "--anywhere"),
            ("ingest", f"{kind}.yaml"),
            ("ingest", f"{kind}.yaml"),
            ("quality", PUBLISHED, f"{kind}.yaml", "--rho", "1e-9"),
            ("private-report", PUBLISHED, f"{kind}.yaml", "--out", "private.html"),
        )
    )


def _parquet(rng: random.Random, stage: Path) -> Case:
    path = stage / "people.parquet"
    data = _retyped(rng, pq.read_table(path)) if rng.random() < 0.6 else _damaged(rng, path.read_bytes())
    return Case(_reading(rng, "parquet"), {"people.parquet": data})


def _retyped(rng: random.Random, table: pa.Table) -> bytes:
    """The same names, with a column or two of another type."""
    for _ in range(rng.choice((1, 2))):
        at = rng.randrange(table.num_columns)
        array = _array(rng, table.num_rows)
        table = table.set_column(at, table.column_names[at], array)
    if rng.random() < 0.2:
        table = table.rename_columns([rng.choice(("", "age", name, "a" * 5000)) for name in table.column_names])
    buffer = io.BytesIO()
    compression = rng.choice(("none", "zstd", "gzip", "snappy"))
    pq.write_table(table, buffer, compression=compression, row_group_size=rng.choice((1, 7, 1000)))
    return buffer.getvalue()


def _array(rng: random.Random, rows: int) -> pa.Array:
    number = [rng.choice((None, CANARY_NUMBER, *range(5))) for _ in range(rows)]
    text = [rng.choice((None, CANARY_TEXT, "f", "m", "", "é", "2020-01-01")) for _ in range(rows)]
    kinds: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array(text, pa.string_view()),
        lambda: pa.array([None if t is None else t.encode() for t in text], pa.binary_view()),
        lambda: pa.array([None if t is None else t.encode() for t in text], pa.binary()),
        lambda: pa.array([None if t is None else t.encode().ljust(8)[:8] for t in text], pa.binary(8)),
        lambda: pa.array(text, pa.large_string()),
        lambda: pa.StringArray.from_buffers(rows, *_broken(rows)),
        lambda: pa.array(text, pa.string()).dictionary_encode(),
        lambda: pa.array(text, pa.string_view()).cast(pa.string()).dictionary_encode(),
        lambda: pa.array([None] * rows, pa.null()),
        lambda: pa.array([None if n is None else [n] for n in number], pa.list_(pa.int64())),
        lambda: pa.array([None if n is None else {"a": n, "b": CANARY_TEXT} for n in number]),
        lambda: pa.array([None if n is None else [(CANARY_TEXT, n)] for n in number], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array(number, pa.uint64()),
        lambda: pa.array([None if n is None else 2**64 - 1 - n for n in number], pa.uint64()),
        lambda: pa.array([None if n is None else n % 100 for n in number], pa.int8()),
        lambda: pa.array([None if n is None else np.float16(n % 1000) for n in number], pa.float16()),
        lambda: pa.array([None if n is None else float(n) for n in number], pa.float32()),
        lambda: pa.array(
            [None if n is None else rng.choice((np.nan, np.inf, -np.inf, 1e308)) for n in number], pa.float64()
        ),
        lambda: pa.array(number, pa.int64()).cast(pa.decimal128(38, 2)),
        lambda: pa.array(number, pa.int64()).cast(pa.decimal256(60, 2)),
        lambda: pa.array(number, pa.int64()).cast(pa.duration("ns")),
        lambda: pa.array([None if n is None else n % 86400 for n in number], pa.int32()).cast(pa.time32("s")),
        lambda: pa.array([None if n is None else n % 3 for n in number], pa.int64()).cast(
            pa.timestamp("ns", "Europe/Berlin")
        ),
        lambda: pa.array([None if n is None else 2**52 * rng.choice((1, -1)) for n in number], pa.int64()).cast(
            pa.timestamp("s")
        ),
        lambda: pa.array([None if n is None else 2**62 * rng.choice((1, -1)) for n in number], pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        lambda: pa.array([None if n is None else 2**30 * rng.choice((1, -1)) for n in number], pa.int32()).cast(
            pa.date32()
        ),
        lambda: pa.array([rng.choice((None, True, False)) for _ in range(rows)], pa.bool_()),
        lambda: pa.array(["x" * 10**6 for _ in range(rows)], pa.string()),
    )
    return rng.choice(kinds)()


def _broken(rows: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and bytes of text that is not UTF-8."""
    return pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * 2), pa.py_buffer(b"\xff\xfe" * rows)


# The command line

_BUCKET = ("--endpoint", "--region", "--credentials")

_COMMANDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("plan", "parquet.yaml"), ("--rows", "--set", "--json")),
    (("budget", "people"), ("--set-cap", "--store", *_BUCKET, "--json")),
    (("audit", PUBLISHED), ("--account", "--json", *_BUCKET)),
    (("audit", "store/releases/people/latest", "--account", "store"), ("--account", "--json", *_BUCKET)),
    (("regenerate", PUBLISHED, "--out", "more.parquet"), ("--rows", "--seed", "--row-group", "--json", "--quiet")),
    (("regenerate", PUBLISHED, "--out", "more.csv.gz"), ("--rows", "--seed", "--row-group", "--scheduler", *_BUCKET)),
    (("schema", "draft", "people.csv"), ("--out", "--delimiter", "--force", "--public", *_BUCKET)),
    (("schema", "draft", "csv.yaml", "--public", "sample.parquet"), ("--out", "--public", "--force")),
    (("schema", "check", "csv.yaml", "people.yaml", "--anywhere"), ("--delimiter", *_BUCKET)),
    (("quality", PUBLISHED, "csv.yaml"), ("--rho", "--epsilon", "--marginal", "--json", "--store", "--private")),
    (("private-report", PUBLISHED, "csv.yaml"), ("--out", "--marginal", "--target", "--store", "--private")),
    (("abandon", "none", "--yes"), ("--store", "--private", *_BUCKET)),
    (("abandon", RUN, "parquet.yaml", "--yes"), ("--store", "--private", *_BUCKET)),
    (("clean", "parquet.yaml"), ("--set", "--json")),
    (("clean", "parquet.yaml", "--yes"), ("--json",)),
    (("release", "none.yaml"), ("--set", "--resume", "--new", "--quiet", "--log", "--json")),
    (
        ("selftest", "privacy", "--case", "none"),
        ("--case", "--runs", "--folders", "--thorough", "--jobs", "--seed", "--out", "--json"),
    ),
    (
        ("benchmark", "--datasets", "none", "--out", "bench"),
        (
            "--datasets", "--mechanisms", "--epsilons", "--seeds", "--degree", "--workload-seed", "--model-mb",
            "--metrics", "--data-dir", "--peers", "--jobs", "--json",
        ),
    ),
    (("load", "saved"), ()),
)  # fmt: skip
"""Each with its options. Those that would run for minutes are told of something that is not there."""

_FLAGS = ("--json", "--quiet", "--force", "--new", "--thorough")

_FIELDS = (
    "privacy.epsilon", "privacy.rho", "privacy.delta", "dataset", "schema", "source.path", "source.batch_rows",
    "algorithm.estimator", "algorithm.rounds", "algorithm.workload", "algorithm.max_model_size_mb",
    "algorithm.mechanism",
    "stores.root", "algorithm.workload.cliques", "algorithm.workload.degree", "algorithm.workload.max_cells",
    "generation.rows", "generation.seed",
    "account.cap",
    "source.decimal", "source.thousands", "source.dates", "source.datetimes", "source.trues", "source.falses",
    "source.encoding", "source.newlines_in_values", "source.delimiter", "source.nulls", "source.kind", "source.query",
    "algorithm.eta", "stores.private", "stores.releases",
    "runtime.workers", "runtime.scheduler", "privacy.person.max_rows", "privacy.person", "algorithm.max_fit_steps",
    ".", "",
)  # fmt: skip


def _command(rng: random.Random, _: Path) -> Case:
    words, options = rng.choice(_COMMANDS)
    given = list(words)
    for _ in range(rng.randrange(3)):
        option = rng.choice(options) if options else "--json"
        if option in _FLAGS:
            given.append(option)
        elif option == "--set":
            given += [option, f"{rng.choice(_FIELDS)}={rng.choice((*_WORDS, *map(str, _NUMBERS)))}"]
        else:
            given += [option, rng.choice((*_WORDS, *map(str, _NUMBERS)))]
    if rng.random() < 0.5:
        at = rng.randrange(len(given))
        given[at] = rng.choice(_WORDS)
    if given[:1] in (["release"], ["selftest"], ["benchmark"]):  # would be done if it were right
        given += {"release": [], "selftest": ["--case", "none"], "benchmark": ["--datasets", "none"]}[given[0]]
    return Case(tuple(given))


# What was saved and published


def _saved(rng: random.Random, stage: Path) -> Case:
    name = rng.choice(("synthesis.json", "model.npz", "model.npz"))
    return Case(("load", "saved"), {f"saved/{name}": _file(rng, stage / "saved" / name)})


def _published(rng: random.Random, stage: Path) -> Case:
    folder = stage / PUBLISHED
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    name = rng.choice(names)
    files: dict[str, bytes | str] = {f"{PUBLISHED}/{name}": _file(rng, folder / name)}
    if rng.random() < 0.1:
        files[f"{PUBLISHED}/{rng.choice(('x.txt', 'quality/a.json', 'quality/a.html'))}"] = rng.choice(
            (b"{}", FIFO, b"")
        )
    if rng.random() < 0.6:
        files |= _sealed(files, folder)
    command = rng.choice(
        (
            ("audit", PUBLISHED),
            ("audit", PUBLISHED, "--json", "--account", "store"),
            ("regenerate", PUBLISHED, "--out", "more.parquet", "--rows", "100"),
            ("quality", PUBLISHED, "--store", "store", "--rho", "0.001"),
            ("private-report", PUBLISHED, "csv.yaml", "--out", "private.html"),
            ("load", PUBLISHED),
        )
    )
    return Case(command, files)


def _sealed(files: dict[str, bytes | str], folder: Path) -> dict[str, bytes | str]:
    """The manifest and its seal as a forger would make them for these files."""
    name = f"{PUBLISHED}/manifest.json"
    data = files.get(name, (folder / "manifest.json").read_bytes())
    if not isinstance(data, bytes):
        return {}
    try:
        document = json.loads(data)
        for path, content in files.items():
            if isinstance(content, bytes) and path != name and path.rsplit("/", 1)[-1] in document["files"]:
                digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
                document["files"][path.rsplit("/", 1)[-1]] = digest
        if name not in files:
            data = json.dumps(document, indent=2).encode() + b"\n"
    except (ValueError, TypeError, KeyError):
        pass
    return {name: data, f"{PUBLISHED}/manifest.sha256": f"{hashlib.sha256(data).hexdigest()}  manifest.json\n".encode()}


def _state(rng: random.Random, stage: Path) -> Case:
    """Accounts and records that are damaged."""
    files = (path for path in (stage / "store").rglob("*") if path.is_file())
    below = sorted(path for path in files if "releases" not in path.parts or path.name == "latest.json")
    path = rng.choice(below)
    command = rng.choice(
        (
            ("budget", "people"),
            ("budget", "people", "--json"),
            ("plan", "parquet.yaml"),
            ("abandon", RUN, "--yes"),
            ("clean", "parquet.yaml", "--yes"),
            ("audit", PUBLISHED, "--account", "store"),
            ("audit", "store/releases/people/latest", "--account", "store"),
            ("quality", PUBLISHED, "--store", "store", "--rho", "0.001"),
        )
    )
    store = ("--store", "store") if command[0] in ("budget", "abandon") else ()
    return Case((*command, *store), {str(path.relative_to(stage)): _file(rng, path)})


def _file(rng: random.Random, path: Path) -> bytes | str:
    """Something else than the file there."""
    data = path.read_bytes()
    choice = rng.randrange(10)
    if choice == 0:
        return rng.choice((FIFO, ZERO, GONE, FOLDER))
    if choice == 1:
        return rng.choice((b"", b"{}", b"[]", b"null", b"PAR1PAR1", b"PK\x03\x04", b"[" * 10**6, b'{"a":' * 10**5))
    if choice < 6 and path.suffix == ".json":
        return json.dumps(_changed(rng, json.loads(data)), indent=2).encode() + b"\n"
    if choice < 7 and path.suffix == ".npz":
        return _archive(rng, data)
    if choice < 7 and path.suffix == ".parquet":
        return _retyped_or_repeated(rng, pq.read_table(io.BytesIO(data)))
    return _damaged(rng, data)


def _archive(rng: random.Random, data: bytes) -> bytes:
    """An npz file whose headers say other than is so, or that is much larger than it looks."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            content, kind = old.read(name), zipfile.ZIP_STORED
            if name == chosen:
                shape = rng.choice(
                    ("(100000000000000000000,)", "(-1,)", "(1000000000,)", "(0, 0)", "()", "(1.5,)", "(True,)")
                )
                descr = rng.choice(("'<i8'", "'|O'", "'<U1000000000'", "'<f8'", "[('a', '<i4', (1000,))]", "'|V99999'"))
                header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
                lying = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                match rng.randrange(4):
                    case 0:
                        content = lying + content[128:]
                    case 1:
                        content, kind = content + bytes(2**26), zipfile.ZIP_DEFLATED
                    case 2:
                        content = _damaged(rng, content)
                    case _:
                        content = _changed(rng, json.loads(content[128:])) if "document" in name else content[:-8]
                        content = json.dumps(content).encode() if not isinstance(content, bytes) else content
            new.writestr(zipfile.ZipInfo(name), content, kind)
    return buffer.getvalue()


def _retyped_or_repeated(rng: random.Random, table: pa.Table) -> bytes:
    if rng.random() < 0.5:
        return _retyped(rng, table)
    buffer = io.BytesIO()
    rows = table.to_pylist()
    at = rng.randrange(max(1, len(rows)))
    match rng.randrange(3):
        case 0:
            table = pa.concat_tables([table] * 30).slice(0, 5000)
        case 1:
            table = pa.Table.from_pylist(rows[:at] + rows[at + 1 :], schema=table.schema)
        case _:
            table = pa.concat_tables([table.slice(at, 1)] * 10**5)
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


KINDS: tuple[Callable[[random.Random, Path], Case], ...] = (
    _schema, _release, _csv, _parquet, _command, _saved, _published, _state, _written,
)  # fmt: skip


# Shrinking


def smaller(case: Case) -> list[Case]:
    """Cases with a part of this one left out, those that leave out most first."""
    found = [replace(case, files={p: d for p, d in case.files.items() if p != path}) for path in case.files]
    for path, data in case.files.items():
        if isinstance(data, bytes):
            size = len(data)
            for part in (2, 4, 8, 16):
                step = -(-size // part) if size else 0
                found += [
                    replace(case, files={**case.files, path: data[:at] + data[at + step :]})
                    for at in range(0, size, step or 1)
                ]
    for at in range(len(case.arguments) - 1, 1, -1):
        found.append(replace(case, arguments=(*case.arguments[:at], *case.arguments[at + 1 :])))
    return found
