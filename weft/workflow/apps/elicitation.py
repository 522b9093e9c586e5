"""Questions of a run, put to the user of an MCP client by elicitation."""

from __future__ import annotations

from typing import Any

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import ClientCapabilities, ElicitationCapability

from weft.core.errors import InputError
from weft.core.questions import PendingQuestion
from weft.core.redaction import hidden
from weft.workflow.history.answer_text import expected, parse_answer
from weft.workflow.runtime.options import AnswerFunction

_PRIMITIVE = frozenset(("boolean", "integer", "number"))
_TRIES = 3
_FIELDS = frozenset(("approve", "reason", "changes"))
_TO_CHANGE = "to change arguments, write NAME=VALUE into `changes`"


def answer_function(session: ServerSession) -> AnswerFunction | None:
    """Asks the client's user; None where the client cannot show a form."""
    can_show = ClientCapabilities(elicitation=ElicitationCapability())
    if not session.can_send_request or not session.check_client_capability(can_show):
        return None

    async def answer(question: PendingQuestion) -> Any:
        """The user's answer; None when they declined."""
        text = str(hidden(question.question))
        for _ in range(_TRIES):
            try:
                reply = await session.elicit_form(text, _form(question))
            except MCPError:
                return None
            if reply.action != "accept" or not reply.content:
                return None
            try:
                return _value(question, dict(reply.content))
            except InputError as error:
                text = f"{error.message}\n{hidden(question.question)}"
        return None

    return answer


def _form(question: PendingQuestion) -> dict[str, Any]:
    """The schema of the form: flat, as MCP wants it."""
    hint = expected(question.schema)
    described = {"description": hint} if hint else {}
    if question.is_approval:
        properties: dict[str, Any] = {
            "approve": {"type": "boolean", "title": f"Call {question.tool}"},
            "reason": {"type": "string", "description": "Why not; only with a no."},
            "changes": {"type": "string", "description": "Other arguments: NAME=VALUE ..."},
        }
        return {"type": "object", "properties": properties, "required": ["approve"]}
    kind, choices = question.schema.get("type"), question.schema.get("enum")
    answer: dict[str, Any] = {"type": kind if kind in _PRIMITIVE else "string", **described}
    if isinstance(choices, list) and choices and all(isinstance(each, str) for each in choices):
        answer["enum"] = choices
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def _value(question: PendingQuestion, content: dict[str, Any]) -> Any:
    """The answer in a filled form. Raises: `InputError` when it does not fit."""
    schema = question.schema
    if not question.is_approval:
        given = content.get("answer")
        return given if given is None else parse_answer(_as_text(given), schema)
    unknown = [name for name, value in content.items() if name not in _FIELDS and value is not None]
    if unknown:
        raise InputError(f"the form has no field {unknown[0]!r}; {_TO_CHANGE}")
    reason, changes = content.get("reason"), content.get("changes")
    if content.get("approve") is not True:
        return {"approve": False, "reason": reason} if reason else False
    if reason:
        text = "a yes has no reason, and would make the whole call; say no with it"
        raise InputError(f"{text}, or: {_TO_CHANGE}")
    return parse_answer(f"yes {changes}", schema, question.arguments) if changes else True


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
