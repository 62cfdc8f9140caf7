"""A server between a store and an S3 server that is slow, in trouble or cut off at random: seeds tell when."""

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, cast

from support.s3_proxy import pass_on
from support.servers import HOST, SeaweedFS

Fault = Literal["slow", "refused", "failed after it was done", "cut before", "cut after it was done"]

FAULTS: tuple[Fault, ...] = ("slow", "refused", "failed after it was done", "cut before", "cut after it was done")

_SLOW_SECONDS = 0.5
_TROUBLE = b"<Error><Code>InternalError</Code></Error>"


@dataclass
class Trouble:
    """What happens to which share of the requests, and what happened how often.

    Attributes:
        endpoint: Where the server is.
    """

    behind: SeaweedFS
    fault: Fault
    share: float
    chance: random.Random
    endpoint: str = ""
    done: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Fault | None:
        """What happens to a request."""
        with self.lock:
            fault = self.fault if self.chance.random() < self.share else None
            self.done[fault or "passed on"] += 1
            return fault


class _Server(ThreadingHTTPServer):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__((HOST, 0), _Handler)
        self.trouble = trouble


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble = cast("_Server", self.server).trouble
        match trouble.next():
            case "refused":
                self.reply(503, {}, _TROUBLE)
            case "cut before":
                self.cut()
            case "failed after it was done":
                pass_on(trouble.behind, self, body)
                self.reply(500, {}, _TROUBLE)
            case "cut after it was done":
                self.reply(*pass_on(trouble.behind, self, body), is_cut=True)
                self.cut()
            case fault:
                time.sleep(_SLOW_SECONDS if fault == "slow" else 0)
                self.reply(*pass_on(trouble.behind, self, body))

    def reply(self, status: int, headers: dict[str, str], data: bytes, *, is_cut: bool = False) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        if data or not is_cut:  # what has no body is cut in its head
            self.end_headers()
        self.wfile.write(data[: len(data) // 2] if is_cut else data)

    def cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer


@contextlib.contextmanager
def faulty(server: SeaweedFS, fault: Fault, share: float, seed: int) -> Generator[Trouble]:
    """Pass requests on to `server`, but have the fault happen to a share of them."""
    trouble = Trouble(server, fault, share, random.Random(seed))
    with _Server(trouble) as running:
        trouble.endpoint = f"http://{HOST}:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield trouble
        finally:
            running.shutdown()
            thread.join()
