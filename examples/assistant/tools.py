"""What the assistant looks up beside the conversation."""

import weft

RULES = {
    ("open", "close", "hours", "when"): "It is open from 9 to 18 o'clock, except on Mondays.",
    ("borrow", "loan", "return", "book"): "Books may be borrowed for four weeks.",
    ("quiet", "phone", "talk", "noise"): "Phone calls are for the hall.",
}
LONGEST_CHARS = 2000


@weft.tool
def rules_for(messages: list[dict[str, str]]) -> str:
    """The house rules that the last question touches, as sentences."""
    last = messages[-1].get("content", "").lower() if messages else ""
    return " ".join(rule for words, rule in RULES.items() if any(word in last for word in words))


@weft.tool
def recent_turns(messages: list[dict[str, str]], most: int = 6) -> str:
    """The end of the conversation as text; only the words of the user if there is nothing else."""
    turns = [turn for turn in messages if turn.get("role") in ("user", "assistant")][-most:]
    if len(turns) == 1:
        return turns[0]["content"][-LONGEST_CHARS:]
    said = [f"{turn['role']}: {turn['content']}" for turn in turns]
    return "\n".join(said)[-LONGEST_CHARS:]
