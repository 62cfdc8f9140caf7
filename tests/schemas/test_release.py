import copy
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppsyn.schemas.files import SchemaFileError
from ppsyn.schemas.release import CsvSource, SqlSource, load_release

SECRET = "hunter2correcthorse"
LEAKY = f"postgresql://ann:{SECRET}@db.example.org/people"

FULL: dict[str, object] = {
    "dataset": "people",
    "source": {"kind": "csv", "path": {"url": "s3://bucket/table", "endpoint": "https://s3.example.org"}},
    "schema": "people.yaml",
    "privacy": {"epsilon": 1.0, "delta": 1e-9, "person": {"column": "who", "max_rows": 3}},
    "account": {"cap": {"epsilon": 10.0, "delta": 1e-9}},
    "algorithm": {"workload": {"cliques": [["age", "sex"], ["age"]]}, "rounds": 20, "estimator": "tree"},
    "generation": {"rows": 100, "seed": 7},
    "stores": {
        "root": {"url": "s3://bucket/x", "endpoint": "https://s3.example.org", "region": "eu", "credentials": "ROOT"},
        "private": "private",
        "releases": "s3://public/x",
    },
}
SQL = {"kind": "sql", "url": "postgresql://ann:${DB_PASSWORD}@db.example.org/people", "query": "SELECT * FROM t"}

PUBLIC = ("dataset", "schema", "privacy", "account", "algorithm", "generation")
"""Fields that nobody would put a password into, and that are told as they are."""


def write(folder: Path, document: object) -> Path:
    path = folder / "release.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def put(document: Mapping[str, object], field: str, value: object) -> dict[str, object]:
    """The document with a field changed, or removed if the value is `...`."""
    changed = copy.deepcopy(dict(document))
    inner, (*above, last) = changed, field.split(".")
    for step in above:
        inner = inner.setdefault(step, {})
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return changed


def faults(folder: Path, document: object, *settings: str) -> tuple[str, ...]:
    with pytest.raises(SchemaFileError) as caught:
        load_release(write(folder, document), settings)
    assert str(caught.value).count("release.yaml: ") == len(caught.value.problems)
    return caught.value.problems


# What a good file means


def test_a_full_file_is_read(tmp_path: Path) -> None:
    config = load_release(write(tmp_path, FULL))
    assert config.dataset == "people"
    assert config.privacy.person is not None
    assert config.privacy.person.max_rows == 3
    assert config.algorithm.workload.cliques == (("age", "sex"), ("age",))
    assert config.algorithm.rounds == 20
    assert config.stores.root.credentials == "ROOT"


def test_the_smallest_file_is_read(tmp_path: Path) -> None:
    names = ("dataset", "source", "schema", "privacy", "stores")
    config = load_release(write(tmp_path, {name: FULL[name] for name in names}))
    assert (config.account.cap, config.generation.rows, config.generation.seed) == (None, None, 0)


def test_the_example_is_read() -> None:
    root = Path(__file__).parents[2]
    config = load_release(root / "examples" / "adult" / "release.yaml")
    assert config.table == str(root / "schemas" / "tables" / "adult.yaml")
    assert config.stores.root.url == str(root / "out")
    assert not isinstance(config.source, SqlSource)
    assert config.source.path.url == str(root / "examples" / "adult" / "adult.parquet")


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    document = put(
        put(FULL, "source", {"kind": "csv", "path": "../table"}), "stores", {"root": "out", "private": "../p"}
    )
    write(tmp_path / "deep", document)
    monkeypatch.chdir(tmp_path)
    config = load_release("deep/release.yaml")
    assert isinstance(config.source, CsvSource)
    assert config.source.path.url == str(tmp_path / "table")
    assert config.table == str(tmp_path / "deep" / "people.yaml")
    assert config.stores.root.url == str(tmp_path / "deep" / "out")
    assert config.stores.private is not None
    assert config.stores.private.url == str(tmp_path / "p")
    assert config.stores.releases is None


def test_a_sqlite_file_is_seen_from_the_file_and_a_server_is_not(tmp_path: Path) -> None:
    relative = put(FULL, "source", {**SQL, "url": "sqlite:///data/t.db"})
    config = load_release(write(tmp_path, relative))
    assert isinstance(config.source, SqlSource)
    assert config.source.url == f"sqlite:///{tmp_path}/data/t.db"
    config = load_release(write(tmp_path, put(FULL, "source", SQL)))
    assert isinstance(config.source, SqlSource)
    assert (config.source.url, config.source.variables) == (SQL["url"], ("DB_PASSWORD",))


def test_a_sqlite_path_from_the_root_stays(tmp_path: Path) -> None:
    config = load_release(write(tmp_path, put(FULL, "source", {**SQL, "url": "sqlite:////data/t.db"})))
    assert isinstance(config.source, SqlSource)
    assert config.source.url == "sqlite:////data/t.db"


# What a bad file is told


BAD: list[tuple[str, object, str]] = [
    ("dataset", "People", "pattern"),
    ("dataset", "a/b", "pattern"),
    ("dataset", "a" * 65, "at most 64"),
    ("dataset", ..., "Expected this field to be given"),
    ("source", ..., "Expected this field to be given"),
    ("source.kind", "excel", "Expected one of 'csv', 'parquet', 'sql'"),
    ("source.kind", ..., "Expected one of"),
    ("source.delimiter", "::", "at most 1"),
    ("source.batch_rows", 0, "greater than or equal to 1"),
    ("source.pth", "x", "Expected no field of this name"),
    ("source.path.endpoint", "ftp://x", "http or https"),
    ("schema", ..., "Expected this field to be given"),
    ("schema", 3, "string"),
    ("privacy.epsilon", -1, "greater than 0"),
    ("privacy.epsilon", float("inf"), "finite"),
    ("privacy.epsilon", "much", "number"),
    ("privacy.delta", 1.5, "less than"),
    ("privacy.delta", ..., "Give epsilon and delta, or rho"),
    ("privacy.rho", 0.1, "not both"),
    ("privacy.person.max_rows", 0, "greater than or equal to 1"),
    ("privacy.person.column", ..., "Expected this field to be given"),
    ("account.cap.delta", ..., "Give epsilon and delta, or rho"),
    ("account.limit", 3, "Expected no field of this name"),
    ("algorithm.workload.cliques", [], "at least one marginal"),
    ("algorithm.workload.degree", 2, "not both"),
    ("algorithm.workload.cliques", "age", "tuple"),
    ("algorithm.estimator", "best", "tree"),
    ("algorithm.rounds", 0, "greater than or equal to 1"),
    ("algorithm.max_model_size_mb", 0, "greater than 0"),
    ("algorithm.model_mb", 2.0, "max_model_size_mb"),
    ("algorithm.partition", "grid", "got partition"),
    ("algorithm.mechanism", "aim", "Expected no rounds"),
    ("generation.rows", 0, "greater than or equal to 1"),
    ("generation.seed", 2**64, "less than"),
    ("generation.seed", 0.5, "integer"),
    ("stores.root", ..., "Expected this field to be given"),
    ("stores.root.url", "s3://", "s3://bucket/prefix"),
    ("stores.private", "gs://x", "a path, s3:// or memory://"),
    ("stores.elsewhere", "x", "Expected no field of this name"),
    ("nonsense", 1, "Expected no field of this name"),
]


@pytest.mark.parametrize(("field", "value", "rule"), BAD)
def test_a_fault_names_the_field_and_the_rule(tmp_path: Path, field: str, value: object, rule: str) -> None:
    problems = faults(tmp_path, put(FULL, field, value))
    above = field.split(".")
    named = {f"field {'.'.join(above[:depth])!r}" for depth in range(1, len(above) + 1)}
    assert any(rule in problem and problem.split(": ")[0] in named for problem in problems), problems


@pytest.mark.parametrize(
    ("runtime", "rule"),
    [
        ({"workers": 2, "scheduler": "tcp://h:1"}, "not both"),
        ({"workers": 0}, "greater than or equal to 1"),
        ({"parts": 3}, "Give workers or scheduler too"),
        ({"dashboard": True, "scheduler": "tcp://h:1"}, "Give workers too"),
        ({"scheduler": f"tcp://ann:{SECRET}@h:1"}, "pattern"),
        ({"scheduler": "h:8786"}, "pattern"),
        ({"marginals_mb": -1}, "greater than 0"),
        ({"cores": 3}, "Expected no field of this name"),
    ],
)
def test_a_fault_of_the_runtime_is_told(tmp_path: Path, runtime: object, rule: str) -> None:
    (fault,) = faults(tmp_path, put(FULL, "runtime", runtime))
    assert "'runtime" in fault
    assert rule in fault
    assert SECRET not in fault


def test_workers_cannot_share_a_store_in_memory(tmp_path: Path) -> None:
    spread = put(FULL, "runtime", {"workers": 2})
    assert load_release(write(tmp_path, spread)).runtime.part_count == 8
    (fault,) = faults(tmp_path, put(spread, "stores.private", "memory://x"))
    assert "stores in memory" in fault


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    document = put(FULL, "dataset", "NO")
    for field, value in (("privacy.epsilon", -1), ("generation.seed", -1), ("stores.private", "gs://x"), ("extra", 1)):
        document = put(document, field, value)
    told = "\n".join(faults(tmp_path, document))
    for field in ("dataset", "privacy.epsilon", "generation.seed", "stores.private", "extra"):
        assert f"field '{field}'" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("dataset: [", "line 1"),
        ("a: 1\nb: 2\n c: 3", "line 3"),
        ("dataset: a\ndataset: b", "once"),
        ("generation: {seed: 010}", "plain decimal digits"),
        ("- a\n- b", "Expected fields"),
        ("just text", "Expected fields"),
        ("", "Expected fields"),
        ("dataset: !!python/object:os.system {}", "could not determine a constructor"),
        ("a: 1\n---\nb: 2", "another document"),
    ],
)
def test_a_file_that_is_not_a_document_is_told_where(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaFileError, match=told):
        load_release(tmp_path / "release.yaml")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: \x00", b"\x80"])
def test_a_file_that_is_not_text_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "release.yaml").write_bytes(data)
    with pytest.raises(SchemaFileError):
        load_release(tmp_path / "release.yaml")


def test_no_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SchemaFileError, match="Expected a readable file"):
            load_release(path)


@pytest.mark.parametrize(
    "text",
    [
        "dataset: !!timestamp hello",
        "dataset: !!bool maybe",
        "dataset: !!map [a]",
        "dataset: !!float x",
        "dataset: 2020-13-45",
        "dataset: !!binary x",
        "dataset: !!omap {a: 1}",
        "dataset: &a [*a]",
        "? [a, b]\n: 1",
        "? {a: b}\n: 1",
        "1: 2",
        "null: 2",
        "<<: 3",
        "dataset: " + "9" * 5000,
        "dataset: " + "[" * 1000 + "]" * 1000,
    ],
)
def test_odd_yaml_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaFileError):
        load_release(tmp_path / "release.yaml")


# Settings


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("dataset=others", "dataset", "others"),
        ("privacy.epsilon=0.5", "privacy.epsilon", 0.5),
        ("privacy.person.max_rows=9", "privacy.person.max_rows", 9),
        ("privacy.person=null", "privacy.person", None),
        ("account.cap={rho: 2.0}", "account.cap.rho", 2.0),
        ("account={}", "account.cap", None),
        ("algorithm.workload={degree: 2}", "algorithm.workload.degree", 2),
        ("algorithm.workload.cliques=[[a, b], [c]]", "algorithm.workload.cliques", (("a", "b"), ("c",))),
        ("algorithm.rounds=3", "algorithm.rounds", 3),
        ("algorithm.max_model_size_mb = 2.5", "algorithm.max_model_size_mb", 2.5),
        ("generation.rows=null", "generation.rows", None),
        ("generation.seed=18446744073709551615", "generation.seed", 2**64 - 1),
        ("source.nulls=['', NA]", "source.nulls", ("", "NA")),
        ("source.path.region=eu=1", "source.path.region", "eu=1"),
        ("stores.root.url=s3://other/x", "stores.root.url", "s3://other/x"),
        ("stores.releases=null", "stores.releases", None),
    ],
)
def test_any_field_can_be_set(tmp_path: Path, setting: str, path: str, value: object) -> None:
    found: object = load_release(write(tmp_path, FULL), [setting])
    for step in path.split("."):
        found = getattr(found, step)
    assert found == value


def test_a_field_that_the_file_leaves_out_can_be_set(tmp_path: Path) -> None:
    document = {name: FULL[name] for name in ("dataset", "source", "schema", "privacy", "stores")}
    config = load_release(write(tmp_path, document), ["generation.seed=3", "account.cap={rho: 1}"])
    assert config.generation.seed == 3


def test_a_later_setting_wins_and_paths_in_settings_are_seen_from_the_file(tmp_path: Path) -> None:
    settings = ["dataset=a", "dataset=b", "stores={root: here}", "schema=there.yaml"]
    config = load_release(write(tmp_path, FULL), settings)
    assert (config.dataset, config.stores.root.url) == ("b", str(tmp_path / "here"))
    assert config.table == str(tmp_path / "there.yaml")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("dataset", "field.field=value"),
        ("=1", "field.field=value"),
        ("a..b=1", "field.field=value"),
        (".a=1", "field.field=value"),
        ("dataset.name=1", "'dataset' holds a plain value"),
        ("algorithm.workload.cliques.0=a", "'cliques' holds a plain value"),
        ("privacy.epsilon=[1", "to be YAML"),
        ("privacy.epsilon={a: 1, a: 2}", "to be YAML"),
        ("privacy.epsilon=2020-13-45", "privacy.epsilon"),
        ("privacy.epsilon=" + "9" * 5000, "privacy.epsilon"),
        ("generation.seed=010", "generation.seed"),
        ("privacy.epsilon=", "Give epsilon and delta"),
        ("privacy.epsilno=1", "field 'privacy.epsilno'"),
        ("schema=", "field 'schema'"),
    ],
)
def test_a_setting_that_cannot_be_is_told(tmp_path: Path, setting: str, told: str) -> None:
    problems = faults(tmp_path, FULL, setting)
    assert any(told in problem for problem in problems), problems


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(max_size=12), value=st.text(max_size=12))
def test_any_setting_is_taken_or_refused_in_words(tmp_path: Path, name: str, value: str) -> None:
    try:
        load_release(write(tmp_path, FULL), [f"{name}={value}"])
    except SchemaFileError:
        return


# Passwords


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@host/db",
        f"postgresql://:{SECRET}@host/db",
        f"postgresql://ann:{SECRET}${{X}}@host/db",
        f"postgresql://ann:{SECRET}/x@host/db",
        f"postgresql://ann:{SECRET}@x@host/db",
        f"postgresql://ann:{SECRET} x@host/db",
        f"postgresql://ann:x:{SECRET}@host/db",
        f"postgresql://ann@host/db?password={SECRET}",
        f"postgresql://ann@host/db?sslmode=require&password={SECRET}",
        f"postgresql://ann@host/db?sslpassword={SECRET}",
        f"postgresql://ann:%68{SECRET}@host/db",
        f"mysql://ann:{SECRET}@host/db",
    ],
)
def test_a_password_in_the_address_of_a_database_is_refused_and_not_told(tmp_path: Path, url: str) -> None:
    told = faults(tmp_path, put(FULL, "source", {**SQL, "url": url}))
    assert SECRET not in " ".join(told)
    assert any("source" in problem for problem in told)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:${DB_PASSWORD}@host/db",
        "postgresql://${DB_USER}:${DB_PASSWORD}@host:5432/db?sslmode=require",
        "postgresql://ann@host/db",
        "postgresql://host/db",
        "postgresql:///db",
        "postgresql://ann@host/db?password=${DB_PASSWORD}",
        "sqlite:///a:b@c.db",
    ],
)
def test_an_address_whose_password_is_in_the_environment_is_taken(tmp_path: Path, url: str) -> None:
    assert isinstance(load_release(write(tmp_path, put(FULL, "source", {**SQL, "url": url}))).source, SqlSource)


def leaves(document: object, above: str = "") -> Iterator[str]:
    """All fields, those that hold others included."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield f"{above}{name}"
            yield from leaves(value, f"{above}{name}.")


_ODD = (LEAKY, [LEAKY], {"url": LEAKY}, {"nested": {"deep": LEAKY}}, SECRET)
_ADDRESSES = [field for field in leaves(FULL) if field.split(".")[0] not in PUBLIC and not field.endswith(".region")]


@pytest.mark.parametrize("field", [*_ADDRESSES, "source.url", "source.query", "source.password"])
@pytest.mark.parametrize("source", [FULL["source"], SQL], ids=["csv", "sql"])
def test_a_password_in_a_field_that_may_hold_an_address_is_never_told(
    tmp_path: Path, field: str, source: dict[str, object]
) -> None:
    whole = put(FULL, "source", source)
    if field.startswith("source.path."):
        whole = put(whole, "source.path", {"url": "s3://bucket/x"})
    for value in _ODD:
        assert SECRET not in told(write(tmp_path, put(whole, field, value)))


def told(path: Path) -> str:
    """The text of the error, if there is one."""
    try:
        load_release(path)
    except SchemaFileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "setting",
    [
        f"source.url={LEAKY}",
        f"source={LEAKY}",
        f"stores.root={LEAKY}",
        f"stores.root.credentials={SECRET}",
        f"source.url {LEAKY}",
        f"source.url=[{LEAKY}",
    ],
)
def test_a_password_in_a_setting_is_never_told(tmp_path: Path, setting: str) -> None:
    assert SECRET not in " ".join(faults(tmp_path, FULL, setting))


@pytest.mark.parametrize("text", [f"source: {{url: '{LEAKY}'", f"source:\n  url: {LEAKY}\n bad"])
def test_a_password_in_a_file_that_is_not_yaml_is_never_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaFileError) as caught:
        load_release(tmp_path / "release.yaml")
    assert SECRET not in str(caught.value)


# Anything at all


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.datetimes()
    | st.binary(max_size=4)
    | st.sampled_from(["csv", "parquet", "sql", "s3://bucket", "memory://x", "out", 1.0, 1e-9, "sqlite:///x"])
)
_names = st.sampled_from(sorted({step for field in leaves(FULL) for step in field.split(".")} | {"kind", "url", "x"}))
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names | st.integers() | st.none(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=_values, changes=st.dictionaries(st.sampled_from(sorted(leaves(FULL))), _values, max_size=3))
def test_any_document_is_read_or_refused_in_words(tmp_path: Path, document: object, changes: dict[str, object]) -> None:
    for candidate in (document, _changed(changes)):
        assert not told(write(tmp_path, candidate)) or "release.yaml: " in told(write(tmp_path, candidate))


def _changed(changes: dict[str, object]) -> dict[str, object]:
    document = copy.deepcopy(FULL)
    for field, value in changes.items():
        try:
            document = put(document, field, value)
        except (AttributeError, TypeError):  # an earlier change took the fields below it away
            continue
    return document


_TOKENS = "a dataset : - [ ] { } , !! !!int !!set &a *a ' | > # % @ ` ? 1 0x1f 1e5 .inf ~ 2020-01-01 << \\ é ---"
_tokens = st.sampled_from([*_TOKENS.split(), " ", "  ", "\n", "\t", '"', "- ", ": "])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(_tokens, max_size=25).map("".join) | st.text(max_size=30))
def test_any_text_is_read_or_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(SchemaFileError):
        load_release(tmp_path / "release.yaml")
