"""A grammar as a strategy: the root thread runs in the strategy's node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from weft.core.errors import BuildError
from weft.core.generated_text import without_thought
from weft.core.ports import Capabilities, ModelClient, Startable
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.runtime.moves import ChildSpec
from weft.reasoning.runtime.runner import ThreadRunner
from weft.reasoning.runtime.special_tokens import SpecialTokens
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import TokenCodec
from weft.reasoning.runtime.tree import ThreadTree
from weft.reasoning.thought import Thought, cut_steps
from weft.reasoning.token_budget import BudgetLedger

_OPTIONS = ThinkOptions()


class GrammarStrategy:
    """Implements `Strategy` with `grammar`.

    Raises: `BuildError` for `thinking_tokens`: such a protocol writes within the thought.
    """

    def __init__(
        self, grammar: ProtocolGrammar, model: ModelClient, options: ThinkOptions = _OPTIONS
    ) -> None:
        if options.thinking_tokens is not None:
            raise BuildError(
                f"{grammar.name} writes within the thought, so thinking_tokens cannot end it",
                hint="leave thinking_tokens out; max_tokens and path_tokens bound its threads",
            )
        self.grammar = grammar
        self.model = model
        self.options = options

    @property
    def name(self) -> str:
        return self.grammar.name

    def work(self, question: Question) -> NodeFn:
        async def work(context: NodeContext, _: Inputs) -> Thought:
            return await self._think(context, question)

        return work

    async def _think(self, context: NodeContext, question: Question) -> Thought:
        capabilities = await ready(context, self.model)
        template = self.options.template_kwargs
        tokens = await TokenCodec.of(self.model, self.grammar, capabilities, template)
        tree = ThreadTree(
            f"{context.program.id}/{context.scope}",
            self.model,
            self.grammar,
            self.options,
            guarded(question, tokens.special, trained=self.grammar.trained),
            tokens,
            capabilities,
        )
        thread = tree.thread(context.scope, ChildSpec("", role="root"), 0, self.options.max_tokens)
        ledger = BudgetLedger(self.options.cap, self.options.answer_tokens)
        await ThreadRunner(tree, thread, ledger).run(context)
        rules = self.grammar
        lost = [rules.lost_by_prompt if tokens.special.prompted else rules.lost_trained]
        lost += [rules.lost_flat] if tree.flat else []
        lost.append(cut_steps(Counter(_cut_roles(thread, rules.steps))))
        missing = "; ".join(filter(None, lost))
        answer = without_thought(thread.result)
        return Thought(
            answer if answer == thread.result else answer.strip(),
            tree=thread.record(),
            counts=tree.counts(thread),
            fidelity="approximate" if missing else "exact",
            lost=missing,
            why=thread.reason,
            cut=thread.cut,
        )


def _cut_roles(thread: Thread, roles: Collection[str]) -> Iterator[str]:
    """The role of each cut thread below `thread` that has one of `roles`."""
    for child in thread.children:
        if child.cut and child.role in roles:
            yield child.role
        yield from _cut_roles(child, roles)


def strategy_of(
    grammar: Callable[[ThinkOptions], ProtocolGrammar],
) -> Callable[[ModelClient, ThinkOptions], GrammarStrategy]:
    """The factory of a strategy for the registry; `grammar` makes its grammar from the options."""
    return lambda model, options: GrammarStrategy(grammar(options), model, options)


async def ready(context: NodeContext, model: ModelClient) -> Capabilities:
    """The capabilities of `model`, after starting it if needed. Raises: `ModelError`."""
    if isinstance(model, Startable):
        await model.start(context.log)
    return await model.capabilities()


def guarded(question: Question, special: SpecialTokens, *, trained: bool = False) -> Question:
    """`question` with every tag in it escaped, but those in the system prompt of a `trained` model,
    which shows them as the model was trained with them.
    """
    documents = tuple(
        Document(special.guarded(document.name), special.guarded(document.text))
        for document in question.documents
    )
    return Question(
        special.guarded(question.text),
        question.system if trained else special.guarded(question.system),
        documents,
        question.schema,
    )
