"""Sample, then select: self-consistency, its adaptive variants, and best-of-n."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final

from weft.core.errors import BuildError, CapabilityError, ReasoningError
from weft.core.ports import Capabilities, ModelClient
from weft.reasoning.answers import Reader, answer_text, reader, schema_key
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import Amend, ChatThread
from weft.reasoning.options import ThinkOptions
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
from weft.reasoning.selection.vote import count_votes
from weft.reasoning.thought import Sample, Thought

_MARKED: Final = (None, "auto", "number", "choice")
_PROXY: Final = (
    "confidence is the probability of the sampled token: this server gives no top log probabilities"
)
_BOUNDED: Final = "thoughts are bounded, so confidences and probes read the answers alone"


class SampleStrategy(ChatStrategy):
    """Settings: `sampler` (fixed, asc, esc, short, saturating, deepconf, probe), and its own.

    `selector` (majority, first-seen, smv, confidence, best, best-weighted, pairwise, synthesis, or
    a `Selector`), and its own. `answer`, the reader of answers (auto, number, choice, text, or a
    function of text and wholeness); `group` (exact; model: the model groups answers of the same
    meaning before they vote); `instruction` (None: to end with "Answer: "); `measure` of confidence
    (tail, bottom, lowest).

    Raises: `BuildError` for wrong settings or combinations.
    """

    name = "sample"
    role = "samples"
    selector: ClassVar = "majority"
    defaults: ClassVar = {
        **SAMPLER_DEFAULTS,
        **SELECTOR_DEFAULTS,
        "sampler": "fixed",
        "selector": None,
        "answer": None,
        "instruction": None,
        "measure": "tail",
        "group": "exact",
    }
    choices: ClassVar = {"measure": ("tail", "bottom", "lowest"), "group": ("exact", "model")}

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        super().__init__(model, options)
        settings = self.settings
        settings["selector"] = settings["selector"] or self.selector
        _settle_cancelling(self.name, settings)
        self._read: Reader = reader(settings["answer"] or "auto")
        self._make = sampler_maker(settings["sampler"], options.width, settings)
        make_selector(settings["selector"], SelectorSettings(options, self._read, settings))

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        sampler = self._make()
        request = await self._request(question, sampler)
        sample_set = await SampleRun(thread, sampler, request).run()
        if sample_set.samples and all(sample.status == "failed" for sample in sample_set.samples):
            why = (sample_set.failures or ("no reason",))[0]
            raise ReasoningError(f"all samples failed: {why}", hint=sample_set.hint)
        if self.settings["group"] == "model":
            samples, how = await group_answers(thread, question, sample_set.samples)
            why = f"{sample_set.why}; {how}" if how else sample_set.why
            sample_set = replace(sample_set, samples=samples, why=why)
        chosen = await self._select(thread, question, sample_set, request.read)
        return self._thought(thread, question, sample_set, chosen)

    @property
    def _reads_thoughts(self) -> bool:
        """Whether samples are judged while they are written."""
        watching = self.settings["sampler"] in ("deepconf", "probe")
        return watching or self.settings["selector"] == "confidence"

    async def _request(self, question: Question, sampler: Sampler) -> SampleRequest:
        options, settings = self.options, self.settings
        capabilities = await self.model.capabilities()
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
            prober=Prober(self.model, capabilities, read) if sampler.probe_tokens else None,
            thinking_tokens=options.thinking_tokens or 0,
        )

    def _logprobs(self, capabilities: Capabilities) -> Amend:
        if not capabilities.logprobs and not capabilities.top_logprobs:
            raise CapabilityError(
                f"{self.model.model} tells no log probabilities, which confidence needs",
                hint="use another sampler and selector, or a server that tells them (vLLM)",
            )
        return ask_logprobs(min(TOP_LOGPROBS, capabilities.top_logprobs))

    async def _select(
        self, root: ChatThread, question: Question, sample_set: SampleSet, read: Reader
    ) -> Selection:
        voters = [sample_set.samples[index] for index in sample_set.voters]
        if sample_set.weights is not None:
            keyed = [sample for sample in voters if sample.key is not None]
            cast = sample_votes(keyed, sample_set.weights)
            return elect(voters or sample_set.samples, cast, count_votes, "votes, by confidence,")
        needs = SelectorSettings(self.options, read, self.settings)
        return await make_selector(self.settings["selector"], needs).select(root, question, voters)

    def _thought(
        self, root: ChatThread, question: Question, sample_set: SampleSet, chosen: Selection
    ) -> Thought:
        answer = chosen.answer or ""
        if not answer and chosen.index is not None:
            answer = self._answer(sample_set.samples[chosen.index], question)
        cut = chosen.cut
        if chosen.answer is None and chosen.index is not None and chosen.key is None:
            cut = sample_set.samples[chosen.index].status != "finished"
        lost = [_PROXY] if sample_set.proxy else []
        if self._reads_thoughts and self.options.thinking_tokens:
            lost.append(_BOUNDED)
        return root.finish(
            answer,
            f"{sample_set.why}; {chosen.why}",
            key=chosen.key,
            samples=tuple(
                replace(s, score=chosen.scores.get(s.index, s.score)) for s in sample_set.samples
            ),
            fidelity="approximate" if lost else "exact",
            lost="; ".join(lost),
            cut=cut,
        )

    def _answer(self, sample: Sample, question: Question) -> str:
        """The marked answer in a sample; all of its text where none is marked."""
        if sample.status == "cancelled":
            return sample.key or sample.text
        if question.schema is not None or self.settings["answer"] not in _MARKED:
            return sample.text
        numeric = self.settings["answer"] == "number"
        whole = sample.status == "finished"
        return answer_text(sample.text, whole=whole, numeric=numeric) or sample.text


class BestOfStrategy(SampleStrategy):
    """Runs as many samples as the width; the highest score wins."""

    name = "best-of"
    selector = "best"


def _settle_cancelling(name: str, settings: dict[str, Any]) -> None:
    """Set `cancel_decided`: only a plain majority can be decided before all samples have ended."""
    plain = settings["selector"] == "majority" and settings["group"] == "exact"
    if settings["cancel_decided"] and not plain:
        raise BuildError(
            f"{name}: cancel_decided needs the selector majority, and answers that are not grouped",
            hint="others may choose what a majority would not",
        )
    if settings["cancel_decided"] is None:
        settings["cancel_decided"] = plain
