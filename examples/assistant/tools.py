"""What the assistant looks up beside the conversation."""

import weft

RULES = {
    ("open", "close", "hours", "when"): "It is open from 9 to 18 o'clock, except on Mondays.",
    ("borrow", "loan", "return", "book"): "Books may be borrowed for four weeks.",
    ("quiet", "phone", "talk", "noise"): "Phone calls are for the hall.",
}


@weft.tool
def rules_for(question: str) -> str:
    """The house rules that a question touches, as sentences."""
    text = question.lower()
    return " ".join(rule for words, rule in RULES.items() if any(word in text for word in words))
