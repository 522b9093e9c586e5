"""A model server that answers with what it is asked: attackers choose answers of models, too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name is the library's
        self._send("application/json", {"object": "list", "data": [{"id": "echo"}]}, "%s")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"]
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
        chunk = {"id": "1", "model": "echo", "choices": [choice]}
        self._send("text/event-stream", chunk, "data: %s\n\ndata: [DONE]\n\n")

    def _send(self, media: str, value: Any, form: str) -> None:
        content = (form % json.dumps(value)).encode()
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def upstream() -> Iterator[str]:
    """The base URL of a running one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
