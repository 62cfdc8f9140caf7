"""What a forge runs and asks for fits the project."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_workflow_is_written_by_the_rules() -> None:
    command = [
        Path(sys.executable).parent / "check-jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        WORKFLOW,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_what_a_clone_runs_on_every_python_that_is_claimed() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    assert ".ci/run" in [step.get("run") for step in jobs["fast"]["steps"]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert jobs["fast"]["strategy"]["matrix"]["python"] == claimed


def test_every_target_that_the_workflow_and_the_guide_name_exists() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {*re.findall(r"`make ([a-z-]+)`", guide), *jobs["nightly"]["strategy"]["matrix"]["set"]}
    assert len(named) > 5
    assert named <= TARGETS


def test_schedules_are_waited_for_once_a_week_with_the_newest_versions() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    weekly = workflow["jobs"]["weekly"]
    times = [one["cron"] for one in workflow[True]["schedule"]]  # YAML reads the key `on` as true
    (time,) = (time for time in times if f"github.event.schedule == '{time}'" in weekly["if"])
    assert time.split()[4] in set("0123456")
    assert any(step.get("run", "").startswith("make test-newest") for step in weekly["steps"])


def test_the_hooks_run_programs_of_the_environment() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    programs = [ROOT / hook["entry"].split()[0] for hook in repository["hooks"]]
    assert repository["repo"] == "local"
    assert [program.name for program in programs] == ["ruff", "ruff", "lint-imports"]
    assert all((Path(sys.executable).parent / program.name).is_file() for program in programs)


def test_the_type_checker_reads_every_source_file_once(tmp_path: Path) -> None:
    command = ["git", "ls-files", "ppsyn", "*.py", ":!tests"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    links = [name for name in listed if (ROOT / name).is_symlink()]
    files = sorted(name for name in listed if name.endswith(".py"))
    assert {name.split("/")[0] for name in files} >= {"ppsyn", "flows", "tasks", "schemas"}
    for name in (*links, *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    for name in links:
        (tmp_path / name).symlink_to((ROOT / name).readlink())
    for name in files:
        (tmp_path / name).write_text('wrong: int = ""\n', encoding="utf-8")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    checker = [str(Path(sys.executable).parent / "basedpyright"), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(checker, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = [Path(one["file"]).resolve().relative_to(tmp_path) for one in json.loads(done.stdout)["generalDiagnostics"]]
    assert sorted(map(str, told)) == files


def test_what_a_guarantee_rests_on_has_owners() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    owned = {line.split()[0] for line in lines if not line.startswith("#")}
    assert {"/ppsyn/privacy/", "/ppsyn/data/", "/ppsyn/PRIVACY.md"} <= owned
    assert all((ROOT / path.strip("/")).exists() for path in owned)
