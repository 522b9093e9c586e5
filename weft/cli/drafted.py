"""How answers were drafted, in words: which decoder, how many tokens a pass, how much was kept."""

from __future__ import annotations

from collections.abc import Iterable

from weft.cli.text import clean
from weft.core.values import Speculated


def drafted(answers: Iterable[Speculated]) -> str:
    """One phrase for each decoder; one that may have changed the text is called lossy."""
    by_decoder: dict[tuple[str, bool], list[Speculated]] = {}
    for each in answers:
        by_decoder.setdefault((each.method, each.lossless), []).append(each)
    return "; ".join(_phrase(*decoder, some) for decoder, some in by_decoder.items())


def _phrase(method: str, lossless: bool, answers: list[Speculated]) -> str:
    forwards = sum(each.forwards for each in answers)
    read, kept = (sum(getattr(each, key) for each in answers) for key in ("drafted", "accepted"))
    parts = [f"{1 + kept / forwards:.1f} tokens a pass"] if forwards else []
    if read:
        parts.append(f"{kept / read:.0%} of drafts kept")
    given_up = [each.fallback for each in answers if each.fallback]
    if given_up:
        parts.append(f"given up in {len(given_up)} of {len(answers)}: {clean(given_up[0])}")
    name = clean(method) if lossless else f"{clean(method)} (lossy)"
    return f"{name}: {', '.join(parts)}" if parts else name
