"""A server between a store and an S3 server, which sees what is asked and may ignore conditions."""

import contextlib
import http.client
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import unquote, urlsplit

import obstore
from obstore.store import S3Store
from support.servers import BUCKET, HOST, SeaweedFS

Conditions = Literal["kept", "ignored", "kept one at a time"]

_DROPPED = {"Transfer-Encoding", "Connection"}


@dataclass
class Proxy:
    """What the proxy knows: where it is, and the requests it saw."""

    endpoint: str = ""
    seen: list[str] = field(default_factory=list)


@contextlib.contextmanager
def proxy(server: SeaweedFS, conditions: Conditions = "kept", racers: int = 4) -> Generator[Proxy]:
    """Pass requests on to `server`.

    A signature covers If-None-Match, so where that is to be ignored the write is made anew without it.
    "Kept one at a time" looks first and refuses what is there, but `racers` at once all look before one writes.
    """
    known, barrier = Proxy(), threading.Barrier(racers)
    bucket = _bucket(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known.seen.append(f"{self.command} {self.path}")
            if conditions == "kept" or "If-None-Match" not in self.headers:
                self.reply(*pass_on(server, self, body))
                return
            key = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")
            if conditions == "kept one at a time" and _is_there(bucket, key, barrier):
                self.reply(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
            else:
                self.reply(200, {"ETag": obstore.put(bucket, key, body)["e_tag"] or ""}, b"")

        def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer

    with ThreadingHTTPServer((HOST, 0), Handler) as running:
        known.endpoint = f"http://{HOST}:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield known
        finally:
            running.shutdown()
            thread.join()


def _bucket(server: SeaweedFS) -> S3Store:
    return S3Store(
        BUCKET,
        config={
            "endpoint": server.endpoint,
            "access_key_id": server.access_key,
            "secret_access_key": server.secret_key,
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
        },
        client_options={"allow_http": True},
    )


def _is_there(bucket: S3Store, key: str, barrier: threading.Barrier) -> bool:
    try:
        obstore.head(bucket, key)
    except FileNotFoundError:
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(5)
        return False
    return True


def pass_on(server: SeaweedFS, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send a request as it is, with the host that was signed, and bring the answer."""
    with contextlib.closing(http.client.HTTPConnection(urlsplit(server.endpoint).netloc, timeout=30)) as link:
        link.request(request.command, request.path, body, dict(request.headers.items()))
        answer = link.getresponse()
        kept = {name: value for name, value in answer.getheaders() if name not in _DROPPED}
        return answer.status, kept, answer.read()
