"""How answers were drafted or filled in, in words: which decoder, how many tokens a pass."""

from __future__ import annotations

from collections.abc import Iterable

from weft.cli.text import amount, clean
from weft.core.values import Denoised, Speculated


def drafted(answers: Iterable[Speculated | Denoised]) -> str:
    """One phrase for each decoder; one that may have changed the text is called lossy."""
    speculated: dict[str, list[Speculated]] = {}
    denoised: dict[str, list[Denoised]] = {}
    for each in answers:
        name = clean(each.method) if each.lossless else f"{clean(each.method)} (lossy)"
        if isinstance(each, Denoised):
            denoised.setdefault(name, []).append(each)
        else:
            speculated.setdefault(name, []).append(each)
    phrases = [_phrase(name, some) for name, some in speculated.items()]
    phrases += [_filled(name, some) for name, some in denoised.items()]
    return "; ".join(phrases)


def _phrase(name: str, answers: list[Speculated]) -> str:
    forwards = sum(each.forwards for each in answers)
    read, kept = (sum(getattr(each, key) for each in answers) for key in ("drafted", "accepted"))
    parts = [f"{1 + kept / forwards:.1f} tokens a pass"] if forwards else []
    if read:
        parts.append(f"{kept / read:.0%} of drafts kept")
    given_up = [each.fallback for each in answers if each.fallback]
    if given_up:
        parts.append(f"given up in {len(given_up)} of {len(answers)}: {clean(given_up[0])}")
    return f"{name}: {', '.join(parts)}" if parts else name


def _filled(name: str, answers: list[Denoised]) -> str:
    forwards, kept = (sum(getattr(each, key) for each in answers) for key in ("forwards", "kept"))
    if not forwards:
        return name
    return f"{name}: {amount(forwards, 'forward')}, {kept / forwards:.1f} tokens a forward"
