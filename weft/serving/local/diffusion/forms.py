"""Answers of a given form: from a request's schema or grammar to a structure that is filled in.

Knows no canvas. What is read of the vocabulary for it takes a while, and is read when first needed.
"""

from __future__ import annotations

from functools import cached_property

from weft.core.ports.model import ModelRequest
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.structure.lexicon import Lexicon
from weft.decoding.diffusion.structure.structure import Structure
from weft.decoding.diffusion.structure.structures import Structures
from weft.serving.local.bounds import Bounds
from weft.serving.local.grammar import Grammar, GrammarCompiler
from weft.serving.local.options import LocalOptions
from weft.serving.local.vocabulary import Vocabulary


class Forms:
    """Makes structures for one model. A schema becomes a skeleton where it can be one; the rest is
    written from left to right, held to the grammar that models of the other kind are held to.
    """

    def __init__(self, traits: Traits, vocabulary: Vocabulary, options: LocalOptions) -> None:
        self._traits = traits
        self._vocabulary = vocabulary
        self._grammars = GrammarCompiler(vocabulary, options)
        self._bounds = Bounds(options.max_string_chars, options.max_items)

    def form(self, request: ModelRequest, room: int) -> Structure | None:
        """For an answer of at most `room` tokens; None: any text will do.

        Raises: `ModelRequestError` for a schema or grammar that is wrong, cannot be enforced, or
        whose shortest answer does not fit.
        """
        if request.schema is None and request.grammar is None:
            return None
        grammar = self._grammar(request)  # a wrong one is told of alike by both kinds of models
        schema = None if request.schema is None else self._bounds.put_on(request.schema)
        return self._structures.start(room=room, schema=schema, follow=lambda: grammar)

    def _grammar(self, request: ModelRequest) -> Grammar:
        if request.schema is not None:
            return self._grammars.start(request.schema)
        assert request.grammar is not None
        return self._grammars.read(request.grammar)

    @cached_property
    def _structures(self) -> Structures:
        traits = self._traits
        return Structures(Lexicon(self._vocabulary, traits.banned, traits.end_ids))
