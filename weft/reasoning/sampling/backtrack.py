"""The sequential baseline: one long search that checks itself and goes back.

"To Backtrack or Not to Backtrack" (arXiv 2504.07052) compares it with direct samples at equal
tokens; the search is extended as in s1 (arXiv 2501.19393).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from weft.core.errors import BuildError, CapabilityError, ReasoningError
from weft.core.generated_text import without_thought
from weft.core.ports import ModelClient, ModelRequest, Tokenizing
from weft.core.values import JsonSchema, Message
from weft.reasoning.answers import Reader, answer_text, reader, schema_key
from weft.reasoning.chat.call import CallProgress, Generation
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.samplers.saturation import ChainCosts, ThinkingSplit, split
from weft.reasoning.sampling.prompts import ENDING, RECHECK, RECHECK_TURN, question_messages
from weft.reasoning.selection.selector import elect, sample_votes
from weft.reasoning.selection.vote import count_votes
from weft.reasoning.thought import Sample, SampleStatus, Thought

Verify = Callable[[Question, str], bool]

_LEAST_TOKENS: Final = 16


@dataclass(slots=True)
class _SearchChain:
    """One search: its text and token ids, the text of the last round, its answers so far."""

    index: int
    text: str = ""
    last: str = ""
    ids: tuple[int, ...] = ()
    keys: list[str | None] = field(default_factory=list)
    whole: bool = False
    tokens: int = 0
    why: str = ""

    @property
    def key(self) -> str | None:
        """The last readable answer."""
        return next((key for key in reversed(self.keys) if key is not None), None)

    def sample(self) -> Sample:
        """The chain as a sample."""
        status: SampleStatus = "finished" if self.whole else "length"
        status = status if self.text else "failed"
        return Sample(self.index, self.text, self.key, self.tokens, status)


class BacktrackStrategy(ChatStrategy):
    """Searches in rounds of checks. Settings: `stable`, ends a search when so many checks kept its
    answer (0: never).

    `verify`, a function of question and text that ends it; `chains` in parallel, whose majority
    wins (0: chains and rounds by `samplers.saturation.split` for the budget, from `p`, the chance
    of a first answer, `q`, that of a check that repairs it, and `eps`); `answer`, the reader of
    answers. The options bound rounds and tokens.
    """

    name = role = "backtrack"
    least: ClassVar = {"chains": 0, "stable": 0}
    defaults: ClassVar = {
        "answer": None,
        "chains": 1,
        "stable": 2,
        "verify": None,
        "p": 0.3,
        "q": 0.1,
        "eps": 0.01,
    }

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        super().__init__(model, options)
        if self.settings["verify"] is not None and not callable(self.settings["verify"]):
            raise BuildError("backtrack: verify is a function of question and text")
        self._read: Reader = reader(self.settings["answer"] or "auto")
        self._split = _shape(options, self.settings)

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        chains = [_SearchChain(index) for index in range(self._split.parallel)]
        share = self.options.cap // len(chains)
        if len(chains) == 1:
            await self._search(thread, question, chains[0], share)
        else:
            jobs = [(str(chain.index), self._job(question, chain, share)) for chain in chains]
            await thread.fork("chains", jobs, role="chain")
        return self._thought(thread, question, chains)

    def _job(
        self, question: Question, chain: _SearchChain, share: int
    ) -> Callable[[ChatThread], Any]:
        async def job(thread: ChatThread) -> None:
            await self._search(thread, question, chain, share)
            thread.returns(chain.text)

        return job

    async def _search(
        self, thread: ChatThread, question: Question, chain: _SearchChain, share: int
    ) -> None:
        """Write rounds into `chain`, of at most `share` tokens in all."""
        messages = question_messages(question)
        typed = question.schema is not None
        read = schema_key if typed and not self.settings["answer"] else self._read
        capabilities = await self.model.capabilities()
        continuation = _Continuation(self.model, capabilities.continuation)
        for number in range(1, self._split.serial + 1):
            limits = (self.options.max_tokens, share - chain.tokens, thread.tokens_left)
            path_left = thread.path_left
            wanted = min(limits if path_left is None else (*limits, path_left))
            if wanted < _LEAST_TOKENS:
                chain.why = "the budget is spent"
                return
            name = f"round {number}"
            reply = await continuation.ask(thread, name, messages, chain, wanted, question.schema)
            chain.tokens += reply.tokens
            if not reply.ok:
                chain.why = reply.reason or "the model wrote nothing more"
                return
            chain.whole = reply.status == "finished"
            chain.keys.append(read(chain.last if typed else chain.text, chain.whole))
            if self._is_done(question, chain):
                return
        chain.why = f"all {self._split.serial} rounds are used up"

    def _is_done(self, question: Question, chain: _SearchChain) -> bool:
        verify: Verify | None = self.settings["verify"]
        stable: int = self.settings["stable"]
        if verify is not None and verify(question, chain.text):
            chain.why = f"verified in round {len(chain.keys)}"
        elif stable and len(last := chain.keys[-stable - 1 :]) > stable and _same(last):
            chain.why = f"the answer stayed the same for {stable} checks"
        return bool(chain.why)

    def _thought(self, root: ChatThread, question: Question, chains: list[_SearchChain]) -> Thought:
        samples = tuple(chain.sample() for chain in chains)
        if all(sample.status == "failed" for sample in samples):
            raise ReasoningError(f"there is no answer: {chains[0].why}")
        chosen = elect(samples, sample_votes(samples), count_votes)
        chain = chains[chosen.index or 0]
        numeric = self.settings["answer"] == "number"
        typed = question.schema is not None
        answer = chain.last if typed else answer_text(chain.text, numeric=numeric)
        answer = answer or without_thought(chain.text)
        why = chains[0].why if len(chains) == 1 else f"{self._split.why}; {chosen.why}"
        cut = chosen.key is None and not chain.whole
        return root.finish(answer, why, key=chosen.key, samples=samples, cut=cut)


class _Continuation:
    """Continues a model's own text: from its token ids, its text, or in a further turn."""

    def __init__(self, model: ModelClient, continuation: bool) -> None:
        self._model = model
        self._continuation = continuation

    async def ask(
        self,
        thread: ChatThread,
        name: str,
        messages: tuple[Message, ...],
        chain: _SearchChain,
        wanted: int,
        schema: JsonSchema | None,
    ) -> Generation:
        """One more round, which is added to `chain`."""
        lead = f"\n\n{RECHECK}\n" if chain.keys and chain.whole else ""
        tail = await self._tail(chain, lead)
        spent: list[CallProgress] = []

        def amend(request: ModelRequest) -> ModelRequest:
            if not chain.keys:
                return request
            if request.prompt_token_ids:
                return replace(request, prompt_token_ids=request.prompt_token_ids + tail)
            ending = "" if schema is not None else f" {ENDING}"
            unfinished = self._turns(request.messages, chain.text, lead, ending)
            return replace(request, messages=unfinished)

        reply = await thread.ask(
            name,
            messages,
            max_tokens=wanted,
            schema=schema,
            amend=amend,
            watch=lambda now, _: spent.append(now) if not spent else None,
        )
        if reply.ok:
            chain.last = "".join(spent[0].text) if spent else reply.text
            chain.text += lead + chain.last
            chain.ids = tail + (tuple(spent[0].token_ids) if spent else ())
        return reply

    def _turns(
        self, messages: tuple[Message, ...], text: str, lead: str, ending: str
    ) -> tuple[Message, ...]:
        if self._continuation:
            return (*messages, Message("assistant", text + lead))
        return (*messages, Message("assistant", text), Message("user", RECHECK_TURN + ending))

    async def _tail(self, chain: _SearchChain, lead: str) -> tuple[int, ...]:
        """The ids of the chain so far and of `lead`, without encoding the model's text again."""
        if not isinstance(self._model, Tokenizing) or not chain.keys:
            return ()
        try:
            written = chain.ids or await self._model.encode(chain.text)
            return written + (await self._model.encode(lead) if lead else ())
        except CapabilityError:
            return ()


def _same(keys: list[str | None]) -> bool:
    return len(set(keys)) == 1 and keys[0] is not None


def _shape(options: ThinkOptions, settings: dict[str, Any]) -> ThinkingSplit:
    """The number of chains and rounds."""
    chains: int = settings["chains"]
    costs = ChainCosts(options.max_tokens, options.max_tokens)
    if chains:
        parallel = min(chains, options.width)
        return ThinkingSplit(
            parallel, options.rounds, 0.0, options.cap, options.cap, "as it was set"
        )
    longest = options.rounds * options.max_tokens
    try:
        found = split(
            settings["p"],
            settings["q"],
            costs,
            max(options.cap, options.max_tokens),
            latency=min(longest, options.path_tokens or longest),
            width=options.width,
            eps=settings["eps"],
        )
    except ValueError as error:
        raise BuildError(f"backtrack: {error}") from error
    shape = f"{found.parallel} chains of {found.serial} rounds, expected {found.performance:.2f}"
    return replace(found, why=f"{shape} ({found.why})")
