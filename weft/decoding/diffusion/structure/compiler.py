"""From the schema or grammar of a request to an answer that can be filled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.core.errors import ModelRequestError
from weft.core.values import JsonSchema
from weft.decoding.diffusion.structure.keywords import dump_json
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.diffusion.structure.parts import MinimumTokens, Parts, ValueLanguages
from weft.decoding.diffusion.structure.schema import SchemaCompiler
from weft.decoding.diffusion.structure.skeleton import Skeleton, StructureOptions
from weft.decoding.diffusion.structure.structure import (
    GrammarState,
    LeftToRightStructure,
    Structure,
)

_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class _CompiledSchema:
    """What came of one schema: parts, or why there are none."""

    parts: Parts
    narrowed: tuple[str, ...] = ()
    reason: str = ""


class StructureCompiler:
    """Makes structures for one model; the last few schemas are kept."""

    def __init__(self, lexicon: TokenVocabulary, options: StructureOptions | None = None) -> None:
        self._lexicon = lexicon
        self._options = options or StructureOptions()
        self._languages = ValueLanguages(lexicon, self._options.string_tokens)
        self._needs = MinimumTokens(lexicon.spell)
        self._read: OrderedDict[str, _CompiledSchema] = OrderedDict()

    def start(
        self,
        *,
        room: int,
        schema: JsonSchema | None = None,
        follow: Callable[[], GrammarState] | None = None,
    ) -> Structure:
        """An answer of at most `room` tokens that fits `schema`.

        `follow` starts a grammar of what is asked for; it is called where there is no skeleton, as
        for every request without a schema.

        Raises: `ModelRequestError` when the shortest answer does not fit `room`, `NotASkeleton`
        where there is no skeleton and nothing to follow, and what `follow` raises.
        """
        read = _CompiledSchema((), reason="a grammar has no skeleton")
        if schema is not None:
            read = self._schema(schema)
        if not read.reason:
            skeleton = Skeleton(read.parts, self._lexicon, self._needs, self._options, room)
            skeleton.narrowed = read.narrowed
            return skeleton
        if follow is None:
            raise NotASkeleton(read.reason)
        ahead = self._options.open_tokens
        return LeftToRightStructure(follow(), self._lexicon.end_ids, room, ahead, read.reason)

    def _schema(self, schema: JsonSchema) -> _CompiledSchema:
        try:
            key = dump_json(schema)
        except NotASkeleton as reason:
            return _CompiledSchema((), reason=reason.message)
        if key not in self._read:
            self._read[key] = self._compiled(schema)
            if len(self._read) > _KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    def _compiled(self, schema: JsonSchema) -> _CompiledSchema:
        try:
            found = SchemaCompiler(schema, self._languages, self._options.depth)
            self._needs.of(found.parts)
        except NotASkeleton as reason:
            return _CompiledSchema((), reason=reason.message)
        except RecursionError:
            return _CompiledSchema((), reason="it nests too deep")
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ModelRequestError(f"the schema is none: {error}") from error
        return _CompiledSchema(found.parts, tuple(found.narrowed))
