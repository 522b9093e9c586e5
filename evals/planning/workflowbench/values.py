"""Values of Python-like text as values and expressions of weft documents. Evaluates nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_OPEN, _CLOSE = "([{", ")]}"
_NUMBER: Final = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?\Z")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_STEP: Final = re.compile(r"\s*(?:\.([A-Za-z_]\w*)(?!\w*\()|\[)")
_QUOTED: Final = re.compile(r"(f?)('''|\"\"\"|'|\")(.*)\2\Z", re.DOTALL)
_COMPARED: Final = re.compile(r"\s(==|!=|<=|>=|<|>|not in|in|and|or)\s")
_CONSTANTS: Final = {"True": True, "False": False, "None": None}
_CASTS: Final = {"str": "string", "int": "int", "float": "float", "list": "list"}

Ask = Callable[[str], str]
"""Makes a node that asks a person a question; returns the expression of the answer."""


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads values where `names` maps variables to expressions."""

    names: Mapping[str, str]
    ask: Ask

    def value(self, text: str) -> Any:
        """The value of an argument: data in which texts are templates."""
        text = text.strip()
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NUMBER.match(text):
            return float(text) if "." in text else int(text)
        if quoted := _quoted(text):
            return self._template(quoted[1]) if quoted[0] else literal(unescaped(quoted[1]))
        if text.startswith("[") and text.endswith("]"):
            return [self.value(part) for part in split(text[1:-1])]
        if text.startswith("{") and text.endswith("}"):
            return self._mapping(text)
        found = self.path(text)
        return literal(text) if found is None else f"{{{{ {found} }}}}"

    def expression(self, text: str) -> str:
        """A value as an expression; one that cannot be read is its own text."""
        text = text.strip()
        if quoted := _quoted(text):
            return self._joined(quoted[1]) if quoted[0] else _quote(unescaped(quoted[1]))
        if _NUMBER.match(text) or text in _CONSTANTS:
            return text.lower()
        if text in ("[]", "{}"):
            return text
        found = self.path(text)
        return _quote(text) if found is None else found

    def condition(self, text: str) -> str:
        """A test as an expression that is true or false."""
        text = text.strip()
        if text.startswith("not "):
            return f"not ({self.condition(text[4:])})"
        parts = _compared(text)
        if len(parts) == 1:
            return f"not not {self.expression(text)}"
        made = [part if n % 2 else self.expression(part) for n, part in enumerate(parts)]
        return f"({' '.join(made)})"

    def path(self, text: str) -> str | None:
        """A variable with keys and items as an expression; None for anything else."""
        found = _NAME.match(text)
        if found is None:
            return None
        name, rest = found[0], text[found.end() :]
        if rest.startswith("("):
            end = closing(rest, 0)
            start = self._called(name, rest[1:end])
            rest = rest[end + 1 :]
        else:
            start = self.names.get(name)
        return None if start is None else self._steps(start, rest)

    def _called(self, name: str, inside: str) -> str | None:
        arguments = split(inside)
        if name == "input":
            given = arguments[0] if arguments else ""
            question = self.value(given.partition("prompt=")[2] or given)
            return self.ask(str(question) or "Say")
        if name == "coerce_variable":
            given = next((each for each in arguments if each.strip().startswith("value=")), "")
            return self.path(given.partition("=")[2].strip())
        if name in _CASTS and len(arguments) == 1:
            return f"({self.expression(arguments[0])} | {_CASTS[name]})"
        return None

    def _steps(self, start: str, rest: str) -> str | None:
        while rest.strip():
            step = _STEP.match(rest)
            if step is None:
                return None
            if step[1]:
                start, rest = _property(start, step[1]), rest[step.end() :]
                continue
            end = closing(rest, step.end() - 1)
            start += self._item(rest[step.end() : end])
            rest = rest[end + 1 :]
        return start

    def _item(self, text: str) -> str:
        """The step to an item; a literal key with dots leads through mappings."""
        quoted = _quoted(text.strip())
        if quoted is None or quoted[0]:
            return f"[{self.expression(text)}]"
        return "".join(f"[{_quote(key)}]" for key in unescaped(quoted[1]).split("."))

    def _template(self, inside: str) -> str:
        made = []
        for text, is_expression in _pieces(inside):
            found = self.path(text.strip()) if is_expression else None
            if found is not None:
                made.append(f"{{{{ {found} }}}}")
            else:
                made.append(literal(f"{{{text}}}" if is_expression else unescaped(text)))
        return "".join(made)

    def _joined(self, inside: str) -> str:
        """An f-string as an expression."""
        parts = []
        for text, is_expression in _pieces(inside):
            found = self.path(text.strip()) if is_expression else None
            parts.append(_quote(unescaped(text)) if found is None else found)
        return f"({' ~ '.join(parts)})" if len(parts) > 1 else (parts or ['""'])[0]

    def _mapping(self, text: str) -> Any:
        made = {}
        for part in split(text[1:-1]):
            key, colon, value = _at_colon(part)
            if not colon:
                return literal(text)
            wrapped = re.fullmatch(r"\s*\{\s*[\"']string[\"']\s*:(.*)\}\s*", key, re.DOTALL)
            key = (wrapped[1] if wrapped else key).strip()
            quoted = _quoted(key)
            made[quoted[1] if quoted else key] = self.value(value)
        return made


def _property(start: str, name: str) -> str:
    """A property of a value; dictionaries of shortcuts have their keys and values as such."""
    if name == "Keys":
        return f"({start} | list)"
    return f"({start} | items | map('last') | list)" if name == "Values" else f'{start}["{name}"]'


def arguments_of(text: str) -> Iterator[tuple[str, str]]:
    """The named arguments inside the brackets of a call, with their text."""
    for part in split(text):
        found = re.match(r"\s*([^\W\d][\w-]*)\s*=(?!=)", part)
        if found is not None:
            yield re.sub(r"\W", "_", found[1]), part[found.end() :]


def closing(text: str, start: int) -> int:
    """The index of the bracket that closes the one at `start`; the end where none does."""
    depth, at = 0, start
    while at < len(text):
        if text[at] in "'\"":
            at = _text_end(text, at)
            continue
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        if depth == 0:
            return at
        at += 1
    return len(text)


def split(text: str) -> list[str]:
    """`text` at its commas, but not those inside brackets or quotes."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "'\"":
            at = _text_end(text, at)
        elif text[at] in _OPEN:
            at = closing(text, at) + 1
        else:
            if text[at] == ",":
                parts.append(text[start:at])
                start = at + 1
            at += 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def literal(text: str) -> str:
    """A text that stands for itself as a template."""
    return re.sub(r"\{(?=[{%#]|\Z)", "{{ '{' }}", text)


def unescaped(text: str) -> str:
    """A text without the escapes of quotes."""
    return re.sub(r"\\{1,2}(['\"])", r"\1", text)


def _text_end(text: str, at: int) -> int:
    """The index after the text that begins at `at`."""
    mark = text[at : at + 3] if text[at : at + 3] in ("'''", '"""') else text[at]
    end = text.find(mark, at + len(mark))
    return len(text) if end < 0 else end + len(mark)


def _quoted(text: str) -> tuple[bool, str] | None:
    """Whether a text in quotes is an f-string, and what is inside; None for anything else."""
    found = _QUOTED.match(text)
    if found is None or _text_end(text, len(found[1])) < len(text):
        return None
    return bool(found[1]), found[3]


def _pieces(inside: str) -> Iterator[tuple[str, bool]]:
    """The pieces of an f-string: text, or what stands in braces."""
    start = at = 0
    while (at := inside.find("{", at)) >= 0:
        end = closing(inside, at)
        if end >= len(inside):
            break
        if at > start:
            yield inside[start:at], False
        yield inside[at + 1 : end], True
        start = at = end + 1
    if inside[start:]:
        yield inside[start:], False


def _compared(text: str) -> Sequence[str]:
    """Operands and operators in turn."""
    parts, start = [], 0
    for found in _COMPARED.finditer(text):
        before = text[start : found.start()]
        if before.count("'") % 2 or before.count('"') % 2 or before.count("(") != before.count(")"):
            continue
        parts += [before, found[1]]
        start = found.end()
    return [*parts, text[start:]]


def _at_colon(part: str) -> tuple[str, str, str]:
    at = 0
    while at < len(part):
        if part[at] in "'\"":
            at = _text_end(part, at)
        elif part[at] in _OPEN:
            at = closing(part, at) + 1
        elif part[at] == ":":
            return part[:at], ":", part[at + 1 :]
        else:
            at += 1
    return part, "", ""


def _quote(text: str) -> str:
    """A text as a constant of an expression."""
    return json.dumps(text, ensure_ascii=False)
