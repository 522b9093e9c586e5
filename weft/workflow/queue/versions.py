"""The version of a workflow: a digest of its documents and of the code that its nodes use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from weft.durability.calls import Redactor
from weft.workflow.compile.sources import SourceDigests, sources_of
from weft.workflow.document.unit import Unit

_DIGITS: Final = 12


def recorded_texts(unit: Unit, redactor: Redactor) -> Mapping[str, str]:
    """The sources of a workflow as its runs record them. Reads files; imports nothing."""
    texts: Mapping[str, str] = redactor.redact(dict(sources_of(unit, SourceDigests())))
    return texts


def version_of(texts: Mapping[str, str]) -> str:
    """The version of a workflow with these recorded sources; workers compare it."""
    text = json.dumps(dict(texts), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
