"""Compiles the schema or grammar of a request into a structure that can be filled."""

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

_CACHED: Final = 64


@dataclass(frozen=True, slots=True)
class _CompiledSchema:
    """Parts of a schema, or the reason why there are none."""

    parts: Parts
    narrowed: tuple[str, ...] = ()
    reason: str = ""


class StructureCompiler:
    """Makes structures for one model; it caches recent schemas."""

    def __init__(self, lexicon: TokenVocabulary, options: StructureOptions | None = None) -> None:
        self._lexicon = lexicon
        self._options = options or StructureOptions()
        self._languages = ValueLanguages(lexicon, self._options.string_tokens)
        self._needs = MinimumTokens(lexicon.spell)
        self._cache: OrderedDict[str, _CompiledSchema] = OrderedDict()

    def start(
        self,
        *,
        room: int,
        schema: JsonSchema | None = None,
        follow: Callable[[], GrammarState] | None = None,
    ) -> Structure:
        """A structure of at most `room` tokens that fits `schema`.

        `follow` starts the grammar of a request without a skeleton, as all without a schema are.

        Raises: `ModelRequestError` when the shortest answer does not fit `room`, `NotASkeleton`
        for no skeleton and no grammar, and what `follow` raises.
        """
        compiled = _CompiledSchema((), reason="a grammar has no skeleton")
        if schema is not None:
            compiled = self._schema(schema)
        if not compiled.reason:
            skeleton = Skeleton(compiled.parts, self._lexicon, self._needs, self._options, room)
            skeleton.narrowed = compiled.narrowed
            return skeleton
        if follow is None:
            raise NotASkeleton(compiled.reason)
        ahead = self._options.open_tokens
        return LeftToRightStructure(follow(), self._lexicon.end_ids, room, ahead, compiled.reason)

    def _schema(self, schema: JsonSchema) -> _CompiledSchema:
        try:
            key = dump_json(schema)
        except NotASkeleton as reason:
            return _CompiledSchema((), reason=reason.message)
        if key not in self._cache:
            self._cache[key] = self._compiled(schema)
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return self._cache[key]

    def _compiled(self, schema: JsonSchema) -> _CompiledSchema:
        try:
            compiled = SchemaCompiler(schema, self._languages, self._options.depth)
            self._needs.of(compiled.parts)
        except NotASkeleton as reason:
            return _CompiledSchema((), reason=reason.message)
        except RecursionError:
            return _CompiledSchema((), reason="it nests too deep")
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ModelRequestError(f"the schema is none: {error}") from error
        return _CompiledSchema(compiled.parts, tuple(compiled.narrowed))
