"""Chat threads: calls with fresh prompts, in sequence or in parallel.

For strategies that orchestrate whole conversations. Strategies inside one token context use
`weft.reasoning.runtime`. All threads of a thought share one token budget.
"""

from __future__ import annotations

import zlib
from asyncio import CancelledError
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.events import Outcome
from weft.core.generated_text import opening_of_thought
from weft.core.ids import NodeId, inside
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelRequest,
    Sampling,
    Startable,
    Tokenizing,
    further_sampling,
    slots_of,
)
from weft.core.values import JsonSchema, Message, Usage
from weft.engine import Expand, Inputs, Node, NodeContext, NodeFn, Policy, Retry, best_effort
from weft.reasoning.chat.call import (
    ChatCall,
    Generation,
    Purpose,
    Watch,
    count_tokens,
    encode_prompt,
    generation_of,
    prompt_estimate,
)
from weft.reasoning.options import ThinkOptions
from weft.reasoning.thought import (
    Thought,
    ThreadFork,
    ThreadRecord,
    ThreadSegment,
    ThreadState,
    cut_steps,
    tree_counts,
)
from weft.reasoning.token_budget import BudgetLedger

T = TypeVar("T")
Job = Callable[["ChatThread"], Awaitable[T]]
"""What a thread runs; its value is the thread's result for its parent."""
Amend = Callable[[ModelRequest], ModelRequest]
"""Changes a request before it is sent, except for its token limit."""


def stop_before(*texts: str) -> Amend:
    """Ends an answer before any of `texts`."""
    return lambda request: replace(request, sampling=replace(request.sampling, stop=texts))


UNKNOWN_WINDOW: Final = 8192
"""The assumed window, in tokens, of a model that does not report one."""

_RETRY: Final = Retry()
_LEAST_ROOM: Final = 64
_OPENING_TOKENS: Final = 16


@dataclass(slots=True)
class _ThoughtState:
    """The state that all threads of one thought share."""

    model: ModelClient
    options: ThinkOptions
    capabilities: Capabilities
    allowance: BudgetLedger
    root: str
    usage: Usage = field(default_factory=Usage)
    tokens: int = 0
    lost_tokens: int = 0
    thinks: bool = False
    cut: Counter[str] = field(default_factory=Counter)

    def thinking(self, purpose: Purpose) -> int | None:
        """The bound on the thought of a call for `purpose`; None: the model's own."""
        bound = self.options.thinking_tokens
        if purpose in ("step", "probe"):
            bound = 0
        elif purpose == "conclusion":
            bound = bound or 0
        return bound if self.capabilities.thinking else None


class _ChatPrompt(NamedTuple):
    """A conversation, also as token ids where the model takes them. It ends with `lead`, or opens
    the model's thought with `opened`.
    """

    messages: tuple[Message, ...]
    ids: tuple[int, ...]
    lead: str = ""
    opened: str = ""


class ChatThread:
    """One thread. `ChatThread.begin` makes the root thread of a thought, `fork` the others.

    Failed calls and an empty budget do not raise: see `Generation.status`.
    """

    def __init__(
        self,
        tree: _ThoughtState,
        role: str,
        key: str = "",
        depth: int = 0,
        context: NodeContext | None = None,
        before: Callable[[], int] = int,
    ) -> None:
        self._tree = tree
        self._before = before
        self._granted = 0
        self._role = role
        self._key = key
        self._depth = depth
        self._context = context
        self._state = ThreadState.READY
        self._reason = "it was not started"
        self._result = ""
        self._prompt_tokens = 0
        self._parts: list[ThreadSegment | tuple[ChatThread, ...] | ChatThread] = []

    @classmethod
    async def begin(
        cls, context: NodeContext, model: ModelClient, options: ThinkOptions, role: str = "thought"
    ) -> ChatThread:
        """The root thread of a thought, in the node of `context`; starts the model if needed.

        Raises: `ModelError`, `ServeError`; `CapabilityError` where the options bound a thought that
        the model cannot bound.
        """
        if isinstance(model, Startable):
            await model.start(context.log)
        capabilities = await model.capabilities()
        if options.thinking_tokens is not None and not capabilities.thinking:
            raise CapabilityError(
                f"{model.model} is not known to bound its thought",
                hint="leave thinking_tokens out; vLLM and local models bound it, and `thinking` of"
                " a model declares how a server does",
            )
        tree = _ThoughtState(
            model, options, capabilities, BudgetLedger(options.cap), str(context.node)
        )
        return cls(tree, role, context=context)

    @property
    def context(self) -> NodeContext:
        assert self._context is not None, "the thread has not begun"
        return self._context

    @property
    def constrains(self) -> bool:
        """Whether the model supports output schemas."""
        return self._tree.capabilities.structured_output

    @property
    def window(self) -> int:
        """The size of the model's window in tokens, for prompt and answer together."""
        return self._tree.capabilities.max_context_tokens or UNKNOWN_WINDOW

    @property
    def kept(self) -> int:
        """The tokens that a strategy should reserve for its answer: at most half of all."""
        return self._tree.options.kept

    @property
    def tokens_left(self) -> int:
        """The tokens left in the budget that all threads share."""
        return self._tree.allowance.left

    @property
    def path_left(self) -> int | None:
        """The tokens that this thread may add to the critical path now; None: no cap."""
        options = self._tree.options
        if options.path_tokens is None:
            return None
        return options.path_left(self._path_tokens() + self._granted)

    def _path_tokens(self, parts: int | None = None) -> int:
        """The critical path from the beginning of the thought to the end of the first `parts`."""
        own = ThreadRecord("", segments=tuple(map(_recorded, self._parts[:parts])))
        return self._before() + own.critical_path_tokens

    async def measure(self, text: str) -> int:
        """The number of tokens of `text`, or an upper estimate. Raises: `ModelError`."""
        return await count_tokens(self._tree.model, text)

    async def opened(self, messages: Sequence[Message]) -> str:
        """The beginning of a thought with which the prompt of `messages` ends; else empty.

        Raises: `ModelError`.
        """
        return (await self._prompt(tuple(messages), "")).opened

    async def ask(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        purpose: Purpose = "answer",
        max_tokens: int | None = None,
        keep: int = 0,
        schema: JsonSchema | None = None,
        temperature: float | None = None,
        amend: Amend | None = None,
        watch: Watch | None = None,
        lead: str = "",
    ) -> Generation:
        """The model's answer to `messages`, from the node `name` of this thread.

        At most `max_tokens` (None: those of the options), without the last `keep` tokens of the
        budget and the critical path. `schema` is left out where the model does not support one.
        `amend` may change the request, `watch` receives each piece of the answer. `lead` is the
        beginning of the answer, and part of it, where the model can continue one.

        `purpose` says whether the model thinks first, and `finish` reports cut steps. A step of a
        model whose thought cannot be bounded is asked for again when its tokens were spent on that,
        with `max_tokens` of the options more; further steps get them at once.
        """
        tree = self._tree
        wanted = tree.options.max_tokens if max_tokens is None else max_tokens
        sampling = Sampling(max_tokens=wanted, thinking_tokens=tree.thinking(purpose))
        small = purpose in ("step", "probe", "conclusion") and not tree.capabilities.thinking
        if small and tree.thinks:
            sampling = replace(sampling, max_tokens=wanted + tree.options.max_tokens)

        async def ask(name: str, sampling: Sampling) -> Generation:
            return await self._ask(
                name, messages, sampling, keep, schema, temperature, amend, watch, lead
            )

        answer = await ask(name, sampling)
        if small and answer.thinking and answer.cut and not tree.thinks:
            tree.thinks = True
            longer = replace(sampling, max_tokens=wanted + tree.options.max_tokens)
            answer = await ask(f"{name} again", longer)
        if (answer.cut and purpose == "step") or (answer.thinking and purpose == "probe"):
            tree.cut[name.rstrip("0123456789 ")] += 1
        return answer

    async def _ask(
        self,
        name: str,
        messages: Sequence[Message],
        limits: Sampling,
        keep: int,
        schema: JsonSchema | None,
        temperature: float | None,
        amend: Amend | None,
        watch: Watch | None,
        lead: str,
    ) -> Generation:
        """One call within `limits`: the most tokens of the answer and of the thought before it."""
        tree = self._tree
        wanted = limits.most_tokens or 1
        path_left = self.path_left
        longest = wanted if path_left is None else path_left - keep
        granted = tree.allowance.reserve(max(0, min(wanted, longest, self.tokens_left - keep)))
        if granted < 1:
            return Generation("", "refused", 0, "no tokens are left for it")
        call: ChatCall | None = None
        self._granted += granted
        try:
            try:
                prompt = await self._prompt(tuple(messages), lead)
            except ModelRequestError as error:
                return Generation("", "failed", 0, str(error))
            request = self._request(name, prompt, schema, temperature, limits.within(granted))
            if request is None:
                return Generation("", "failed", 0, "its prompt fills the model's window")
            if prompt.lead:
                self._parts.append(ThreadSegment((), prompt.lead, forced=True, role=name))
            sent = amend(request) if amend else request
            call = ChatCall(tree.model, sent, watch)
            outcome = await self._node(name, call.work)
            apart = sent.schema is not None or sent.sampling.thinking_tokens is not None
            apart |= sent.prompt_token_ids != prompt.ids  # more was written after the prompt
            answer = generation_of(outcome, call.spent, prompt.lead, "" if apart else prompt.opened)
        finally:
            self._granted -= granted
            tree.allowance.settle(granted, 0 if call is None else min(granted, call.spent.tokens))
            if call is not None:
                self._note(name, call)
        return answer

    async def fork(
        self, name: str, jobs: Sequence[tuple[str, Job[T]]], *, role: str = "thread"
    ) -> tuple[T | None, ...]:
        """Run all `jobs`, pairs of key and function, in parallel; returns the results in order.

        At most `width` threads of the options run at once, and one below its `depth`. A failed job
        has the result None.
        """
        tree, place = self._tree, inside(self.context.scope, name)
        threads = self.branch([key for key, _ in jobs], role=role)
        nodes = tuple(
            thread.node(place, job) for thread, (_, job) in zip(threads, jobs, strict=True)
        )
        ids = tuple(node.id for node in nodes)
        width = tree.options.width if self._depth < max(1, tree.options.depth) else 1

        async def begin(_: NodeContext, __: Inputs) -> Expand:
            return Expand(nodes, ids, ended, best_effort(), width)

        async def ended(group: NodeContext, _: object) -> tuple[Outcome, ...]:
            return tuple([await group.outcome(node) for node in ids])

        outcome = await self._node(name, begin, kind="fork", spends=False)
        if not outcome.ok:
            return tuple(None for _ in jobs)
        return tuple(end.value if end.ok else None for end in outcome.value)

    def branch(self, keys: Sequence[str], *, role: str = "thread") -> tuple[ChatThread, ...]:
        """The threads of a fork whose nodes the caller appends, awaits and may cancel itself."""
        before = partial(self._path_tokens, len(self._parts))
        threads = tuple(
            ChatThread(self._tree, role, key, self._depth + 1, before=before) for key in keys
        )
        self._parts.append(threads)
        return threads

    def side_thread(self, key: str, *, role: str = "thread") -> ChatThread:
        """A thread for further calls in the same node; it adds nothing to the critical path."""
        before = partial(self._path_tokens, len(self._parts))
        thread = ChatThread(self._tree, role, key, self._depth + 1, self._context, before)
        thread._end(ThreadState.DONE, "")
        self._parts.append(thread)
        return thread

    def node(self, place: NodeId, job: Job[T]) -> Node:
        """This thread as a node inside `place`; its value is that of `job`."""

        async def work(context: NodeContext, _: Inputs) -> T:
            self._context, self._state, self._reason = context, ThreadState.DECODING, ""
            try:
                value = await job(self)
            except CancelledError:
                self._end(ThreadState.CANCELLED, "it was cancelled")
                raise
            except Exception as error:
                self._end(ThreadState.FAILED, str(error))
                raise
            self._end(ThreadState.DONE, "")
            return value

        return Node(inside(place, self._key), work, kind="thread", recallable=False)

    def returns(self, result: str) -> None:
        """Set the thread's result, for the record."""
        self._result = result

    def record(self) -> ThreadRecord:
        """This thread and its descendants, as they are now."""
        parts = tuple(map(_recorded, self._parts))
        place = self._key if self._context is None else str(self._context.node)
        return ThreadRecord(
            place,
            self._role,
            self._key,
            self._state,
            self._reason,
            self._prompt_tokens,
            parts,
            self._result,
        )

    def finish(self, answer: str, why: str, **fields: Any) -> Thought:
        """End the root thread: the thought, with the record and counts of all threads.

        `fields` are further ones of `Thought`. Steps that were cut off are named in `lost`.
        """
        self.returns(answer)
        self._end(ThreadState.DONE, why)
        record, tree = self.record(), self._tree
        counts = tree_counts(record, tree.usage, tree.tokens, tree.lost_tokens)
        if tree.cut:
            fields["fidelity"] = "approximate"
            fields["lost"] = "; ".join(filter(None, (fields.get("lost"), cut_steps(tree.cut))))
        return Thought(answer, tree=record, counts=counts, why=why, **fields)

    async def _prompt(self, messages: tuple[Message, ...], lead: str) -> _ChatPrompt:
        """The prompt of `messages`, with `lead` where the model can continue an answer."""
        model = self._tree.model
        ids = await encode_prompt(model, messages, self._tree.options.template_kwargs)
        if ids and isinstance(model, Tokenizing):
            opened = opening_of_thought(await model.decode(ids[-_OPENING_TOKENS:]))
            if opened or not lead:  # the answer begins later
                return _ChatPrompt(messages, ids, opened=opened)
            return _ChatPrompt(messages, ids + await model.encode(lead), lead)
        if lead and not ids and self._tree.capabilities.continuation:
            return _ChatPrompt((*messages, Message("assistant", lead)), ids, lead)
        return _ChatPrompt(messages, ids)

    def _request(
        self,
        name: str,
        prompt: _ChatPrompt,
        schema: JsonSchema | None,
        temperature: float | None,
        limits: Sampling,
    ) -> ModelRequest | None:
        """The request within `limits`; None where the window has no room for any answer."""
        options, ids = self._tree.options, prompt.ids
        room = self.window - (len(ids) or prompt_estimate(prompt.messages))
        if not ids:  # an estimate is no reason to refuse
            room = max(room, _LEAST_ROOM)
        if room < 1:
            return None
        self._prompt_tokens = self._prompt_tokens or len(ids)
        path = f"{str(self.context.node).removeprefix(self._tree.root)}/{name}"
        limits = limits.within(min(room, limits.most_tokens or room))
        sampling = replace(
            further_sampling(options),
            max_tokens=limits.max_tokens,
            thinking_tokens=limits.thinking_tokens,
            temperature=options.temperature if temperature is None else temperature,
            seed=(options.seed + zlib.crc32(path.encode())) % 2**31,
        )
        return ModelRequest(
            () if ids else prompt.messages,
            prompt_token_ids=ids,
            sampling=sampling,
            schema=schema if self.constrains else None,
            extra=options.extra_body or {},
        )

    async def _node(
        self, name: str, work: NodeFn, *, kind: str = "model", spends: bool = True
    ) -> Outcome:
        """The outcome of `work`, run in the node `name` of this thread."""
        resource = slots_of(self._tree.model) if spends else None
        retry = _RETRY if spends else None
        policy = Policy(resource=resource, retry=retry, spends=spends, on_failure="skip")
        place = inside(self.context.scope, name)
        self.context.append([Node(place, work, policy=policy, kind=kind, recallable=False)])
        return await self.context.outcome(place)

    def _note(self, name: str, call: ChatCall) -> None:
        """Add an ended call to the record and the counts."""
        tree, spent = self._tree, call.spent
        tree.tokens += spent.tokens
        tree.lost_tokens += spent.tokens - spent.kept
        tree.usage += spent.usage
        self._prompt_tokens = self._prompt_tokens or spent.usage.prompt_tokens
        text, ids = "".join(spent.text), tuple(spent.token_ids)
        self._parts.append(ThreadSegment(ids, text, role=name, tokens=spent.tokens))

    def _end(self, state: ThreadState, reason: str) -> None:
        self._state, self._reason = state, reason


def _recorded(
    part: ThreadSegment | tuple[ChatThread, ...] | ChatThread,
) -> ThreadSegment | ThreadFork:
    if isinstance(part, ThreadSegment):
        return part
    if isinstance(part, ChatThread):
        record = part.record()
        own = replace(record, id=f"{record.id}/{record.key}")
        return ThreadFork((own,), (own.critical_path_tokens,))
    return ThreadFork(tuple(child.record() for child in part))
