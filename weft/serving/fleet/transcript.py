"""What the caller of one call has received so far, and where its stream can be cut and resumed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

from weft.core.ports.model import (
    Delta,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import ToolCall


class Transcript:
    """The delivered part of an answer; grows by `note`.

    prompt_ids     the prompt as tokens, empty while unknown
    prefill_sent   the caller has been notified that the prompt is computed
    whole          `ids` are the tokens of exactly `text`, and there is nothing else
    sure           the last of `ids` certainly ends a character (see `StreamSplicer`)
    attempts       how many replicas have been tried
    """

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.prompt_ids = request.prompt_token_ids
        self.prefill_sent = False
        self.whole = True
        self.sure = True
        self.ids: list[int] = []
        self.logprobs = 0
        self.attempts = 0
        self._calls: dict[int, ToolCall] = {}
        self._arguments: defaultdict[int, list[str]] = defaultdict(list)
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)

    @property
    def calls(self) -> dict[int, ToolCall]:
        """The tool calls by index, their arguments as far as they go."""
        return {
            index: replace(call, arguments="".join(self._arguments[index]))
            for index, call in self._calls.items()
        }

    @property
    def empty(self) -> bool:
        """True while nothing of the answer has been delivered."""
        return not (self._text or self._reasoning or self.ids or self._calls)

    def prefilled(self, event: Prefilled) -> bool:
        """The prompt is computed; true unless the caller has been notified before."""
        self.prompt_ids = self.prompt_ids or event.prompt_token_ids
        first, self.prefill_sent = not self.prefill_sent, True
        return first

    def note(self, delta: Delta) -> None:
        """Add `delta`, which goes to the caller."""
        match delta:
            case TextDelta():
                self.whole &= bool(delta.token_ids) or not delta.text
                self._text.append(delta.text)
                self.ids += delta.token_ids
                self.logprobs += len(delta.logprobs)
            case ReasoningDelta():
                self.whole = False
                self._reasoning.append(delta.text)
                self.ids += delta.token_ids
            case ToolCallDelta():
                self.whole = False
                self._note_call(delta)

    def _note_call(self, delta: ToolCallDelta) -> None:
        so_far = self._calls.get(delta.index, ToolCall("", "", ""))
        self._calls[delta.index] = ToolCall(so_far.id or delta.id, so_far.name or delta.name, "")
        self._arguments[delta.index].append(delta.arguments)


Ids = tuple[int, ...]


class StreamSplicer:
    """Delays ids until all of their text is here, and text until its last id is settled.

    The output is the text of exactly the ids in it, so that a request that continues from these ids
    neither repeats nor loses a character. Servers send ids before their text in two cases:
    characters of several tokens come with the last of them, and with stop strings a server holds
    back as many characters as could begin the longest one, `len - 1` (vLLM's detokenizer). So text
    that could begin a stop string never passes.

    `sure` is false while the last id that passed may begin a character: where several tokens come
    at once, their text may be that of all but the last ones.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._lag = max((len(text) for text in stop), default=1) - 1
        self._text = ""
        self._ids: Ids = ()
        self._received = 0
        self._settled = 0
        self._boundaries: deque[tuple[int, Ids, bool]] = deque()
        self.sure = True

    def take(self, delta: TextDelta) -> TextDelta | None:
        """What may pass now that `delta` has come."""
        self._ids += delta.token_ids
        if not delta.text:
            return None
        self._text += delta.text
        self._received += len(delta.text)
        # The text of these ids goes up to here; its last `lag` characters are still to come.
        self._boundaries.append((self._received + self._lag, self._ids, len(delta.token_ids) == 1))
        self._ids = ()
        return self._settle()

    def flush(self) -> TextDelta | None:
        """The rest, once the answer is complete."""
        ids = sum((ids for _, ids, _ in self._boundaries), ()) + self._ids
        text = self._text
        self._boundaries.clear()
        self._text, self._ids = "", ()
        return TextDelta(text, ids) if text or ids else None

    def _settle(self) -> TextDelta | None:
        end, ids = self._settled, Ids()
        while self._boundaries and self._boundaries[0][0] <= self._received:
            end, more, self.sure = self._boundaries.popleft()
            ids += more
        if end == self._settled:
            return None
        length, self._settled = end - self._settled, end
        text, self._text = self._text[:length], self._text[length:]
        return TextDelta(text, ids)
