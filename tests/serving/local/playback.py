"""Steps a batcher by hand, on the test's own thread, and collects what each request gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.core.errors import WeftError
from weft.core.ports import ModelEvent, ModelRequest, Sampling
from weft.core.values import Completion
from weft.serving.local import LocalOptions
from weft.serving.local.ticket import Ticket

if TYPE_CHECKING:
    from weft.serving.local.ticket import ModelBatcher

EXACT = LocalOptions(dtype="float32", threads=1)


class Heard(Ticket):
    """A ticket that belongs to no event loop."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.cancelled = False
        self.events: list[ModelEvent | WeftError] = []

    def put(self, event: ModelEvent | WeftError) -> None:
        self.events.append(event)

    @property
    def finished(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Completion | WeftError)

    @property
    def completion(self) -> Completion:
        last = self.events[-1]
        if isinstance(last, WeftError):
            raise last
        assert isinstance(last, Completion)
        return last


class Playback:
    def __init__(self, batcher: ModelBatcher) -> None:
        self.batcher = batcher

    def add(self, request: ModelRequest) -> Heard:
        heard = Heard(request)
        self.batcher.add(heard)
        return heard

    def finish(self) -> None:
        for _ in range(10_000):
            if self.batcher.idle:
                return
            self.batcher.step()
        raise AssertionError("the batcher never comes to an end")

    def add_and_finish(self, request: ModelRequest) -> Heard:
        heard = self.add(request)
        self.finish()
        return heard

    def answer(self, request: ModelRequest) -> Completion:
        return self.add_and_finish(request).completion


def asking(*prompt: int, extra: dict[str, Any] | None = None, **sampling: Any) -> ModelRequest:
    """A greedy request of token ids that writes to `max_tokens`."""
    sampling = {"max_tokens": 8, "temperature": 0.0, **sampling}
    return ModelRequest(
        prompt_token_ids=prompt,
        sampling=Sampling(**sampling),
        extra={"ignore_eos": True} if extra is None else extra,
    )
