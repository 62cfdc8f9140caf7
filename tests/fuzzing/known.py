"""Cases that once hung, took gigabytes, ended in a traceback or spent; those that the fuzzer found are in `kept`."""

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fuzzing.cases import FIFO, ZERO, Case
from fuzzing.stage import PUBLISHED, people

KEPT = Path(__file__).parent / "kept"

_PLAN = ("plan", "parquet.yaml")


def known(stage: Path) -> Iterator[tuple[str, Case]]:
    """Each with its name."""
    nested = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    nested += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    merged = "a0: &a0 {k: v}\n"
    merged += "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9))
    for name, schema in (
        ("nested anchors", f"{nested}name: t\ncolumns: *a8\n"),
        ("anchors merged", f"{merged}name: t\ncolumns: [*a8]\n"),
        ("an anchor in itself", "name: t\ncolumns: &a [*a]\n"),
        ("deep lists", "[" * 200_000),
        ("a million edges", _column(f"kind: real, edges: [{', '.join(map(str, range(10**6)))}]")),
        ("two hundred thousand edges", _column(f"kind: real, edges: [{', '.join(map(str, range(200_000)))}]")),
        ("twenty thousand columns", "name: t\ncolumns:\n" + "- {name: c, kind: boolean, nullable: true}\n" * 20_000),
        ("many bins", "name: t\ncolumns:\n" + "- {name: c, kind: real, lower: 0, upper: 1, bins: 100000}\n" * 900),
        ("a long name", f"name: {'x' * 10**6}\ncolumns: []\n"),
    ):
        yield name, Case(_PLAN, {"people.yaml": schema.encode()})
    yield "a schema that is a pipe", Case(_PLAN, {"people.yaml": FIFO})
    yield "a schema without an end", Case(_PLAN, {"people.yaml": ZERO})
    yield "a release file that is a pipe", Case(_PLAN, {"parquet.yaml": FIFO})
    for name, word in (
        ("NUL", "a\0b"),
        ("half a character", "\udcff"),
        ("a long path", "a/" * 5000),
        ("long", "a" * 300),
    ):
        yield f"{name} for a file", Case(("plan", word))
        yield f"{name} for a release", Case(("audit", word))
        yield f"{name} for a store", Case(("budget", "people", "--store", word))
        yield f"{name} for a dataset", Case(("budget", word, "--store", "store"))
        yield f"{name} for a table", Case(("schema", "draft", word))
        yield f"{name} in a setting", Case((*_PLAN, "--set", f"source.path={word}"))
        yield f"{name} to write to", Case(("regenerate", PUBLISHED, "--out", word))
    for rows in ("10" * 15, "-1", "1"):
        yield f"plan of {rows} rows", Case((*_PLAN, "--rows", rows))
    for name, model in _models((stage / "saved" / "model.npz").read_bytes()):
        yield f"{name}, saved", Case(("load", "saved"), {"saved/model.npz": model})
    document = json.loads((stage / "saved" / "synthesis.json").read_text())
    document["budget"] = "1e999999999"
    yield "a budget of many digits", Case(("load", "saved"), {"saved/synthesis.json": json.dumps(document).encode()})
    table = pa.Table.from_pandas(people(), preserve_index=False)
    views = table.set_column(0, "sex", table["sex"].cast(pa.string_view()))
    buffer = io.BytesIO()
    pq.write_table(views, buffer)
    for command in (
        _PLAN,
        ("ingest", "parquet.yaml"),
        ("schema", "check", "parquet.yaml", "people.yaml", "--anywhere"),
    ):
        yield f"string_view, {command[0]}", Case(command, {"people.parquet": buffer.getvalue()})
    for name in ("model.npz", "synthetic.parquet", "manifest.json", "report.html"):
        changed = (stage / PUBLISHED / name).read_bytes() + b" "
        command = ("quality", PUBLISHED, "--store", "store", "--rho", "0.001")
        yield f"quality of a release whose {name} was changed", Case(command, {f"{PUBLISHED}/{name}": changed})
    yield "a manifest that is a pipe", Case(("audit", PUBLISHED), {f"{PUBLISHED}/manifest.json": FIFO})


def _column(fields: str) -> str:
    return f"name: t\ncolumns:\n- {{name: a, {fields}}}\n"


def _models(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "an archive of zeros", _repacked(data, "counts0.npy", bytes(2**32 // 16), zipfile.ZIP_DEFLATED)
    for shape in ("(100000000000000000000,)", "(1000000000,)", "(-5,)"):
        header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64)
        yield f"a shape of {shape}", _repacked(data, "counts0.npy", array, zipfile.ZIP_STORED)


def _repacked(data: bytes, changed: str, content: bytes, kind: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            is_changed = name == changed
            new.writestr(zipfile.ZipInfo(name), content if is_changed else old.read(name), kind if is_changed else 0)
    return buffer.getvalue()


def kept() -> Iterator[tuple[str, Case]]:
    """What the fuzzer found, shrunk."""
    for path in sorted(KEPT.glob("*.json")):
        yield path.stem, Case.from_json(path.read_text(encoding="utf-8"))
