import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner, Result
from support.published import ABANDONED, OPEN, RUN, SCHEMA, TINY, Published, copied, manifest_of, people, shared_release
from support.terminals import on_a_terminal

from ppsyn import errors
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit, exit_of
from ppsyn.releases.layout import MANIFEST, SEAL, SYNTHETIC, VALIDATION

PPSYN = str(Path(sys.executable).parent / "ppsyn")


def every_command(group: click.Group = main, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, those of groups among them."""
    for name, command in sorted(group.commands.items()):
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*above, name))


COMMANDS = list(every_command())


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Path:
    """A copy of the store, to be changed."""
    return copied(Path(release.ref.root.url), tmp_path / "store")


@pytest.fixture
def folder(release: Published, tmp_path: Path) -> Path:
    """A copy of the release, to do harm to."""
    return copied(release.folder, tmp_path / "copy")


def ppsyn(*arguments: object, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=answer)


def refused(result: Result, code: Exit, *told: str) -> None:
    """The right exit code, and a few plain sentences on standard error."""
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert 0 < len(result.stderr.strip().splitlines()) <= 6
    assert "Traceback" not in result.stderr
    for text in told:
        assert text in result.stderr


def files(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def write_release(folder: Path, **changes: object) -> Path:
    """A release file with its schema and its table."""
    folder.mkdir(parents=True, exist_ok=True)
    people().to_parquet(folder / "people.parquet", index=False)
    (folder / "people.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    document = {
        "dataset": "people",
        "source": {"kind": "parquet", "path": "people.parquet"},
        "schema": "people.yaml",
        "stores": {"root": "store"},
        **TINY,
        **changes,
    }
    (folder / "release.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return folder / "release.yaml"


# Help


def test_help_needs_neither_prefect_nor_the_library() -> None:
    slow = (
        "prefect",
        "pandas",
        "numpy",
        "great_expectations",
        "ppsyn.schemas.types",
        "pydantic",
        "pyarrow",
        "rich",
    )
    code = f"import sys, ppsyn.flows.cli.main; print([name for name in {slow} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--version"], ["release", "--help"]),
        *(pytest.param([*name, "--help"], marks=pytest.mark.slow) for name in COMMANDS if name != ("release",)),
    ],
)
def test_help_is_there_from_the_console(arguments: list[str]) -> None:
    told = subprocess.run([PPSYN, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(("Usage: ppsyn", "ppsyn, version"))


def help_of(*command: str) -> str:
    return ppsyn(*command, "--help").stdout


def examples(*command: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in help_of(*command).splitlines() if line.strip().startswith("ppsyn ")]


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_of_itself(name: tuple[str, ...]) -> None:
    assert re.search(r"^ +Examples?:$", help_of(*name), re.MULTILINE)
    assert any(tuple(example[: len(name)]) == name for example in examples(*name))


def parsed(example: list[str]) -> tuple[click.Command, dict[str, object]]:
    """The command that an example gives, and its parameters."""
    command: click.Command = main
    rest = example
    with click.Context(main, info_name="ppsyn") as context:
        while isinstance(command, click.Group) and rest and rest[0] in command.commands:
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command = found
        with command.make_context(" ".join(example), rest, parent=context) as made:
            return command, made.params


@pytest.mark.parametrize("example", [e for name in ((), *COMMANDS) for e in examples(*name)], ids=" ".join)
def test_examples_parse(example: list[str]) -> None:
    command, parameters = parsed(example)
    assert command is not main
    assert parameters


def command_of(name: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for word in name:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return command


def test_every_option_says_what_it_is_for() -> None:
    for name in COMMANDS:
        for option in command_of(name).params:
            assert isinstance(option, click.Argument) or getattr(option, "help", None), option.name


def test_help_tells_the_exit_codes_that_there_are() -> None:
    told = {int(code) for code in re.findall(r"^ +(\d+)  \S", help_of(), re.MULTILINE)}
    assert told == {0, 1, *map(int, Exit)}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), Exit.MISTAKE),
        (errors.SchemaError("x"), Exit.MISTAKE),
        (errors.SourceError("x"), Exit.MISTAKE),
        (errors.DomainRefusedError("a", "b"), Exit.MISTAKE),
        (errors.ModelTooLargeError(2, 1, {"zip": 9}), Exit.MISTAKE),
        (errors.AccountError("x"), Exit.BUDGET),
        (errors.CapExceededError("a", 1, 2, 3), Exit.BUDGET),
        (errors.BudgetExceededError(1, 2), Exit.BUDGET),
        (errors.RunError("x"), Exit.RESUME),
        (errors.ResumeRefusedError("a", ["b"]), Exit.RESUME),
        (errors.RunTakenError("a"), Exit.RESUME),
        (errors.StoreError("x"), Exit.STORE),
        (errors.MissingError("x"), Exit.STORE),
        (errors.InvariantError("x"), None),
        (ValueError("x"), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_kind_of_failure_has_its_exit_code(error: Exception, code: Exit | None) -> None:
    assert exit_of(error) == code


# Mistakes


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"datset": "x"}, "field 'datset': Expected no field of this name."),
        ({"schema": "none.yaml"}, "none.yaml: Expected a readable file"),
        ({"privacy": {"epsilon": -1, "delta": 1e-6}}, "field 'privacy.epsilon'"),
    ],
)
def test_a_mistake_in_the_release_file_is_told(tmp_path: Path, change: dict[str, object], told: str) -> None:
    file = write_release(tmp_path, **change)
    before = files(tmp_path)
    refused(ppsyn("release", file), Exit.MISTAKE, told)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.yaml"], "none.yaml: Expected a readable file"),
        (["bad.yaml"], "bad.yaml: line 1"),
        (["release.yaml", "--set", "nonsense"], "field.field=value"),
        (["release.yaml", "--set", "privacy.epsilon=[1"], "'privacy.epsilon' to be YAML"),
        (["release.yaml", "--set", "privacy.epsilno=1"], "field 'privacy.epsilno'"),
        (["release.yaml", "--set", "dataset.a=1"], "'dataset' holds a plain value"),
        (["release.yaml", "--set", "generation.rows=2020-13-45"], "generation.rows"),
        (["release.yaml", "--resume"], "requires an argument"),
        (["release.yaml", "--unknown"], "No such option"),
        ([], "Missing argument 'FILE'"),
        (["."], "is a directory"),
    ],
)
def test_a_mistake_in_the_release_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    write_release(tmp_path)
    (tmp_path / "bad.yaml").write_text("dataset: [", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    refused(ppsyn("release", *arguments), Exit.MISTAKE, told)
    assert files(tmp_path) == before


def test_a_mistake_from_the_console_is_told_at_once_and_without_prefect(tmp_path: Path) -> None:
    home = tmp_path / "prefect"
    told = subprocess.run(
        [PPSYN, "release", "none.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PREFECT_HOME": str(home)},
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "none.yaml: Expected a readable file: No such file or directory.\n"
    assert not home.exists()


PLACED = {
    "budget": ["budget", "people", "--store"],
    "abandon": ["abandon", RUN, "--yes", "--store"],
    "audit": ["audit"],
    "regenerate": ["regenerate", "--out", "x.parquet"],
}


@pytest.mark.parametrize("name", PLACED)
def test_a_folder_that_is_not_there_is_told_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(ppsyn(*PLACED[name], "nowhere"), Exit.MISTAKE, "Expected a folder at nowhere, got none.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("location", ["gs://bucket/x", "s3://B", "s3://", "http://host", ""])
def test_a_place_that_cannot_be_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, location: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(ppsyn(*PLACED[name], location), Exit.MISTAKE)


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("credentials", ["lower", "A B", "", "S3CR3T:abc"])
def test_a_name_of_credentials_that_cannot_be_is_told_without_it(name: str, credentials: str) -> None:
    result = ppsyn(*PLACED[name], "s3://bucket/x", "--credentials", credentials)
    refused(result, Exit.MISTAKE)
    assert "S3CR3T" not in result.stderr


@pytest.mark.parametrize("name", PLACED)
def test_keys_that_the_environment_does_not_hold_are_told(name: str) -> None:
    refused(
        ppsyn(*PLACED[name], "s3://bucket/x", "--credentials", "NOBODYS", "--endpoint", "http://127.0.0.1:1"),
        Exit.STORE,
        "NOBODYS_ACCESS_KEY_ID",
    )


def test_a_folder_without_a_release_is_told(tmp_path: Path) -> None:
    refused(ppsyn("regenerate", tmp_path, "--out", tmp_path / "x.csv"), Exit.MISTAKE, "There is no release in")
    assert list(tmp_path.iterdir()) == []
    found = ppsyn("audit", tmp_path)
    assert (found.exit_code, list(tmp_path.iterdir())) == (Exit.AUDIT, [])
    assert "There is no" in found.output


# The account


def test_an_unknown_dataset_is_told_with_those_that_there_are(release: Published) -> None:
    refused(ppsyn("budget", "poeple", "--store", release.ref.root.url), Exit.BUDGET, "Accounts there: people.")


@pytest.mark.parametrize("dataset", ["../people", "a/b", "..", "/"])
def test_a_name_that_leads_elsewhere_is_told(release: Published, dataset: str) -> None:
    result = ppsyn("budget", dataset, "--store", release.ref.root.url)
    assert result.exit_code in (Exit.MISTAKE, Exit.BUDGET)
    assert isinstance(result.exception, SystemExit)


def test_the_budget_is_shown_with_all_its_releases(release: Published) -> None:
    result = ppsyn("budget", "people", "--store", release.ref.root.url)
    assert (result.exit_code, result.stderr) == (0, "")
    for run, state in ((RUN, "published"), (OPEN, "open"), (ABANDONED, "abandoned")):
        assert re.search(rf"^{run} +{state} ", result.stdout, re.MULTILINE)


def test_the_budget_as_json_says_what_the_text_says(release: Published) -> None:
    text = ppsyn("budget", "people", "--store", release.ref.root.url).stdout
    found = json.loads(ppsyn("budget", "people", "--store", release.ref.root.url, "--json").stdout)
    for name in ("cap", "spent", "reserved", "left"):
        assert re.search(rf"^{name} +{found[name]['rho_value']:.6g} ", text, re.MULTILINE)
    for part in found["releases"]:
        assert re.search(rf"^{part['run']} +{part['state']} +{part['charges']} ", text, re.MULTILINE)


def test_the_store_may_be_named_by_the_environment(release: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSYN_STORE", release.ref.root.url)
    assert ppsyn("budget", "people").exit_code == 0


def test_the_cap_is_changed_and_shown(store: Path) -> None:
    found = json.loads(ppsyn("budget", "people", "--store", store, "--set-cap", "12", "--json").stdout)
    assert found["cap"]["epsilon"] == pytest.approx(12)


@pytest.mark.parametrize(("cap", "code"), [("1", 3), ("0", 2), ("-3", 2), ("nan", 2), ("much", 2)])
def test_a_cap_that_cannot_be_changes_nothing(store: Path, cap: str, code: int) -> None:
    before = files(store)
    refused(ppsyn("budget", "people", "--store", store, "--set-cap", cap), Exit(code))
    assert files(store) == before


def test_abandon_asks_and_a_yes_frees_the_budget(store: Path) -> None:
    before = json.loads(ppsyn("budget", "people", "--store", store, "--json").stdout)
    result = ppsyn("abandon", OPEN, "--store", store, answer="y\n")
    assert result.exit_code == 0
    assert f"Abandon run {OPEN} for good?" in result.output
    after = json.loads(ppsyn("budget", "people", "--store", store, "--json").stdout)
    assert after["reserved"]["rho_value"] == 0
    assert after["left"]["rho_value"] == pytest.approx(before["left"]["rho_value"] + before["reserved"]["rho_value"])
    assert after["spent"] == before["spent"]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_whoever_does_not_say_yes_changes_nothing_and_is_not_told_of_a_defect(store: Path, answer: str) -> None:
    before = files(store)
    result = ppsyn("abandon", OPEN, "--store", store, answer=answer)
    assert files(store) == before
    assert result.exit_code not in (0, 1)


def test_abandon_does_not_ask_if_told_so(store: Path) -> None:
    result = ppsyn("abandon", OPEN, "--store", store, "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "is abandoned" in result.stdout
    assert "?" not in result.stdout


@pytest.mark.parametrize(("run", "code"), [(RUN, 3), ("20310101-000000-00000000", 4), ("../x", 4)])
def test_a_run_that_is_published_or_none_is_refused(store: Path, run: str, code: int) -> None:
    before = files(store)
    refused(ppsyn("abandon", run, "--store", store, "--yes"), Exit(code))
    assert files(store) == before


def test_a_private_store_elsewhere_is_cleared(store: Path, tmp_path: Path) -> None:
    private = tmp_path / "private" / "runs" / OPEN / "private"
    private.mkdir(parents=True)
    (private / "table.json").write_text("{}", encoding="utf-8")
    assert ppsyn("abandon", OPEN, "--store", store, "--private", tmp_path / "private", "--yes").exit_code == 0
    assert not private.exists()


# Audit


def test_a_clean_release_passes(release: Published) -> None:
    result = ppsyn("audit", release.folder, "--account", release.ref.root.url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(line.startswith("ok    ") for line in result.stdout.splitlines())
    assert result.stdout.splitlines()[-1] == "ok    account"


def test_a_changed_file_is_named_with_the_exit_code_of_an_audit(folder: Path) -> None:
    (folder / VALIDATION).write_bytes(b"{}")
    result = ppsyn("audit", folder)
    assert result.exit_code == Exit.AUDIT
    assert f"WRONG {VALIDATION}: " in result.stdout


def test_an_audit_as_json_says_what_the_text_says(folder: Path) -> None:
    for is_clean in (True, False):
        text, found = ppsyn("audit", folder), ppsyn("audit", folder, "--json")
        document = json.loads(found.stdout)
        assert (document["ok"], found.exit_code) == (is_clean, text.exit_code) == (is_clean, 0 if is_clean else 5)
        lines = [
            f"ok    {f['subject']}" if f["problem"] is None else f"WRONG {f['subject']}: {f['problem']}"
            for f in document["findings"]
        ]
        assert text.stdout.splitlines() == lines
        (folder / SYNTHETIC).write_bytes(b"")


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff"])
def test_a_release_with_a_spoilt_manifest_fails_the_audit_with_an_account_too(
    release: Published, folder: Path, data: bytes
) -> None:
    (folder / MANIFEST).write_bytes(data)
    for more in ([], ["--account", release.ref.root.url]):
        result = ppsyn("audit", folder, *more)
        assert (result.exit_code, "Traceback" in result.output) == (Exit.AUDIT, False)


def test_a_release_without_a_seal_fails_the_audit(folder: Path) -> None:
    (folder / SEAL).unlink()
    assert ppsyn("audit", folder).exit_code == Exit.AUDIT


def test_an_account_elsewhere_fails_the_audit(release: Published, tmp_path: Path) -> None:
    result = ppsyn("audit", release.folder, "--account", tmp_path)
    assert result.exit_code == Exit.AUDIT
    assert "WRONG account: " in result.stdout


# Regenerate


def regenerated(release: Published, out: Path, *options: object) -> pd.DataFrame:
    result = ppsyn("regenerate", release.folder, "--out", out, *options)
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet(out)
    assert result.stdout == f"{len(frame)} rows in {out}\n"
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return frame


def test_regenerating_gives_the_published_table_to_the_byte(release: Published, tmp_path: Path) -> None:
    regenerated(release, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (release.folder / SYNTHETIC).read_bytes()


def test_equal_seeds_give_equal_rows_and_others_do_not(release: Published, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    first, again, other = (regenerated(release, out, "--rows", 500, "--seed", seed) for seed in (7, 7, 8))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert not first.equals(other)
    assert len(other) == 500


def test_no_rows_are_a_table_with_its_types(release: Published, tmp_path: Path) -> None:
    frame = regenerated(release, tmp_path / "none.parquet", "--rows", 0)
    assert len(frame) == 0
    assert frame.dtypes.to_dict() == pd.read_parquet(release.folder / SYNTHETIC).dtypes.to_dict()


def test_regenerating_as_json_says_what_the_text_says(release: Published, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    found = json.loads(ppsyn("regenerate", release.folder, "--out", out, "--rows", 9, "--seed", 3, "--json").stdout)
    assert found == {"release": str(release.folder), "rows": 9, "seed": 3, "out": str(out)}


@pytest.mark.parametrize("out", ["nowhere/x.parquet", "/proc/x.parquet", "file.txt/x.parquet"])
def test_a_file_that_cannot_be_written_is_told(
    release: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.txt").touch()
    refused(ppsyn("regenerate", release.folder, "--out", out), Exit.STORE, f"Cannot write {out}")
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(("option", "value"), [("--rows", "-1"), ("--rows", "x"), ("--seed", "-1"), ("--out", ".")])
def test_an_option_that_cannot_be_is_told(release: Published, tmp_path: Path, option: str, value: str) -> None:
    refused(ppsyn("regenerate", release.folder, "--out", tmp_path / "x", option, value), Exit.MISTAKE)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_replaced_at_once(release: Published, tmp_path: Path) -> None:
    out, stop, seen = tmp_path / "rows.parquet", threading.Event(), list[int]()
    regenerated(release, out, "--rows", 10)

    def watch() -> None:
        while not stop.is_set():
            seen.append(pq.read_metadata(out).num_rows)

    watcher = threading.Thread(target=watch)
    watcher.start()
    regenerated(release, out, "--rows", 300_000)
    stop.set()
    watcher.join()
    assert set(seen) <= {10, 300_000}
    assert seen[0] == 10


def test_a_file_that_is_there_stays_if_the_release_is_damaged(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    out.write_bytes(b"old")
    (folder / "model.npz").write_bytes(b"PK")
    refused(ppsyn("regenerate", folder, "--out", out), Exit.MISTAKE)
    assert out.read_bytes() == b"old"


def test_what_is_not_a_file_is_not_replaced_by_one(release: Published, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    refused(ppsyn("regenerate", release.folder, "--out", tmp_path / "pipe.csv"), Exit.STORE)
    assert (tmp_path / "pipe.csv").is_fifo()


# A terminal


def test_a_terminal_sees_colours_unless_it_wants_none() -> None:
    command = [PPSYN, "release", "none.yaml"]
    assert "\x1b[31m" in on_a_terminal(command)
    assert "\x1b[" not in on_a_terminal(command, NO_COLOR="1")


def test_an_audit_has_no_colours_for_whoever_wants_none(release: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = CliRunner().invoke(main, ["audit", str(release.folder)], color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = CliRunner().invoke(main, ["audit", str(release.folder)], color=True)
    assert "\x1b[32m" in coloured.stdout
    assert "\x1b[" not in plain.stdout


def test_no_run_name_is_cut_on_a_terminal_and_no_colour_is_used(release: Published) -> None:
    seen = on_a_terminal([PPSYN, "budget", "people", "--store", release.ref.root.url], NO_COLOR="1")
    assert all(run in seen for run in (RUN, OPEN, ABANDONED))
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", seen)


# A release, with Prefect


def console(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [PPSYN, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_a_release_from_the_console_is_told_as_json_and_quietly(
    tmp_path: Path,
    prefect_api: str,
) -> None:
    write_release(tmp_path)
    told = console(tmp_path, "release", "release.yaml", "--quiet", "--json", "--set", "generation.rows=50")
    assert (told.returncode, told.stderr) == (0, "")
    found = json.loads(told.stdout)
    manifest = manifest_of(Path(found["release"]))
    assert (found["dataset"], found["run"], found["rows"]) == ("people", manifest.run, 50)
    assert (found["epsilon"], found["delta"]) == (manifest.guarantee.epsilon, 1e-6)
    assert ppsyn("audit", found["release"], "--account", tmp_path / "store").exit_code == 0
    before = files(tmp_path / "store")
    again = console(tmp_path, "release", "release.yaml", "--set", "privacy.epsilon=7.9")
    assert (again.returncode, again.stdout) == (Exit.BUDGET, "")
    assert "has rho" in again.stderr
    assert "Traceback" not in again.stderr
    assert "--resume" not in again.stderr
    assert files(tmp_path / "store") == before


@pytest.mark.slow
def test_a_store_that_cannot_be_made_is_told(tmp_path: Path, prefect_api: str) -> None:
    write_release(tmp_path, stores={"root": "people.yaml/store"})
    before = files(tmp_path)
    told = console(tmp_path, "release", "release.yaml")
    assert (told.returncode, told.stdout) == (Exit.STORE, "")
    assert "Cannot use the folder" in told.stderr
    assert "Traceback" not in told.stderr
    assert files(tmp_path) == before


@pytest.mark.slow
def test_a_prefect_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    write_release(tmp_path)
    before = files(tmp_path)
    unreachable = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_HOME": str(tmp_path.parent / "home")}
    told = console(tmp_path, "release", "release.yaml", **unreachable)
    assert told.returncode == Exit.STORE
    assert "Traceback" not in told.stderr
    assert files(tmp_path) == before
