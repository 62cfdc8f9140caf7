"""Somebody is told: a real Prefect server calls a real address, once an account runs out or a run is refused."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from uuid import uuid4

import pytest
import yaml
from prefect import get_client
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.events.schemas.automations import AutomationCore
from prefect.states import Failed
from pydantic import SecretStr
from support.small_release import DATASET, write_release

from ppsyn.flows.release import release
from ppsyn.tasks.run_registry import REFUSED

pytestmark = pytest.mark.slow
NOTIFICATIONS = Path(__file__).parents[2] / "deployments" / "notifications.yaml"


@contextmanager
def listening() -> Generator[tuple[str, Queue[dict[str, str]]]]:
    """An address, and what is posted to it."""
    told = Queue[dict[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def waited_for(told: "Queue[dict[str, str]]", part: str) -> str:
    while True:
        try:
            text = told.get(timeout=120)["text"]
        except Empty:
            raise AssertionError(f"nobody was told of {part}") from None
        if part in text:
            return text


def install(client: SyncPrefectClient, url: str) -> None:
    number = Webhook(url=SecretStr(url)).save(f"ppsyn-{uuid4().hex[:8]}")
    text = NOTIFICATIONS.read_text(encoding="utf-8").replace("WEBHOOK", str(number))
    for one in yaml.safe_load(text)["automations"]:
        client.create_automation(AutomationCore.model_validate({**one, "name": f"{one['name']}-{uuid4().hex[:8]}"}))


def test_a_refused_run_and_an_account_that_runs_out_are_told_of(prefect_api: str, tmp_path: Path) -> None:
    with listening() as (url, told), get_client(sync_client=True) as client:
        install(client, url)
        flow = client.create_flow_from_name("release")
        deployment = client.create_deployment(flow_id=flow, name=f"x-{uuid4().hex[:8]}", tags=["ppsyn"])
        made = client.create_flow_run_from_deployment(deployment, tags=["ppsyn"], name="loans of 2031")
        sentence = 'The account of "loans" is empty.'
        client.set_flow_run_state(made.id, Failed(name=REFUSED, message=sentence), force=True)
        text = waited_for(told, "loans of 2031")
        assert f"is Refused. {sentence} To see all that needs somebody: ppsyn overview" in text
        release(str(write_release(tmp_path)))
        text = waited_for(told, DATASET)
        assert "The account is nearly empty" in text
        assert "the decision of the data's owner" in text
