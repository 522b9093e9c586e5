"""From what a request asks for to an answer that can be filled. Knows no canvas."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.core.errors import ModelRequestError
from weft.core.values import JsonSchema
from weft.decoding.diffusion.structure.keywords import spelled
from weft.decoding.diffusion.structure.languages import Languages
from weft.decoding.diffusion.structure.left_to_right import Following, LeftToRight
from weft.decoding.diffusion.structure.lexicon import Lexicon
from weft.decoding.diffusion.structure.options import StructureOptions
from weft.decoding.diffusion.structure.parts import Needs, Parts
from weft.decoding.diffusion.structure.refused import NotASkeleton
from weft.decoding.diffusion.structure.schema import SchemaParts
from weft.decoding.diffusion.structure.skeleton import Skeleton
from weft.decoding.diffusion.structure.structure import Structure

_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of one schema: parts, or why there are none."""

    parts: Parts
    narrowed: tuple[str, ...] = ()
    reason: str = ""


class Structures:
    """Makes structures for one model; the last few schemas are kept."""

    def __init__(self, lexicon: Lexicon, options: StructureOptions | None = None) -> None:
        self._lexicon = lexicon
        self._options = options or StructureOptions()
        self._languages = Languages(lexicon, self._options.string_tokens)
        self._needs = Needs(lexicon.spell)
        self._read: OrderedDict[str, _Read] = OrderedDict()

    def start(
        self,
        *,
        room: int,
        schema: JsonSchema | None = None,
        follow: Callable[[], Following] | None = None,
    ) -> Structure:
        """An answer of at most `room` tokens that fits `schema`.

        `follow` starts a grammar of what is asked for; it is called where there is no skeleton, as
        for every request without a schema.

        Raises: `ModelRequestError` when the shortest answer does not fit `room`, `NotASkeleton`
        where there is no skeleton and nothing to follow, and what `follow` raises.
        """
        read = _Read((), reason="a grammar has no skeleton")
        if schema is not None:
            read = self._schema(schema)
        if not read.reason:
            skeleton = Skeleton(read.parts, self._lexicon, self._needs, self._options, room)
            skeleton.narrowed = read.narrowed
            return skeleton
        if follow is None:
            raise NotASkeleton(read.reason)
        ahead = self._options.open_tokens
        return LeftToRight(follow(), self._lexicon.end_ids, room, ahead, read.reason)

    def _schema(self, schema: JsonSchema) -> _Read:
        try:
            key = spelled(schema)
        except NotASkeleton as reason:
            return _Read((), reason=reason.message)
        if key not in self._read:
            self._read[key] = self._compiled(schema)
            if len(self._read) > _KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    def _compiled(self, schema: JsonSchema) -> _Read:
        try:
            found = SchemaParts(schema, self._languages, self._options.depth)
            self._needs.of(found.parts)
        except NotASkeleton as reason:
            return _Read((), reason=reason.message)
        except RecursionError:
            return _Read((), reason="it nests too deep")
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ModelRequestError(f"the schema is none: {error}") from error
        return _Read(found.parts, tuple(found.narrowed))
