"""What is deployed is well formed, known to the installed Prefect, closed to others, and holds no secret."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from prefect.cli.deploy._config import _load_deploy_configs_and_actions
from prefect.cli.deploy._models import DeploymentConfig, PrefectYamlModel
from prefect.cli.deploy._schedules import _construct_schedules
from prefect.client.schemas.objects import ConcurrencyLimitStrategy
from prefect.server.events.actions import CallWebhook
from prefect.server.events.schemas.automations import AutomationCreate as Automation
from prefect.settings import Settings
from prefect.settings.legacy import _get_settings_fields
from rich.console import Console

from ppsyn.schemas.release import load_release
from ppsyn.tasks.run_registry import REFUSED

ROOT = Path(__file__).parents[1]
DEPLOYMENTS = ROOT / "deployments"
ENVIRONMENTS = {"dev": DEPLOYMENTS / "prefect.dev.yaml", "prod": DEPLOYMENTS / "prefect.prod.yaml"}
ENV_FILES = sorted(DEPLOYMENTS.glob("*.env"))
FILES = sorted(path for path in DEPLOYMENTS.iterdir() if path.is_file())
BIN = Path(sys.executable).parent

SECRET = re.compile(r"(AUTH_STRING|PASSWORD|SECRET|TOKEN|_KEY(_ID)?|CONNECTION_URL)$")
REGISTRY = re.compile(r"\b(docker\.io|ghcr\.io|quay\.io|gcr\.io|amazonaws\.com|azurecr\.io|pypi\.org|index-url)\b")


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOYMENTS / "compose.yaml").read_text(encoding="utf-8"))


def variables(path: Path, *, with_commented: bool = False) -> dict[str, str]:
    pattern = r"^#?([A-Z][A-Z0-9_]*)=(.*)$" if with_commented else r"^([A-Z][A-Z0-9_]*)=(.*)$"
    return dict(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))


def deployment(environment: str) -> dict[str, Any]:
    found, _ = _load_deploy_configs_and_actions(ENVIRONMENTS[environment], console=Console(quiet=True))
    assert len(found) == 1
    return found[0]


def image_names() -> list[str]:
    text = (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8")
    return re.findall(r"^FROM (\S+)", text, re.MULTILINE) + [one["image"] for one in compose()["services"].values()]


def unknown(names: set[str]) -> set[str]:
    known = set(_get_settings_fields(Settings))
    return {name for name in names if name.startswith("PREFECT_")} - known


def test_the_image_is_built_by_the_rules() -> None:
    done = subprocess.run(
        [BIN / "hadolint", DEPLOYMENTS / "Dockerfile"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_services_are_described_by_the_rules() -> None:
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOYMENTS / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="There is no systemd.")
def test_the_unit_is_written_by_the_rules(tmp_path: Path) -> None:
    unit = (DEPLOYMENTS / "ppsyn-worker.service").read_text(encoding="utf-8")
    (tmp_path / "ppsyn-worker.service").write_text(unit.replace("/opt/ppsyn/.venv/bin", str(BIN)), encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "ppsyn-worker.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_copies_what_exists_and_runs_as_nobody_special() -> None:
    text = (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8")
    sources = [word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE) == ["10001"]


def test_the_image_has_all_extras_for_servers_and_workers_need_them() -> None:
    assert re.findall(r'pip install .*"(.+)"', (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8")) == [".[all]"]


@pytest.mark.parametrize("image", image_names())
def test_an_image_has_a_tag_and_no_registry(image: str) -> None:
    name, _, tag = image.rpartition(":")
    assert name
    assert re.fullmatch(r"\d+\.\d+\S*", tag)
    assert "." not in name.split("/")[0]


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 2
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []


@pytest.mark.parametrize("name", ["database", "server", "worker", "objects"])
def test_a_service_starts_again_and_is_watched(name: str) -> None:
    service = compose()["services"][name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"]
    assert {needed["condition"] for needed in service.get("depends_on", {}).values()} <= {"service_healthy"}


@pytest.mark.parametrize("path", ENV_FILES, ids=lambda path: path.name)
def test_prefect_knows_every_setting(path: Path) -> None:
    names = set(variables(path, with_commented=True))
    assert {"PREFECT_API_URL", "PREFECT_SERVER_ANALYTICS_ENABLED", "DO_NOT_TRACK", "GX_ANALYTICS_ENABLED"} <= names
    assert unknown(names) == set()


def test_prefect_knows_the_settings_of_services() -> None:
    names = {name for service in compose()["services"].values() for name in service.get("environment", {})}
    assert any(name.startswith("PREFECT_") for name in names)
    assert unknown(names) == set()


def test_the_search_for_unknown_settings_finds_one() -> None:
    assert unknown({"PREFECT_RESULTS_PERSIST_BY_DEFUALT", "PREFECT_API_URL"}) == {"PREFECT_RESULTS_PERSIST_BY_DEFUALT"}


@pytest.mark.parametrize("path", ENV_FILES, ids=lambda path: path.name)
def test_prefect_takes_the_values(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for name, value in variables(path).items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.api.url == "http://127.0.0.1:4200/api"
    assert settings.results.default_serializer == "json"
    assert not settings.results.persist_by_default
    assert not settings.server.analytics_enabled
    assert not settings.logging.log_prints
    assert settings.server.services.db_vacuum.enabled_vacuum_types >= {"events", "flow_runs"}
    assert settings.server.services.db_vacuum.retention_period.days == 90


@pytest.mark.parametrize("path", ENV_FILES, ids=lambda path: path.name)
def test_an_env_file_names_secrets_and_holds_none(path: Path) -> None:
    secrets = {name: value for name, value in variables(path, with_commented=True).items() if SECRET.search(name)}
    assert secrets
    assert set(secrets.values()) == {""}
    assert not set(secrets) & set(variables(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_holds_no_password_and_no_registry(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"://[^/\s@:]+:[^/\s@]+@", text) == []
    assert REGISTRY.findall(text) == []


def test_the_secrets_of_services_are_files_outside_the_project() -> None:
    services = compose()
    files = [secret["file"] for secret in services["secrets"].values()]
    files += [file for one in services["services"].values() for file in one.get("env_file", ()) if file != "prod.env"]
    assert len(files) == 4
    assert [file for file in files if not file.startswith("${PPSYN_SECRETS:-/etc/ppsyn-secrets}/")] == []


@pytest.mark.parametrize(("environment", "path"), ENVIRONMENTS.items(), ids=ENVIRONMENTS)
def test_prefect_knows_every_field_of_a_deployment(environment: str, path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(document) <= set(PrefectYamlModel.model_fields)
    for one in document["deployments"]:
        assert set(one) <= set(DeploymentConfig.model_fields)
    assert deployment(environment)["name"] == f"release-adult-{environment}"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_deployment_runs_one_at_a_time_in_its_pool(environment: str) -> None:
    found = deployment(environment)
    assert found["concurrency_limit"] == {"limit": 1, "collision_strategy": ConcurrencyLimitStrategy.ENQUEUE.value}
    assert found["work_pool"]["name"] == "ppsyn"


@pytest.mark.parametrize(("environment", "is_active"), [("dev", False), ("prod", True)])
def test_only_in_earnest_does_a_deployment_run_by_itself(environment: str, is_active: bool) -> None:
    (schedule,) = _construct_schedules(
        deployment(environment), {}, console=Console(quiet=True), is_interactive=lambda: False
    )
    assert schedule["active"] is is_active
    assert schedule["schedule"].cron == "0 4 * * 1"
    assert schedule["schedule"].timezone


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_deployment_gives_its_flow_what_it_takes(environment: str) -> None:
    found = deployment(environment)
    path, name = found["entrypoint"].split(":")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    (flow,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    assert set(found["parameters"]) <= {argument.arg for argument in flow.args.args}


def test_the_release_file_of_development_is_valid() -> None:
    assert load_release(str(ROOT / deployment("dev")["parameters"]["file"]), ()).dataset == "adult"


def test_the_notifications_are_known_to_prefect_and_follow_what_the_flow_tells() -> None:
    text = (DEPLOYMENTS / "notifications.yaml").read_text(encoding="utf-8").replace("WEBHOOK", str(uuid4()))
    told = [Automation.model_validate(one) for one in yaml.safe_load(text)["automations"]]
    assert all(isinstance(action, CallWebhook) for one in told for action in one.actions)
    expected = {name for one in told for name in one.trigger.expect}
    assert {f"prefect.flow-run.{REFUSED}", "ppsyn.account.runs-out"} <= expected
    assert "ppsyn.account.runs-out" in (ROOT / "tasks" / "artifacts.py").read_text(encoding="utf-8")
