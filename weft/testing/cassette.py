"""Answers of a real model, recorded once in a file and replayed without it."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from weft.core.codec import decode, encode
from weft.core.errors import CassetteMiss, Failure, ModelError, SourceError
from weft.core.events import jsonable
from weft.core.ports.model import Capabilities, ModelClient, ModelEvent, ModelRequest
from weft.core.recorded_errors import error_of_failure
from weft.core.redaction import hidden, know_secrets
from weft.core.values import Completion

RecordMode = Literal["none", "once", "all"]
_FORMAT: Final = 1
_ASKED: Final = (
    *("messages", "prompt_token_ids", "sampling", "schema", "grammar", "tools", "tool_choice"),
    *("logprobs", "top_logprobs", "decode", "adapter", "extra"),
)
"""What of a request decides its answer."""


@dataclass
class _RecordedAnswer:
    request: dict[str, Any]
    events: list[Any] = field(default_factory=list)
    failure: Any = None


class CassetteModel:
    """Implements `ModelClient` with the recorded answers of another client.

        model = CassetteModel("small.json", lambda: OpenAIModel(URL, "qwen3-8b"), record="once")

    `path` is a JSON file that belongs into version control. `make_client` makes the real client,
    and is only called to record. `record`: `none` replays; `once` records if there is no file yet;
    `all` records anew. Equal requests get their answers in the order in which they were recorded.
    `save` writes what was recorded, without this process's secrets; `aclose` does too.

    Only `all` records failed calls, to replay them. `once` leaves them out, since a server that was
    down says nothing about the model; where a request got no answer at all, it writes no file, so
    that the next `once` records anew.

    Raises, from a request: `CassetteMiss` for one that is not in the file, with the difference to
    the most similar one that is; when it is made: `SourceError` for a file that is not a cassette.
    """

    fake = True
    """Runs on it are not recorded, unless a journal is named."""

    def __init__(
        self,
        path: str | Path,
        make_client: Callable[[], ModelClient] | None = None,
        *,
        record: RecordMode = "none",
    ) -> None:
        if record not in get_args(RecordMode):
            raise ValueError(f"record is none, once or all, not {record!r}")
        self._path = Path(path)
        self._client: ModelClient | None = None
        self._answers: list[_RecordedAnswer] = []
        self._played: defaultdict[str, int] = defaultdict(int)
        self._capabilities = Capabilities()
        self._model = self._path.stem
        self._keeps_failures = record == "all"
        self._failed: list[str] = []
        if record == "all" or (record == "once" and not self._path.exists()):
            if make_client is None:
                raise ValueError("recording needs a function that makes the client")
            know_secrets()
            self._client = make_client()
            self._model = self._client.model
        elif self._path.exists():
            self._read()

    @property
    def model(self) -> str:
        return self._model

    async def capabilities(self) -> Capabilities:
        if self._client is not None:
            self._capabilities = await self._client.capabilities()
        return self._capabilities

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient`. Raises: also `CassetteMiss`."""
        asked = hidden(_asked(request))
        if self._client is None:
            for event in self._replayed(asked):
                yield event
            return
        answer = _RecordedAnswer(asked)
        try:
            async for event in self._client.generate(request):
                answer.events.append(event)
                if isinstance(event, Completion):
                    self._answers.append(answer)
                yield event
        except ModelError as error:
            if self._keeps_failures:
                answer.failure = error.failure()
                self._answers.append(answer)
            else:
                self._failed.append(_pretty(asked))
            raise

    def save(self) -> None:
        """Write the file, if everything that was asked was recorded."""
        if self._client is None or self._unanswered:
            return
        calls = [
            {
                "request": answer.request,
                "events": [json.loads(encode(hidden(event))) for event in answer.events],
                "failure": answer.failure and json.loads(encode(hidden(answer.failure))),
            }
            for answer in self._answers
        ]
        document = {
            "weft_model_cassette": _FORMAT,
            "model": self._model,
            "capabilities": json.loads(encode(self._capabilities)),
            "calls": calls,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(_pretty(document) + "\n", "utf-8")

    async def aclose(self) -> None:
        self.save()
        if self._client is not None:
            await self._client.aclose()

    @property
    def _unanswered(self) -> bool:
        """Whether a request failed that is not to be recorded, and got no answer afterwards."""
        answered = {_pretty(answer.request) for answer in self._answers}
        return any(key not in answered for key in self._failed)

    def _read(self) -> None:
        try:
            document = json.loads(self._path.read_text("utf-8"))
            if document["weft_model_cassette"] != _FORMAT:
                raise ValueError(f"its format is not {_FORMAT}")
            self._model = str(document["model"])
            self._capabilities = _decoded(document["capabilities"], Capabilities)
            for call in document["calls"]:
                events = [_decoded(event, object) for event in call["events"]]
                failure = call["failure"] and _decoded(call["failure"], Failure)
                self._answers.append(_RecordedAnswer(call["request"], events, failure))
        except (ValueError, KeyError, TypeError) as error:
            what = f"this is no cassette of a model: {error}"
            raise SourceError(what, file=str(self._path), hint="record it anew") from error

    def _replayed(self, asked: dict[str, Any]) -> list[ModelEvent]:
        key = _pretty(asked)
        fitting = [answer for answer in self._answers if _pretty(answer.request) == key]
        number = self._played[key]
        if number >= len(fitting):
            raise self._miss(key, number)
        self._played[key] += 1
        answer = fitting[number]
        if answer.failure is not None:
            raise error_of_failure(answer.failure)
        return answer.events

    def _miss(self, key: str, number: int) -> CassetteMiss:
        hint = "record it: pytest --weft-record=all"
        if number:
            return CassetteMiss(
                f"{self._path.name} has this request only {number}x:\n{key}", hint=hint
            )
        if not self._answers:
            return CassetteMiss(f"{self._path} has no answers, to:\n{key}", hint=hint)
        recorded = [_pretty(answer.request) for answer in self._answers]
        nearest = max(
            recorded, key=lambda each: difflib.SequenceMatcher(None, each, key).quick_ratio()
        )
        changes = difflib.unified_diff(
            nearest.splitlines(), key.splitlines(), "recorded", "requested", lineterm="", n=2
        )
        text = "\n".join(changes)
        return CassetteMiss(f"{self._path.name} has no such request:\n{text}", hint=hint)


def _asked(request: ModelRequest) -> dict[str, Any]:
    """What decides the answer, without defaults, as JSON."""
    empty = ModelRequest(prompt_token_ids=(0,))
    named = {name: getattr(request, name) for name in _ASKED}
    given = {
        name: value
        for name, value in named.items()
        if name == "prompt_token_ids" or value != getattr(empty, name)
    }
    plain: dict[str, Any] = json.loads(json.dumps(given, default=jsonable))
    return {name: value for name, value in plain.items() if value}


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def _decoded(value: Any, kind: type) -> Any:
    found = decode(json.dumps(value))
    if not isinstance(found, kind):
        raise TypeError(f"{kind.__name__} expected")
    return found
