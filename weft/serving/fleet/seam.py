"""Where one stream can be cut and another go on: lets text and ids through only together.

Knows the rules by which vLLM holds text back; knows no tokenizer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from weft.core.ports.model import TextDelta

Ids = tuple[int, ...]


class Seam:
    """Holds ids back until all of their text is here, and text until its last id is settled.

    Whatever has been let through is the text of exactly the ids that have been let through; whoever
    goes on from these ids neither repeats nor loses a character. Two things make a server send ids
    before their text: characters of several tokens, which come with the last of them, and stop
    strings, for which it holds back as many characters as could be the start of the longest one,
    `len - 1` (vLLM's detokenizer). So text that could begin a stop string is never let through.

    `sure` is false while the last id that went through may be the beginning of a character: where
    several tokens come at once, their text may be that of all but the last ones.
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
        """What may go through now that `delta` has come."""
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
