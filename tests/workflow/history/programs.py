"""Random workflows that run on a model `small` and a tool `search`. Valid by construction."""

from __future__ import annotations

from hypothesis import strategies as st

_KINDS = ("model", "tool", "map", "loop", "branch", "join", "value", "samples")
_AROUND = ("", ", retry: 2", ", default: none", ", timeout: 3s, default: 1")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The nodes of a workflow: maps, loops, branches, joins, retries, timeouts, stand-ins."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, 7))):
        before = [f"n{each}" for each in range(number)]
        source = draw(st.sampled_from(before)) if before else "topic"
        kind = draw(st.sampled_from(_KINDS))
        width, mode = draw(st.integers(1, 3)), draw(st.sampled_from(("any", "all", "best_effort")))
        said = _said(kind, number, source, before or ["n0"], width, mode)
        if kind == "join" and not before:
            said = "value: [nothing]"
        lines.append(f"  n{number}: {{{said}{draw(st.sampled_from(_AROUND))}, on_failure: skip}}")
    return "\n".join(lines)


def _said(kind: str, number: int, source: str, before: list[str], width: int, mode: str) -> str:
    seen = f"{{{{ {source} }}}}"
    match kind:
        case "model":
            return f'model: small, prompt: "{number} {seen}"'
        case "tool":
            return f'tool: search, with: {{query: "{number} {seen}"}}'
        case "map":
            body = f'{{model: small, prompt: "{{{{ i }}}} {seen}"}}'
            return f"map: [1, 2, 3], as: i, width: {width}, mode: best_effort, do: {body}"
        case "loop":
            body = '{model: small, prompt: "{{ v }}"}'
            rest = f'as: v, start: "{seen}", until: "{{{{ iteration >= 2 }}}}", max: 3'
            return f"loop: {body}, {rest}"
        case "branch":
            cases = '{"true": {value: long}, default: {model: small, prompt: short}}'
            return f'branch: "{{{{ {source} | string | length > 9 }}}}", cases: {cases}'
        case "join":
            return f"join: [{', '.join(before)}], mode: {mode}"
        case "samples":
            return f'model: small, prompt: "s {seen}", samples: 2, seed: {number}'
    return f'value: ["{seen}", {number}]'
