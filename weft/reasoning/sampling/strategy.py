"""Sample, then select: self-consistency and its adaptive kin, and best-of-n. Knows no server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from weft.core.errors import BuildError, CapabilityError, ReasoningError
from weft.core.ports import Capabilities, ModelClient
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.answers import Reader, answer_text, reader, schema_key
from weft.reasoning.chat.thread import Amend, ChatThread
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question
from weft.reasoning.samplers.deepconf import TOP_LOGPROBS
from weft.reasoning.samplers.parallel_probe import Prober
from weft.reasoning.samplers.registry import DEFAULTS as SAMPLER_DEFAULTS
from weft.reasoning.samplers.registry import sampler_maker
from weft.reasoning.samplers.sampler import Sampler
from weft.reasoning.sampling.prompts import INSTRUCTION, question_messages
from weft.reasoning.sampling.sample_run import SampleRequest, SampleRun, SampleSet, ask_logprobs
from weft.reasoning.selection.grouping import group_answers
from weft.reasoning.selection.selector import Selection, elect, sample_votes
from weft.reasoning.selection.selectors import DEFAULTS as SELECTOR_DEFAULTS
from weft.reasoning.selection.selectors import SelectorSettings, asks_model, make_selector
from weft.reasoning.selection.vote import tally
from weft.reasoning.strategy import OUT_OF_TOKENS_HINT
from weft.reasoning.thought import Sample, Thought

_MEASURES: Final = ("tail", "bottom", "lowest")
_GROUPINGS: Final = ("exact", "model")
_MARKED: Final = (None, "auto", "number", "choice")
_PROXY: Final = (
    "confidence is the probability of the sampled token: this server gives no top log probabilities"
)


class SampleStrategy:
    """`make_strategy("sample", ...)`, and `best-of` with other defaults.

    Settings: `sampler` (fixed, asc, esc, short, saturating, deepconf, probe), `selector` (majority,
    first-seen, smv, confidence, best, best-weighted, pairwise, synthesis, or an object that is
    one), `answer`, how answers are read (auto, number, choice, text, or a function of text and
    wholeness), `group` (exact; model: the model says which answers mean the same before they vote),
    `instruction` (None: to end with "Answer: "), `measure` of confidence (tail, bottom,
    lowest), and those of the sampler and the selector.

    Raises: `BuildError` for settings that are none or do not go together.
    """

    def __init__(
        self,
        model: ModelClient,
        options: ThinkOptions,
        name: str = "sample",
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        own = {
            "sampler": "fixed",
            "selector": "majority",
            "answer": None,
            "instruction": None,
            "measure": "tail",
            "group": "exact",
        }
        known = {**SAMPLER_DEFAULTS, **SELECTOR_DEFAULTS, **own, **(defaults or {})}
        known["selector"], chosen = None, known["selector"]
        settings = read_settings(name, options.settings, known)
        settings["selector"] = settings["selector"] or chosen
        for one, there in (("measure", _MEASURES), ("group", _GROUPINGS)):
            if settings[one] not in there:
                hint = f"there are: {', '.join(there)}"
                raise BuildError(f"{name} has no {one} {settings[one]!r}", hint=hint)
        _settle_cancelling(name, settings)
        self._name = name
        self._model = model
        self._options = options
        self._settings = settings
        self._read: Reader = reader(settings["answer"] or "auto")
        self._make = sampler_maker(settings["sampler"], options.width, settings)
        make_selector(settings["selector"], SelectorSettings(options, self._read, settings))

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return self._name

    def work(self, question: Question) -> NodeFn:
        """See `Strategy.work`."""

        async def work(context: NodeContext, _: Inputs) -> Thought:
            root = await ChatThread.begin(context, self._model, self._options, "samples")
            sampler = self._make()
            order = await self._order(question, sampler)
            drawn = await SampleRun(root, sampler, order).run()
            if drawn.samples and all(sample.status == "failed" for sample in drawn.samples):
                why = (drawn.failures or ("no reason",))[0]
                hint = OUT_OF_TOKENS_HINT if drawn.cut else None
                raise ReasoningError(f"all samples failed: {why}", hint=hint)
            if self._settings["group"] == "model":
                drawn = await self._grouped(root, question, drawn)
            chosen = await self._select(root, question, drawn, order.read)
            return self._thought(root, question, drawn, chosen)

        return work

    async def _order(self, question: Question, sampler: Sampler) -> SampleRequest:
        options, settings = self._options, self._settings
        capabilities = await self._model.capabilities()
        read = self._read if question.schema is None or settings["answer"] else schema_key
        confident = sampler.confidence is not None or settings["selector"] == "confidence"
        asks = asks_model(settings["selector"], settings["scorer"]) or settings["group"] == "model"
        instruction = settings["instruction"]
        return SampleRequest(
            question_messages(question, INSTRUCTION if instruction is None else instruction),
            read,
            options.width,
            options.max_tokens,
            keep=options.kept if asks else 0,
            schema=question.schema,
            measure=settings["measure"] if confident else None,
            window=settings["window"],
            amend=self._logprobs(capabilities) if confident else None,
            prober=Prober(self._model, capabilities, read) if sampler.probe_tokens else None,
        )

    def _logprobs(self, capabilities: Capabilities) -> Amend:
        if not capabilities.logprobs and not capabilities.top_logprobs:
            raise CapabilityError(
                f"{self._model.model} tells no log probabilities, which confidence needs",
                hint="use another sampler and selector, or a server that tells them (vLLM)",
            )
        return ask_logprobs(min(TOP_LOGPROBS, capabilities.top_logprobs))

    async def _grouped(self, root: ChatThread, question: Question, drawn: SampleSet) -> SampleSet:
        samples, how = await group_answers(root, question, drawn.samples)
        return replace(drawn, samples=samples, why=f"{drawn.why}; {how}" if how else drawn.why)

    async def _select(
        self, root: ChatThread, question: Question, drawn: SampleSet, read: Reader
    ) -> Selection:
        voters = [drawn.samples[index] for index in drawn.voters]
        if drawn.weights is not None:
            read_ones = [sample for sample in voters if sample.key is not None]
            cast = sample_votes(read_ones, drawn.weights)
            return elect(voters, cast, tally, "votes, by confidence,")
        needs = SelectorSettings(self._options, read, self._settings)
        return await make_selector(self._settings["selector"], needs).select(root, question, voters)

    def _thought(
        self, root: ChatThread, question: Question, drawn: SampleSet, chosen: Selection
    ) -> Thought:
        answer = chosen.answer or ""
        if not answer and chosen.index is not None:
            answer = self._answer(drawn.samples[chosen.index], question)
        cut = chosen.cut
        if chosen.answer is None and chosen.index is not None and chosen.key is None:
            cut = drawn.samples[chosen.index].status != "finished"
        why = f"{drawn.why}; {chosen.why}"
        record, counts = root.finish(answer, why)
        scores = chosen.scores
        return Thought(
            answer,
            chosen.key,
            record,
            counts,
            tuple(replace(s, score=scores.get(s.index, s.score)) for s in drawn.samples),
            "approximate" if drawn.proxy else "exact",
            _PROXY if drawn.proxy else "",
            why,
            cut=cut,
        )

    def _answer(self, sample: Sample, question: Question) -> str:
        """The answer in a sample as it is written; all of its text where none is marked."""
        if sample.status == "cancelled":
            return sample.key or sample.text
        if question.schema is not None or self._settings["answer"] not in _MARKED:
            return sample.text
        numeric = self._settings["answer"] == "number"
        whole = sample.status == "finished"
        return answer_text(sample.text, whole=whole, numeric=numeric) or sample.text


def make(model: ModelClient, options: ThinkOptions) -> SampleStrategy:
    """`sample`: self-consistency, and what stops it sooner. Raises: `BuildError`."""
    return SampleStrategy(model, options)


def make_best_of(model: ModelClient, options: ThinkOptions) -> SampleStrategy:
    """`best-of`: as many samples as the width, the one with the highest score wins.

    Raises: `BuildError`.
    """
    return SampleStrategy(model, options, "best-of", {"selector": "best"})


def _settle_cancelling(name: str, settings: dict[str, Any]) -> None:
    """Only what the majority decides can be decided before all samples have ended."""
    plain = settings["selector"] == "majority" and settings["group"] == "exact"
    if settings["cancel_decided"] and not plain:
        raise BuildError(
            f"{name}: cancel_decided needs the selector majority, and answers that are not grouped",
            hint="others may choose what a majority would not",
        )
    if settings["cancel_decided"] is None:
        settings["cancel_decided"] = plain
