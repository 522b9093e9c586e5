"""The program contract: what weft knows of a call's program, in the forms that routers read.

The fields and their sources are in docs/serving/program-contract.md. Only forms that the client's
option `context` names are sent. Names of runs, nodes and prefixes leave this process as digests.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, get_args

from weft.core.errors import CapabilityError
from weft.core.ids import parent_session, session_of
from weft.core.ports.model import ModelRequest, Program
from weft.core.values import Completion
from weft.serving.extra_arguments import FIELD
from weft.serving.openai.server import Kind, Server

ContextForm = Literal["session", "vllm_router", "dynamo", "dynamo_1_2"]
"""Headers for session affinity; vLLM's router; NVIDIA Dynamo, since 1.3 and before."""

_ROUTER: Final = "agentic_context"
_DYNAMO: Final = "nvext"
_REFUSING: Final[Mapping[ContextForm, frozenset[Kind]]] = {
    "vllm_router": frozenset({"openai", "llamacpp", "sglang"}),
    "dynamo": frozenset({"openai", "llamacpp"}),
    "dynamo_1_2": frozenset({"openai", "llamacpp"}),
}
_LARGEST: Final = {"int32": 2**31 - 1, "int64": 2**63 - 1}


def check_forms(forms: object) -> tuple[ContextForm, ...]:
    """One form, or a list of forms, each once. Raises: `ValueError` for anything else."""
    known: tuple[ContextForm, ...] = get_args(ContextForm)
    given: list[object] = [forms]
    if isinstance(forms, Collection) and not isinstance(forms, str | Mapping):
        given = list(forms)
    unknown = [form for form in given if form not in known]
    if unknown:
        raise ValueError(f"context is of {', '.join(known)}, not {unknown[0]!r}")
    if "dynamo" in given and "dynamo_1_2" in given:
        raise ValueError(
            "context has dynamo or dynamo_1_2, not both: later versions refuse the old"
        )
    return tuple(form for form in known if form in given)


def salt_of(secret: str) -> str:
    """The `cache_salt` that stands for `secret`: 43 characters, 256 bits. Raises: `ValueError`."""
    if not secret:
        raise ValueError("the secret of cache_salt_env is empty, or its variable is not set")
    digest = hmac.digest(secret.encode(), b"weft cache_salt", "sha256")
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


class AnswerLengths:
    """Learns how many tokens a program's nodes write. Forgets the nodes used longest ago."""

    _NODES: Final = 10_000
    _NEW: Final = 0.3
    """The weight of the newest answer in the mean."""

    def __init__(self) -> None:
        self._means: OrderedDict[str, float] = OrderedDict()

    def expected(self, request: ModelRequest) -> int | None:
        """Expected tokens of the answer; before the first one of the node `max_tokens`, if any."""
        most = request.sampling.max_tokens
        mean = self._means.get(request.program.node) if request.program is not None else None
        if mean is None:
            return most
        return max(1, round(mean if most is None else min(mean, most)))

    def learn(self, request: ModelRequest, answer: Completion) -> None:
        """Take an answer in, unless it was cut off: then its length says nothing."""
        node, tokens = request.program and request.program.node, answer.usage.completion_tokens
        if not node or not tokens or answer.finish_reason not in ("stop", "tool_calls"):
            return
        mean = self._means.get(node, float(tokens))
        self._means[node] = mean + self._NEW * (tokens - mean)
        self._means.move_to_end(node)
        if len(self._means) > self._NODES:
            self._means.popitem(last=False)


class ProgramContract:
    """Writes a request's program into headers and body, in the `forms` of one client.

    `salt` keeps the server's prefix cache apart from that of clients with another salt.

    Raises: `ValueError` for unknown forms.
    """

    def __init__(self, forms: Collection[str] = (), salt: str | None = None) -> None:
        self._forms = check_forms(forms)
        self._salt = salt
        self._lengths = AnswerLengths()

    def headers(self, request: ModelRequest) -> dict[str, str]:
        """Headers with digests: 32 hexadecimal digits each."""
        found: dict[str, str] = {}
        affinity, program = _affinity(request), request.program
        if "session" in self._forms and affinity is not None:
            found["x-session-id"] = affinity
        if "dynamo" in self._forms and program is not None:
            session, parent, _ = _sessions(program)
            found["x-dynamo-session-id"] = session
            if parent is not None:
                found["x-dynamo-parent-session-id"] = parent
        return found

    def written(
        self, body: dict[str, Any], request: ModelRequest, server: Server, left_s: float | None
    ) -> dict[str, Any]:
        """`body` with the fields of the forms; fields that it has already stay as they are.

        `left_s`: seconds until the answer is needed. Raises: `CapabilityError` for a server that
        would refuse the fields, or ignore the salt.
        """
        if not self._forms and self._salt is None:
            return body
        self._check(server)
        found = dict(body)
        if "vllm_router" in self._forms and request.program is not None:
            context = self._agentic_context(request, request.program, left_s)
            # Text, not an object: vLLM refuses objects among its extra arguments, the router reads
            # both.
            text = json.dumps(context, separators=(",", ":"), sort_keys=True)
            found[FIELD] = _beneath({_ROUTER: text}, body.get(FIELD))
        extension = self._nvext(request)
        if extension:
            found[_DYNAMO] = _beneath(extension, body.get(_DYNAMO))
        if self._salt is not None and server.kind == "vllm":
            found.setdefault("cache_salt", self._salt)
        return found

    def answered(self, request: ModelRequest, answer: Completion) -> None:
        """Learn from a complete answer."""
        if self._forms:
            self._lengths.learn(request, answer)

    def _check(self, server: Server) -> None:
        for form in self._forms:
            if server.kind in _REFUSING.get(form, ()):
                raise CapabilityError(
                    f"a server of the kind {server.kind} does not read the context {form}",
                    hint="leave it out of `context`; the form `session` is a header for any server",
                )
        if self._salt is not None and server.kind != "vllm" and "dynamo" not in self._forms:
            raise CapabilityError(
                f"a server of the kind {server.kind} is not known to read cache_salt",
                hint="vLLM does, and so does NVIDIA Dynamo (`context: [dynamo]`)",
            )

    def _agentic_context(
        self, request: ModelRequest, program: Program, left_s: float | None
    ) -> dict[str, Any]:
        session, parent, run = _sessions(program)
        context: dict[str, Any] = {
            "program_id": session,
            "task_id": run,
            "root_program_id": run,
            "session_id": _affinity(request),
            "agent_role": "lead" if parent is None else "subagent",
            "parent_program_id": parent,
            "blocks_parent": parent is not None,
            "expected_resume": _returns(request, program),
            "priority": _clamped(request.priority, "int64") or None,
            "deadline_seconds": None if left_s is None else round(left_s, 3),
            "expected_output_length": self._lengths.expected(request),
        }
        return {name: value for name, value in context.items() if value is not None}

    def _nvext(self, request: ModelRequest) -> dict[str, Any]:
        if not {"dynamo", "dynamo_1_2"} & set(self._forms):
            return {}
        hints = {
            "priority": _clamped(request.priority, "int32") or None,
            "osl": self._lengths.expected(request),
        }
        hints = {name: value for name, value in hints.items() if value is not None}
        found: dict[str, Any] = {"agent_hints": hints} if hints else {}
        if self._salt is not None and "dynamo" in self._forms:
            found["cache_salt"] = self._salt
        if "dynamo_1_2" in self._forms and request.program is not None:
            session, parent, run = _sessions(request.program)
            context = {"session_type_id": "weft", "session_id": run, "trajectory_id": session}
            found["agent_context"] = context | (
                {} if parent is None else {"parent_trajectory_id": parent}
            )
        return found


def _sessions(program: Program) -> tuple[str, str | None, str]:
    """The digests of the call's session, of the session around it, and of the run."""
    run, session = _digest("program", program.id, ""), session_of(program.caller)
    if not session:
        return run, None, run
    own, outer = (
        _digest("program", program.id, each) for each in (session, parent_session(session))
    )
    return own, outer, run


def _affinity(request: ModelRequest) -> str | None:
    """The digest of those calls that belong on one replica: a named prefix, or a session."""
    if request.cache_prefix is not None:
        return _digest("prefix", request.cache_prefix)
    return None if request.program is None else _sessions(request.program)[0]


def _digest(*parts: str) -> str:
    text = json.dumps(parts).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _returns(request: ModelRequest, program: Program) -> bool | None:
    """An answer to a request with tools may call them, and then comes back with their results."""
    offered = bool(request.tools) and request.tool_choice != "none"
    return True if offered else program.returns


def _clamped(priority: int, size: str) -> int:
    return max(-_LARGEST[size] - 1, min(_LARGEST[size], priority))


def _beneath(ours: Mapping[str, Any], given: object) -> object:
    """Our fields under those `given`, which keep their values."""
    if given is None:
        return dict(ours)
    return {**ours, **given} if isinstance(given, Mapping) else given
