"""What would this sample answer now? Asked beside it, so that nothing is added to the sample.

Knows no sampler. The probe's words are ours; the idea is Parallel-Probe's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.core.errors import CapabilityError
from weft.core.ports import Capabilities, ModelClient, ModelRequest, Tokenizing
from weft.core.values import Message
from weft.reasoning.answers import Reader
from weft.reasoning.thread.asking import Asking

PROBE_TOKENS: Final = 24
"""How many tokens a probe may answer with."""

_LEAD: Final = "The final answer is \\boxed{"
_THOUGHT: Final = "<think>"
_THOUGHT_END: Final = "</think>"


class Prober:
    """Probes samples of `model` in their own threads.

    Raises: `CapabilityError` when the model can neither go on from token ids nor with an answer.
    """

    def __init__(self, model: ModelClient, capabilities: Capabilities, read: Reader) -> None:
        by_ids = isinstance(model, Tokenizing) and capabilities.prompt_token_ids
        if not by_ids and not capabilities.continuation:
            raise CapabilityError(
                f"{model.model} cannot go on with an unfinished answer, which probes need",
                hint="use another sampler, or a completion server (vLLM) or the local model",
            )
        self._model = model
        self._read = read

    async def probe(
        self,
        thread: Asking,
        number: int,
        messages: Sequence[Message],
        text: str,
        ids: tuple[int, ...],
    ) -> str | None:
        """The key of what the sample that wrote `text` (its token ids, if known) would answer."""
        lead = _lead(text)
        tail = await self._tail(text, ids, lead)

        def beside(request: ModelRequest) -> ModelRequest:
            sampling = replace(request.sampling, top_p=None)
            if request.prompt_token_ids:
                prompt = request.prompt_token_ids + tail
                return replace(request, prompt_token_ids=prompt, sampling=sampling)
            unfinished = Message("assistant", text + lead)
            return replace(request, messages=(*request.messages, unfinished), sampling=sampling)

        said = await thread.ask(
            f"probe {number}", messages, max_tokens=PROBE_TOKENS, temperature=0.0, amend=beside
        )
        return self._read(_LEAD + said.text, False) if said.ok else None

    async def _tail(self, text: str, ids: tuple[int, ...], lead: str) -> tuple[int, ...]:
        """The ids of what goes after the prompt; those the sample wrote are not encoded again."""
        if not isinstance(self._model, Tokenizing):
            return ()
        try:
            written = ids or await self._model.encode(text)
            return written + await self._model.encode(lead)
        except CapabilityError:
            return ()


def _lead(text: str) -> str:
    """What makes a sample answer where it is: its thought, if it is in one, is closed first."""
    thinking = _THOUGHT in text and _THOUGHT_END not in text
    return f"\n{_THOUGHT_END}\n\n{_LEAD}" if thinking else f"\n\n{_LEAD}"
