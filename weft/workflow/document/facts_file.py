"""A file of facts: a YAML list such as `- at(kitchen)`."""

from __future__ import annotations

from pathlib import Path

from weft.core.errors import BuildError
from weft.core.facts import parse_fact
from weft.workflow.document.source import YamlScalar, YamlSequence, read_file


def read_facts(path: Path) -> tuple[str, ...]:
    """The facts that the file lists.

    Raises: `SourceError` with the position of what is no list of facts.
    """
    source, tree = read_file(path)
    if not isinstance(tree, YamlSequence):
        hint = "write each fact in a line: - at(kitchen)"
        raise source.error("the file is no list of facts", tree.place, hint)
    texts = []
    for item in tree.items:
        if not isinstance(item, YamlScalar) or not isinstance(item.value, str):
            hint = "write a fact such as open(fridge), in quotes where YAML reads something else"
            raise source.error("this is no fact", item.place, hint)
        try:
            parse_fact(item.value)
        except BuildError as error:
            raise source.error(error.message, item.place, error.hint) from None
        texts.append(item.value)
    return tuple(texts)
