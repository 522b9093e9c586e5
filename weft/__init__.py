"""weft: parallel LLM programs, from the plan down to the token.

    import weft

    @weft.tool
    async def search(query: str) -> list[str]: ...

    flow = weft.Flow("report")            # in Python
    flow = weft.load("report.yaml")       # or from a file: the same graph
    result = await flow.run(topic="rivers")     # or flow.run_sync(topic="rivers")

    answer = await weft.ask("Which river is longer?", tools=[search])   # a model plans the calls
    thought = await weft.think("Which river is longer?", strategy="sample")  # samples, threads

Names are loaded when they are first used, so `import weft` is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.lazy import lazy_names

if TYPE_CHECKING:
    from weft.agents.agent import AgentOptions, Answer
    from weft.agents.catalogue.options import CatalogueOptions
    from weft.agents.mcp import McpServer, McpTools
    from weft.agents.memory import Memory, MemoryHit
    from weft.agents.openapi import OpenApiOptions, OpenApiTools
    from weft.agents.reuse import ReusingTools
    from weft.agents.tools import Batch, Isolation, Tool, Toolbox, ToolContext, tool
    from weft.agents.tools.declaration import tool_from_schema
    from weft.cluster.settings import Ray
    from weft.core.breaker import Breaker
    from weft.core.budget import Budget
    from weft.core.call_context import idempotency_key
    from weft.core.content import Audio, File, Image
    from weft.core.errors import NotDone
    from weft.core.questions import PendingQuestion
    from weft.core.values import Message, ToolCall
    from weft.durability.calls import Confirmation
    from weft.evaluation.case import Case
    from weft.evaluation.dataset import Dataset, cases
    from weft.evaluation.evaluate import evaluate, evaluate_sync
    from weft.evaluation.metric import Score
    from weft.evaluation.result import EvaluationResult
    from weft.optimisation.optimise import optimise, optimise_sync
    from weft.optimisation.result import StudyResult
    from weft.planner.grammar.limits import GrammarLimits
    from weft.planner.rehearsal.options import RehearsalOptions
    from weft.reasoning.code.sandbox.request import SandboxLimits
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox
    from weft.reasoning.options import ThinkOptions
    from weft.reasoning.question import Document, Question
    from weft.reasoning.thought import Thought
    from weft.workflow import Flow, FlowResult, FlowRun, Handle, json_schema, literal, load, loads
    from weft.workflow.apps.ask import ask, ask_sync
    from weft.workflow.apps.think import think, think_sync
    from weft.workflow.flow.load import check
    from weft.workflow.history.simulation import advise, simulate
    from weft.workflow.queue.submission import SubmittedRun
    from weft.workflow.queue.worker import Worker
    from weft.workflow.runtime.conversations import Conversations
    from weft.workflow.runtime.journals import open_journal
    from weft.workflow.runtime.models.factory import Models
    from weft.workflow.runtime.models.think import ThoughtModel
    from weft.workflow.runtime.options import AskSettings
    from weft.workflow.runtime.results.run_stream import RunStream

_NAMES = {
    "weft.agents.agent": "AgentOptions Answer",
    "weft.agents.catalogue.options": "CatalogueOptions",
    "weft.agents.mcp": "McpServer McpTools",
    "weft.agents.memory": "Memory MemoryHit",
    "weft.agents.openapi": "OpenApiOptions OpenApiTools",
    "weft.agents.reuse": "ReusingTools",
    "weft.agents.tools": "Batch Isolation Tool ToolContext Toolbox tool",
    "weft.agents.tools.declaration": "tool_from_schema",
    "weft.cluster.settings": "Ray",
    "weft.core.breaker": "Breaker",
    "weft.core.budget": "Budget",
    "weft.core.call_context": "idempotency_key",
    "weft.core.content": "Audio File Image",
    "weft.core.errors": "NotDone",
    "weft.core.values": "Message ToolCall",
    "weft.core.questions": "PendingQuestion",
    "weft.durability.calls": "Confirmation",
    "weft.evaluation.case": "Case",
    "weft.evaluation.dataset": "Dataset cases",
    "weft.evaluation.evaluate": "evaluate evaluate_sync",
    "weft.evaluation.metric": "Score",
    "weft.evaluation.result": "EvaluationResult",
    "weft.optimisation.optimise": "optimise optimise_sync",
    "weft.optimisation.result": "StudyResult",
    "weft.planner.grammar.limits": "GrammarLimits",
    "weft.planner.rehearsal.options": "RehearsalOptions",
    "weft.reasoning.code.sandbox.request": "SandboxLimits",
    "weft.reasoning.code.sandbox.sandbox": "CodeSandbox",
    "weft.reasoning.options": "ThinkOptions",
    "weft.reasoning.question": "Document Question",
    "weft.reasoning.thought": "Thought",
    "weft.workflow": "Flow FlowResult FlowRun Handle json_schema literal load loads",
    "weft.workflow.apps.ask": "ask ask_sync",
    "weft.workflow.apps.think": "think think_sync",
    "weft.workflow.flow.load": "check",
    "weft.workflow.history.simulation": "advise simulate",
    "weft.workflow.queue.submission": "SubmittedRun",
    "weft.workflow.queue.worker": "Worker",
    "weft.workflow.runtime.conversations": "Conversations",
    "weft.workflow.runtime.journals": "open_journal",
    "weft.workflow.runtime.models.factory": "Models",
    "weft.workflow.runtime.models.think": "ThoughtModel",
    "weft.workflow.runtime.options": "AskSettings",
    "weft.workflow.runtime.results.run_stream": "RunStream",
}
__version__ = "0.1.0"
__all__ = [
    "AgentOptions",
    "Answer",
    "AskSettings",
    "Audio",
    "Batch",
    "Breaker",
    "Budget",
    "Case",
    "CatalogueOptions",
    "CodeSandbox",
    "Confirmation",
    "Conversations",
    "Dataset",
    "Document",
    "EvaluationResult",
    "File",
    "Flow",
    "FlowResult",
    "FlowRun",
    "GrammarLimits",
    "Handle",
    "Image",
    "Isolation",
    "McpServer",
    "McpTools",
    "Memory",
    "MemoryHit",
    "Message",
    "Models",
    "NotDone",
    "OpenApiOptions",
    "OpenApiTools",
    "PendingQuestion",
    "Question",
    "Ray",
    "RehearsalOptions",
    "ReusingTools",
    "RunStream",
    "SandboxLimits",
    "Score",
    "StudyResult",
    "SubmittedRun",
    "ThinkOptions",
    "Thought",
    "ThoughtModel",
    "Tool",
    "ToolCall",
    "ToolContext",
    "Toolbox",
    "Worker",
    "__version__",
    "advise",
    "ask",
    "ask_sync",
    "cases",
    "check",
    "evaluate",
    "evaluate_sync",
    "idempotency_key",
    "json_schema",
    "literal",
    "load",
    "loads",
    "open_journal",
    "optimise",
    "optimise_sync",
    "simulate",
    "think",
    "think_sync",
    "tool",
    "tool_from_schema",
]

__getattr__, __dir__ = lazy_names(__name__, _NAMES, ("errors", "events", "serve", "testing"))
