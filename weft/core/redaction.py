"""Redaction of secrets in everything that leaves a run, and their restoration in what is recalled.

It finds the secrets' values and their usual spellings, not what a program encrypts or rewrites.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, quote_plus

from weft.core.content import Media
from weft.core.list_prefixes import Items, ListPrefixCache

T = TypeVar("T")
SecretPlaces = ListPrefixCache[tuple[int, ...]]
"""A redactor's cache: for each list the indices of the items that it may change."""
Places = Callable[[Items], Sequence[int] | None]
_MARK: Final = "[secret:"
_ESCAPED: Final = "[secret:="
_HEAD: Final = 4
_SHORTEST: Final = 4  # a shorter value would blot out half of every text
_DEEPEST: Final = 200
_PLAIN: Final = (bool, int, float, complex, type(None))
INERT: Final = frozenset(_PLAIN)
"""Classes of values without text."""
_CONTAINERS: Final = (str, bytes, Mapping, list, tuple, set, frozenset)


class Redactor:
    """Replaces the values of `secrets` with `[secret:NAME]` in all texts of a value.

    Their spellings in JSON, URLs and base64 are found too. Text that already looks like a mark is
    escaped, so that `restore` inserts a secret only where one was. Values shorter than four
    characters are not redacted.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        marks: dict[str, str] = {}
        names: dict[str, None] = {}
        for name, secret in (secrets or {}).items():
            for kind, spelled in _spellings(secret):
                names[name] = None
                marks.setdefault(spelled, f"{_MARK}{name}:{kind}]" if kind else f"{_MARK}{name}]")
        self.names = tuple(names)
        self.secrets = tuple(marks)
        self._marks = marks
        self._needles = (_MARK, *marks)
        self._longest = max(map(len, marks), default=0)
        self._heads = {text[:end] for text in marks for end in range(1, _HEAD + 1)}
        self._redacting = _Exchange({**marks, _MARK: _ESCAPED})
        self._hiding = _Exchange(marks)
        restored = {mark: text for text, mark in marks.items()}
        self._restoring = _Exchange({**restored, _ESCAPED: _MARK})

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self.names)})"

    def text(self, text: str) -> str:
        """`text` without secrets."""
        return self._redacting(text) if self.in_text(text) else text

    def found(self, text: str) -> list[tuple[int, int, str]]:
        """The secrets in `text`: start, end, and the mark of each."""
        return [
            (match.start(), match.end(), self._marks[match[0]])
            for match in self._redacting.matches(text)
            if match[0] != _MARK
        ]

    def in_text(self, text: str) -> bool:
        """Whether `text` has a secret, or anything that must be escaped."""
        for needle in self._needles:  # noqa: SIM110 - called for every text that leaves a run
            if needle in text:
                return True
        return False

    def open_from(self, text: str) -> int:
        """The start of a possible secret at the end of `text`; the length of `text` if none."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[start : start + _HEAD] in self._heads:
                tail = text[start:]
                if any(len(s) > len(tail) and s.startswith(tail) for s in self.secrets):
                    return start
        return len(text)

    def hides(self, value: Any, known: SecretPlaces | None = None) -> bool:
        """Whether `value` contains a secret anywhere. `known`: as in `redact`."""
        if self.are_clean((value,), known):
            return False
        hidden = False

        def look(text: str) -> str:
            nonlocal hidden
            hidden = hidden or any(secret in text for secret in self.secrets)
            return text

        _mapped(value, look)
        return hidden

    def redact(self, value: T, known: SecretPlaces | None = None) -> T:
        """`value` without secrets: in texts, bytes, keys, containers and dataclasses.

        A value without secrets is returned as it is. Where a text changes, the `token_ids` of the
        same dataclass, which spell it, are removed. An object of any other class whose `repr` shows
        a secret becomes that redacted text; what is nested more than 200 deep is cut off.

        `known`: what this redactor has found in lists before. Of a list that grew only new items
        are searched; of others, no clean item.
        """
        if self.are_clean((value,), known):
            return value
        unclean = None if known is None else partial(self._unclean, known)
        return cast(T, _mapped(value, self._redacting, unclean=unclean))

    def are_clean(self, values: Iterable[Any], known: SecretPlaces | None = None) -> bool:
        """Whether `redact` would change none of them; False also where that is not cheap to say."""
        unclean = None if known is None else partial(self._unclean, known)
        texts = _texts_of(values, unclean)
        return texts is not None and not self.in_text("\n".join(texts))

    def hide(self, value: T) -> T:
        """Like `redact`, for people and peers: marks are not escaped, and nothing is restored."""
        return cast(T, _mapped(value, self._hiding)) if self.secrets else value

    def restore(self, value: T) -> T:
        """The inverse of `redact`, for the same secrets."""
        return cast(T, _mapped(value, self._restoring))

    def _unclean(self, known: SecretPlaces, items: Items) -> Sequence[int] | None:
        """The indices of the items that `redact` may change; None: unknown."""
        prefix = known.find(items)
        if prefix is None:
            return None
        places, new = prefix.state or (), items[prefix.length :]
        if not self.are_clean(new):
            indexed = enumerate(new, prefix.length)
            places += tuple(place for place, item in indexed if not self.are_clean((item,)))
        known.keep(prefix, items, places, 8 * len(places))
        return places


class _Exchange:
    """Replaces texts by others, the longest first, in one pass."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._longest_first = sorted(texts, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        pattern = self._pattern(text)
        return pattern.sub(lambda match: self._texts[match[0]], text) if pattern else text

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in `text`."""
        pattern = self._pattern(text)
        return pattern.finditer(text) if pattern else iter(())

    def _pattern(self, text: str) -> re.Pattern[str] | None:
        # Nearly always none matches, and searching for them one by one is fastest.
        present = [each for each in self._longest_first if each in text]
        return re.compile("|".join(map(re.escape, present))) if present else None


def _spellings(secret: str) -> list[tuple[str, str]]:
    """The spellings of a secret in texts, each with the name of its encoding."""
    bare = secret.removeprefix("Bearer ")
    raw = bare.encode("utf-8", "surrogatepass")
    in_json = json.dumps(bare)[1:-1]
    spelled = {
        "": bare,
        "json": in_json,
        "json2": json.dumps(in_json)[1:-1],
        "json-utf8": json.dumps(bare, ensure_ascii=False)[1:-1],
        "url": quote(raw, safe=""),
        "path": quote(raw),
        "form": quote_plus(raw),
        "base64": base64.b64encode(raw).decode().rstrip("="),
        "base64url": base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "repr": repr(bare)[1:-1],
    }
    texts: dict[str, str] = {}
    for kind, text in spelled.items():
        if len(bare) >= _SHORTEST and text not in texts:
            texts[text] = kind
    return [(kind, text) for text, kind in texts.items()]


def _mapped(
    value: Any, change: Callable[[str], str], depth: int = 0, unclean: Places | None = None
) -> Any:
    """`value` with `change` applied to all its texts; the same object where nothing changes.

    `unclean`: the items of a list that may change, where known.
    """
    if isinstance(value, _PLAIN):
        return value
    if depth > _DEEPEST:
        return "[nested too deep to be kept]"
    if isinstance(value, str | bytes):
        return _text_or_bytes(value, change)
    if isinstance(value, Mapping) and not isinstance(value, Media):
        return _mapping(value, change, depth + 1, unclean)
    if isinstance(value, list | tuple | set | frozenset):
        return _sequence(value, change, depth + 1, unclean)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _record(value, change, depth + 1, unclean)
    changed = change(shown := _shown(value))
    return value if changed == shown else changed


def _text_or_bytes(value: str | bytes, change: Callable[[str], str]) -> str | bytes:
    text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
    changed = change(text)
    if changed == text:
        return value
    return changed if isinstance(value, str) else changed.encode("utf-8", "surrogateescape")


def _mapping(
    value: Mapping[Any, Any], change: Callable[[str], str], depth: int, unclean: Places | None
) -> Any:
    items = list(value.items())
    made = [(_mapped(key, change), _mapped(item, change, depth, unclean)) for key, item in items]
    same = all(new[0] is old[0] and new[1] is old[1] for new, old in zip(made, items, strict=True))
    return value if same else dict(made)


def _sequence(value: Any, change: Callable[[str], str], depth: int, unclean: Places | None) -> Any:
    made, changed = list(value), False
    places = None
    if unclean is not None and type(value) in (list, tuple):
        places = unclean(value)
    for place in range(len(made)) if places is None else places:
        new = _mapped(made[place], change, depth, unclean)
        changed = changed or new is not made[place]
        made[place] = new
    if not changed:
        return value
    if hasattr(value, "_fields"):  # a named tuple takes its items one by one
        return type(value)(*made)
    kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
    return kind(made)


def _record(value: Any, change: Callable[[str], str], depth: int, unclean: Places | None) -> Any:
    changed = {}
    for field in dataclasses.fields(value):
        old = getattr(value, field.name)
        new = _mapped(old, change, depth, unclean)
        if new is not old and field.init:
            changed[field.name] = new
    if changed and "token_ids" in value.__dataclass_fields__:
        changed["token_ids"] = ()  # they spell the same text
    return dataclasses.replace(value, **changed) if changed else value


def _parts(value: Any, kind: type) -> Iterable[Any] | None:
    """The parts of a container or a dataclass; None for anything else."""
    if kind is dict:
        return (*value, *value.values())
    if kind is list or kind is tuple:
        return cast(Iterable[Any], value)
    fields = _fields_of(kind)
    return None if fields is None else fields(value)


@lru_cache(maxsize=512)
def _fields_of(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    if not dataclasses.is_dataclass(kind) or issubclass(kind, _CONTAINERS):
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _texts_of(values: Iterable[Any], unclean: Places | None = None) -> list[str] | None:
    """All texts in `values`; None where a part is not plain, or in a list that is not clean.

    `unclean` names the items of lists that may change; clean lists are skipped. Visits each part
    once, in one frame: every record of a run passes here.
    """
    texts: list[str] = []
    levels = [iter(values)]
    while levels:
        for part in levels[-1]:
            kind = type(part)
            if kind is str:
                texts.append(part)
            elif kind not in INERT:
                inside = _parts(part, kind)
                if inside is None or len(levels) > _DEEPEST:
                    return None
                if unclean is not None and (kind is list or kind is tuple):
                    places = unclean(part)
                    if places:
                        return None
                    if places is not None:
                        continue
                levels.append(iter(inside))
                break
        else:
            levels.pop()
    return texts


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a foreign class may have any `__repr__`
        return ""


V = TypeVar("V")
_SHORTEST_FOUND: Final = 8  # of variables that were not named
_TELLING: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|$)",
    re.IGNORECASE,
)


def named_secrets(
    names: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The values of the variables `names`, and of those whose name looks like a secret's."""
    secrets = {name: environment[name] for name in names if environment.get(name)}
    for name in environment:
        if _is_telling(name) and len(value := environment[name]) >= _SHORTEST_FOUND:
            secrets.setdefault(name, value)
    return secrets


@lru_cache(maxsize=4096)
def _is_telling(name: str) -> bool:
    """Whether the name of a variable looks like a secret's."""
    return _TELLING.search(name) is not None


def redactor_for(secrets: Mapping[str, str]) -> Redactor:
    """The redactor of these secrets; the same object for equal secrets."""
    return _redactor(tuple(secrets.items()))


@lru_cache(maxsize=8)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(secrets))


class _NamedSecrets:
    """The variables that this process's workflows name as keys, and their values' redactor."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.secrets: dict[str, str] = {}
        self.redactor = Redactor()

    def look(self) -> None:
        secrets = named_secrets(sorted(self.names))
        if secrets != self.secrets:
            self.secrets, self.redactor = secrets, redactor_for(secrets)


_named = _NamedSecrets()


def know_secrets(names: Iterable[str] = ()) -> Mapping[str, str]:
    """Read the environment again; `names` are further variables that hold keys.

    Returns the values of all that are known, by name: of these and earlier `names`, and of those
    that `named_secrets` finds.
    """
    _named.names.update(names)
    _named.look()
    return _named.secrets


def hidden(value: V) -> V:
    """`value` without this process's secrets, fit to be shown to people and peers."""
    return _named.redactor.hide(value)


class SecretFilter(logging.Filter):
    """Removes this process's secrets from log records and their tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = hidden(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text, record.exc_info = hidden(record.exc_text), None
        return True


know_secrets()
