"""Two agents that share a list of messages: each sees what the other said, in order."""

from pathlib import Path

import weft
from weft.testing import FakeModel, Reply

FILE = Path(__file__).parents[2] / "examples/handoff/handoff.yaml"


def test_the_second_agent_sees_the_whole_conversation() -> None:
    model = FakeModel(
        [
            Reply(tool_calls=(weft.ToolCall("a", "transfer_to_billing", "{}"),)),
            Reply(tool_calls=(weft.ToolCall("b", "refund", '{"order": "A7"}'),)),
            "A7 is refunded.",
        ]
    )
    flow = weft.load(FILE)
    result = flow.run_sync(question="Refund A7, please", models={"small": model}, journal=None)
    assert (result["agent"], result["answer"]) == ("billing", "A7 is refunded.")
    systems = [request.messages[0].content.split(".")[0] for request in model.requests]
    assert systems == ["You are the desk", "You are billing", "You are billing"]
    shared = [
        "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert [message.role for message in model.requests[2].messages[1:]] == shared
    last = model.requests[2].messages
    assert last[2].tool_calls[0].id == last[3].tool_call_id
    assert [spec.name for spec in model.requests[1].tools] == ["refund", "transfer_to_desk"]


def test_agents_that_only_hand_over_end_with_an_error() -> None:
    def ping_pong(request: object) -> Reply:
        names = [spec.name for spec in getattr(request, "tools", ())]
        other = next(name for name in names if name.startswith("transfer_to_"))
        return Reply(tool_calls=(weft.ToolCall("x", other, "{}"),))

    flow = weft.load(FILE)
    result = flow.run_sync(question="Hm", models={"small": FakeModel(ping_pong)}, journal=None)
    failure = result.outcomes["talk"].failure
    assert failure is not None
    assert failure.error == "LoopLimit"
