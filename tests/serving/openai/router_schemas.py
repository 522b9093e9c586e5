"""The published schemas of what routers read, written down as JSON Schemas, with their sources.

AGENTIC_CONTEXT  vllm-project/router, docs/program_scheduling.md at 14d6d81f and
                 src/program_scheduling/identity.rs at 1aa35009: the parser's types and bounds. Both
                 belong to pull request 286, opened on 2026-09-18 and open when they were read. The
                 object may also be JSON text of at most 16,384 bytes.
NVEXT            ai-dynamo/dynamo, lib/llm/src/protocols/common/extensions.rs at 004e2c53:
                 unknown fields are refused, and there is no `agent_context`.
NVEXT_1_2        docs.nvidia.com/dynamo/v1.2.0 (agent tracing, agent hints) and the repository's
                 docs/components/frontend/nvext.md at 04ae9290: `agent_context` in the body.

All were read in stored copies on 2026-11-28.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]


def closed(properties: Schema, *required: str, **more: Any) -> Schema:
    """An object without other fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def whole(bits: int, *, signed: bool = True) -> Schema:
    """An integer that a Rust type of so many bits holds."""
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return {"type": "integer", "minimum": least, "maximum": most}


_ID: Final = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^\S(.*\S)?$"}
_IDS: Final = (
    *("program_id", "task_id", "session_id", "agent_id", "parent_program_id"),
    *("root_program_id", "agent_role", "spawn_reason", "request_id"),
)
_SECONDS: Final = {"type": "number", "minimum": 0}
_TRUE: Final = {"const": True}

MOST_CONTEXT_BYTES: Final = 16 * 1024
AGENTIC_CONTEXT: Final = closed(
    {
        **dict.fromkeys(_IDS, _ID),
        "blocks_parent": {"type": "boolean"},
        "expected_resume": {"type": "boolean"},
        "step_id": whole(64, signed=False),
        "priority": whole(64),
        "deadline_seconds": _SECONDS,
        "expected_output_length": whole(64, signed=False),
        "kv_retention_ttl_seconds": _SECONDS,
    },
    "program_id",
    # "blocks_parent requires parent_program_id"
    anyOf=[
        {"required": ["parent_program_id"]},
        {"not": {"properties": {"blocks_parent": _TRUE}, "required": ["blocks_parent"]}},
    ],
)

_HINTS: Final = closed(
    {
        "priority": whole(32),
        "strict_priority": whole(32, signed=False),
        "osl": whole(32, signed=False),
        "speculative_prefill": {"type": "boolean"},
        "latency_sensitivity": {"type": "number"},
    }
)
_OTHERS: Final[Schema] = {
    name: {}
    for name in (
        *("greed_sampling", "use_raw_prompt", "annotations", "backend_instance_id", "token_data"),
        *("max_thinking_tokens", "extra_fields", "prefill_worker_id", "decode_worker_id"),
        *("dp_rank", "prefill_dp_rank", "request_timestamp_ms"),
    )
}
NVEXT: Final = closed(
    {
        **_OTHERS,
        "agent_hints": _HINTS,
        "cache_salt": {"type": "string"},
        "metadata_upload": {},
        "routing_constraints": {},
        "router": {},
    }
)
NVEXT_1_2: Final = closed(
    {
        **_OTHERS,
        "agent_hints": closed(
            {name: _HINTS["properties"][name] for name in ("priority", "osl")}
            | {"speculative_prefill": {"type": "boolean"}}
        ),
        "agent_context": closed(
            {
                **{
                    name: {"type": "string"}
                    for name in (
                        *("session_type_id", "session_id", "trajectory_id"),
                        "parent_trajectory_id",
                    )
                },
                "trajectory_final": {"type": "boolean"},
            },
            *("session_type_id", "session_id", "trajectory_id"),
        ),
        "session_control": {},
    }
)
