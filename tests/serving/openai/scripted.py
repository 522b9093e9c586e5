"""A scripted OpenAI-compatible server on 127.0.0.1, which can misbehave in every way we know of.

`EndpointServer` runs in a thread; each `add(...)` is an endpoint with its own script and memory.
Run as `python -m tests.serving.openai.scripted` it serves a slow answer in a process to be killed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from weft.core.errors import ModelOverloaded, WeftError
from weft.testing import Reply

Json = dict[str, Any]
PATIENCE_S = 120.0
VLLM = {"owned_by": "vllm", "max_model_len": 4096}


@dataclass(frozen=True)
class Script:
    """One answer. `chunks` are the events' data; `plain` answers with one body instead.

    `die_after`, `stall_after`: events after which the connection breaks, or nothing more comes.
    `repeat`: send the last event for ever. `cut`: how many bytes go into one write. `together`:
    answers begin when so many are open at once. `named`: each event has its type as its name.
    """

    chunks: Sequence[Json | str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    plain: str | None = None
    first_s: float = 0.0
    every_s: float = 0.0
    die_after: int | None = None
    stall_after: int | None = None
    repeat: bool = False
    cut: int | None = None
    done: bool = True
    together: int = 0
    named: bool = False


def chunk(delta: Json | None = None, finish: str | None = None, **choice: Any) -> Json:
    """A chat chunk with one choice."""
    return {
        "object": "chat.completion.chunk",
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish, **choice}],
    }


def usage(prompt: int, completion: int, cached: int | None = None) -> Json:
    """The chunk that comes last when usage was asked for."""
    details = None if cached is None else {"cached_tokens": cached}
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"choices": [], "usage": {**counts, "prompt_tokens_details": details}}


def words(text: str) -> list[str]:
    """The tokens of this server: words with the blank before them."""
    return [" " * (i > 0) + word for i, word in enumerate(text.split(" "))] if text else []


def says(text: str, finish: str = "stop", **rest: Any) -> Script:
    """A script that streams `text` word by word."""
    tokens = words(text)
    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"content": token}) for token in tokens]
    return Script([*chunks, chunk(finish=finish), usage(7, len(tokens))], **rest)


def plays(reply: Reply, request: Json) -> Script:
    """The script for a `weft.testing.Reply`, as a server with a model of its own would do it."""
    if reply.error is not None:
        return _fails(reply.error)
    limit = request.get("max_tokens")
    tokens: list[Json] = [{"reasoning": token} for token in words(reply.reasoning)]
    tokens += [{"content": token} for token in words(reply.text)]
    kept, stop = _stopped(tokens[:limit], request)
    deltas = list(kept)
    deltas += [
        {
            "tool_calls": [
                {
                    "index": index,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
            ]
        }
        for index, call in enumerate(reply.tool_calls)
    ]
    finish = "length" if stop is None and len(kept) < len(tokens) else "stop"
    finish = "tool_calls" if reply.tool_calls else finish
    if "prompt" in request:
        events = [
            {"choices": [{"index": 0, "text": delta["content"], "token_ids": [number]}]}
            for number, delta in enumerate(deltas)
        ]
        end = {"index": 0, "text": "", "finish_reason": finish, "stop_reason": stop}
        events.append({"choices": [end]})
    else:
        events = [chunk(delta, token_ids=[n]) for n, delta in enumerate(deltas)]
        events.append(chunk(finish=finish, stop_reason=stop))
    if request.get("logprobs"):
        for event in events[: len(kept)]:
            event["choices"][0]["logprobs"] = _logprobs(request)
    prompt = request.get("prompt") or request["messages"]
    return Script(
        [*events, usage(len(prompt), len(kept))],
        first_s=reply.first_token_s,
        every_s=reply.per_token_s,
        die_after=reply.break_after_tokens,
    )


def _stopped(tokens: list[Json], request: Json) -> tuple[list[Json], str | int | None]:
    """What is said up to the first stop token or text, and which it was."""
    text = ""
    for number, token in enumerate(tokens):
        if number in request.get("stop_token_ids", ()):
            return [*tokens[:number], {"content": ""}], number
        before, text = text, text + token.get("content", "")
        for stop in request.get("stop", ()):
            if stop in text:
                content = text.partition(stop)[0].removeprefix(before)
                return [*tokens[:number], {"content": content}], stop
    return tokens, None


def _logprobs(request: Json) -> Json:
    """Of one token, the most probable one, in the two forms there are."""
    if "prompt" in request:
        largest = {f"token_id:{n}": -0.5 - n for n in range(request["logprobs"])}
        return {"token_logprobs": [-0.5], "top_logprobs": [largest]}
    tops = [{"token": "x", "logprob": -0.5 - n} for n in range(request.get("top_logprobs", 0))]
    return {"content": [{"token": "x", "logprob": -0.5, "top_logprobs": tops}]}


def _fails(error: WeftError) -> Script:
    status, headers = 500, {}
    if isinstance(error, ModelOverloaded):
        status, headers = 429, {"retry-after": f"{error.retry_after_s:g}"}
    elif not error.retryable:
        status = 400
    return Script(status=status, headers=headers, plain=json.dumps({"message": error.message}))


@dataclass(frozen=True)
class Tokenizer:
    """vLLM's pages about tokens. Its tokens are bytes and `tags`; `lists`: it says which those are.

    `ordinary` are words of its own that look like tags.
    """

    tags: Mapping[str, int] = field(
        default_factory=lambda: {"<|im_start|>": 300, "<|im_end|>": 301, ">>TITLE<<": 302}
    )
    ordinary: Mapping[str, int] = field(default_factory=dict)
    lists: bool = True

    def answer(self, path: str, body: Json) -> Script | None:
        """What it answers; None: it has no such page."""
        words = {**self.tags, **self.ordinary}
        if path == "tokenizer_info" and self.lists:
            added = {str(token): text for text, token in self.tags.items()}
            return Script(plain=json.dumps({"tokenizer_class": "T", "added_tokens_decoder": added}))
        if path == "tokenize":
            text = body.get("prompt")
            if text is None:
                turns = [
                    f"<|im_start|>{m['role']} {m['content']}<|im_end|>" for m in body["messages"]
                ]
                text = "".join(turns) + "<|im_start|>assistant "
            ids = self._encode(text, words)
            spelt = {token: word for word, token in words.items()}
            strings = [spelt.get(token) or f"<0x{token:02X}>" for token in ids]
            extra = {"token_strs": strings} if body.get("return_token_strs") else {}
            return Script(plain=json.dumps({"count": len(ids), "tokens": ids, **extra}))
        if path == "detokenize":
            spelt_bytes = {token: word.encode() for word, token in words.items()}
            parts = [spelt_bytes.get(token) or bytes([token]) for token in body["tokens"]]
            return Script(plain=json.dumps({"prompt": b"".join(parts).decode("utf-8", "replace")}))
        return None

    def _encode(self, text: str, words: Mapping[str, int]) -> list[int]:
        ids: list[int] = []
        at = 0
        while at < len(text):
            word = next((one for one in words if text.startswith(one, at)), None)
            ids += text[at].encode() if word is None else [words[word]]
            at += 1 if word is None else len(word)
        return ids


@dataclass
class Endpoint:
    """One scripted endpoint and what it has seen.

    `open` counts answers now streaming, `broken_off` those whose client left before their end.
    """

    base_url: str
    script: Callable[[Json], Script]
    models: Script
    version: Script
    metrics: Script
    tokenizer: Tokenizer | None = None
    pages: Mapping[str, Script] = field(default_factory=dict)
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    clients: set[tuple[str, int]] = field(default_factory=set)
    open: int = 0
    most_open: int = 0
    broken_off: int = 0

    async def asked(self) -> None:
        """Wait until an answer is asked for and has begun."""
        async with asyncio.timeout(PATIENCE_S):
            while not (self.requests and self.open):
                await asyncio.sleep(0.002)

    async def settled(self, broken_off: int = 0) -> None:
        """Wait until nothing streams any more, and so many clients have left before the end."""
        async with asyncio.timeout(PATIENCE_S):
            while self.open or self.broken_off < broken_off:
                await asyncio.sleep(0.002)


class EndpointServer:
    """A context manager: many endpoints under one port."""

    def __init__(self) -> None:
        self._endpoints: dict[str, Endpoint] = {}
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        config = uvicorn.Config(
            self._app,
            log_config=None,
            log_level="critical",
            access_log=False,
            interface="asgi3",
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=3600,  # an idle connection may be used again at any moment
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    def __enter__(self) -> EndpointServer:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.002)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def add(
        self,
        script: Script | Callable[[Json], Script],
        *,
        model: Mapping[str, Any] = VLLM,
        models: Script | None = None,
        version: Script = Script(status=404, plain=""),
        metrics: Script = Script(status=404, plain=""),
        tokenizer: Tokenizer | None = None,
        pages: Mapping[str, Script] | None = None,
    ) -> Endpoint:
        """A new endpoint that serves the model `m`; `model` is what it tells about it.

        `pages` are further ones to get, by their paths.
        """
        name = f"e{len(self._endpoints)}"
        port = self._socket.getsockname()[1]
        listing = json.dumps({"data": [{"id": "m", **model}]})
        endpoint = Endpoint(
            f"http://127.0.0.1:{port}/{name}/v1",
            script if callable(script) else lambda _: script,
            models or Script(plain=listing),
            version,
            metrics,
            tokenizer,
            pages or {},
        )
        self._endpoints[name] = endpoint
        return endpoint

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        _, name, path = scope["path"].split("/", 2)
        endpoint = self._endpoints[name]
        endpoint.paths.append(path)
        endpoint.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        endpoint.clients.add(tuple(scope["client"]))
        gets = {
            "v1/models": endpoint.models,
            "version": endpoint.version,
            "metrics": endpoint.metrics,
            **endpoint.pages,
        }
        script = gets.get(path)
        if script is None:
            body = b""
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            asked = json.loads(body or b"{}")
            if not path.startswith(("v1/", "v1beta/")):
                tokenizer = endpoint.tokenizer
                told = tokenizer.answer(path, asked) if tokenizer else None
                script = told or Script(status=404, plain='{"detail": "Not Found"}')
            else:
                endpoint.requests.append(asked)
                script = endpoint.script(asked)
        await _Performance(endpoint, script, send).run(receive)


class _Dies(Exception):
    pass


@dataclass
class _Performance:
    endpoint: Endpoint
    script: Script
    send: Any

    async def run(self, receive: Any) -> None:
        self.endpoint.open += 1
        self.endpoint.most_open = max(self.endpoint.most_open, self.endpoint.open)
        playing = asyncio.create_task(self._play())
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            self.endpoint.broken_off += not playing.done()
        finally:
            for task in (playing, leaving):
                task.cancel()
            await asyncio.wait({playing, leaving})
            self.endpoint.open -= 1
        if not playing.cancelled() and playing.exception() is not None:
            raise _Dies

    async def _play(self) -> None:
        script = self.script
        plain = script.plain is not None
        kind = "application/json" if plain else "text/event-stream"
        headers = {"content-type": kind, **script.headers}
        await self.send(
            {
                "type": "http.response.start",
                "status": script.status,
                "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            }
        )
        if plain:
            await self._write((script.plain or "").encode())
            while script.repeat:
                await self._write((script.plain or "").encode())
        else:
            await self._events()
        await self.send({"type": "http.response.body", "body": b""})

    async def _events(self) -> None:
        script = self.script
        await asyncio.sleep(script.first_s)
        while self.endpoint.most_open < script.together:
            await asyncio.sleep(0.002)
        for number, event in enumerate(script.chunks):
            if number == script.die_after:
                raise _Dies
            if number == script.stall_after:
                await asyncio.Event().wait()
            await self._event(event)
            await asyncio.sleep(script.every_s)
        if script.stall_after == len(script.chunks):
            await asyncio.Event().wait()
        while script.repeat:
            await self._event(script.chunks[-1])
        if script.done:
            await self._event("[DONE]")

    async def _event(self, event: Json | str) -> None:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        name = f"event: {event['type']}\n" if self.script.named and isinstance(event, dict) else ""
        await self._write(f"{name}data: {text}\n\n".encode())

    async def _write(self, data: bytes) -> None:
        size = self.script.cut or len(data) or 1
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def main() -> None:
    """Serve an answer that takes minutes; print its address."""
    with EndpointServer() as server:
        endpoint = server.add(says("one two three " * 1000, every_s=0.1))
        print(endpoint.base_url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
