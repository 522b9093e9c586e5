"""A server of the OpenAI protocol that answers from a function, and counts the tokens it serves.

A token is a word. It serves one model, `MODEL`, on this machine, and no tools.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MODEL: Final = "scripted"
Answer = Callable[[list[dict[str, Any]]], str]


class ScriptedServer:
    """Serves `answer` of a request's messages, in a thread, as long as it is entered."""

    def __init__(self, answer: Answer, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.answer = answer
        self.requests = 0
        self.tokens = 0
        self._lock = threading.Lock()

        class Handler(_Handler):
            scripted = self

        self._server = _Server(address, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        """Where clients find it."""
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}/v1"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """An answer that is not streamed; counted as `events` counts it."""
        written, _, used = self.events(body)
        delta = written["choices"][0]["delta"]
        message = {"role": "assistant", "content": delta["content"]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        made = {"id": "scripted", "object": "chat.completion", "created": 0, "model": MODEL}
        return {**made, "choices": [choice], "usage": used["usage"]}

    def events(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The chunks of one streamed answer, the usage last; counts them."""
        messages = body["messages"]
        text = self.answer(messages)
        prompt = sum(len(str(message["content"]).split()) for message in messages)
        written = len(text.split())
        with self._lock:
            self.requests += 1
            self.tokens += prompt + written
        usage = {"prompt_tokens": prompt, "completion_tokens": written}
        chunks = [{"delta": {"content": text}}, {"delta": {}, "finish_reason": "stop"}]
        return [
            *({"model": MODEL, "choices": [{"index": 0, **chunk}]} for chunk in chunks),
            {"model": MODEL, "choices": [], "usage": usage},
        ]


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with five, ten clients at once wait a second to connect again


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            listed = {"object": "list", "data": [{"id": MODEL, "owned_by": "weft"}]}
            self._send(200, "application/json", json.dumps(listed))
        elif self.path == "/health":
            self._send(200, "text/plain", "")
        else:
            self._send(404, "application/json", "{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not body.get("stream"):
            self._send(200, "application/json", json.dumps(self.scripted.whole(body)))
            return
        lines = [json.dumps(event) for event in self.scripted.events(body)]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        self._send(200, "text/event-stream", text)

    def log_message(self, *_: object) -> None:  # silent
        pass

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
