"""Which of vLLM's engines holds answers to schemas and grammars. Knows no grammar.

vLLM has one such engine in each server: left to itself, the one that the first such request fits,
and what only another one can read fails from then on. Grammars are written for `guidance`, which
reads schemas as well. The one thing it cannot read are the tags that vLLM holds tool calls to; with
those switched off, calls that are required are still held to the schemas of their tools. White
space that a schema leaves free is ruled out: a small model writes it for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.serving.vllm.installed import Engine
from weft.serving.vllm.spec import ServeSpec

FLAG = "--structured-outputs-config"


def constraint_arguments(spec: ServeSpec, engine: Engine) -> Iterator[str]:
    """What vLLM is told, unless `extra` says something else or the version is another one."""
    if _ours(spec, engine):
        yield from (f"{FLAG}.backend", "guidance", f"{FLAG}.disable_any_whitespace", "true")


def constraint_environment(spec: ServeSpec, engine: Engine) -> dict[str, str]:
    """The variables that go with it."""
    tagged = _ours(spec, engine) and spec.tool_parser is not None
    return {"VLLM_ENFORCE_STRICT_TOOL_CALLING": "0"} if tagged else {}


def _ours(spec: ServeSpec, engine: Engine) -> bool:
    return FLAG in engine.flags and not any(word.startswith(FLAG) for word in spec.extra)
