"""One of several fixed texts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weft.decoding.diffusion.structure.languages import Languages
from weft.decoding.diffusion.structure.parts import Choice, Parts, Text
from weft.decoding.diffusion.structure.pattern import Either, literal


def fixed(texts: Sequence[str], languages: Languages) -> Parts:
    """`texts`, all different, as a choice; the quotes of strings are no part of it.

    Where one is the beginning of another, the choice would not tell them apart: then they are a
    language. Raises: `NotASkeleton`.
    """
    if len(texts) == 1:
        return (Text(texts[0]),)
    if _begins_another(texts):
        return (languages.value(Either(tuple(map(literal, texts)))),)
    quote = '"' if all(text[0] == '"' for text in texts) else ""
    cores = [text.removeprefix(quote).removesuffix(quote) for text in texts]
    after = quote
    if not all(cores) or _begins_another(cores):
        after, cores = "", [text.removeprefix(quote) for text in texts]
    choice = Choice(("fixed", *cores), lambda: [(Text(core),) for core in cores])
    return Text(quote), choice, Text(after)


def _begins_another(texts: Sequence[str]) -> bool:
    ordered = sorted(texts)
    return any(b.startswith(a) for a, b in itertools.pairwise(ordered))
