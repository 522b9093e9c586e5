"""Templates, and plain data in which every text is a template.

limit                        text without braces stays as it is
{{ hits }}                   exactly one expression keeps the type of its value
About {{ topic }}: ...       anything else becomes text
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from jinja2 import Template as JinjaTemplate
from jinja2 import nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.utils import consume

from weft.core.errors import NodeFailed
from weft.workflow.document.expressions.analysis import (
    BadExpression,
    Reference,
    check_constants,
    references,
)
from weft.workflow.document.expressions.sandbox import (
    MAX_STEPS,
    SANDBOX,
    check_length,
    plain,
    steps_left,
    text_of,
)

_DATA = frozenset((str, int, float, bool, list, dict))
_VALUE = "__value__"
_OPENERS = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Template:
    """A parsed template. Immutable; may be rendered from many tasks at once."""

    text: str
    kind: Literal["literal", "expression", "text"]
    references: tuple[Reference, ...] = ()
    path: Reference | None = None
    tree: nodes.Template | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names whose values it needs."""
        return frozenset(reference.name for reference in self.references)

    def render(self, values: Mapping[str, Any]) -> Any:
        """The template's value, with names looked up in `values`.

        Raises: `NodeFailed` when something is undefined, or the computation fails.
        """
        if self.kind == "literal":
            return self.text
        path = self.path
        try:
            if path is not None:
                value = values.get(path.name) if not path.path else None
                return value if type(value) in _DATA else _follow(path, values)
            return self._evaluate(values) if self.kind == "expression" else self._print(values)
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise self._failed(error) from error
        except (AttributeError, RecursionError, MemoryError, SyntaxError) as error:
            raise self._failed(error) from error

    def text_for(self, values: Mapping[str, Any]) -> str:
        """The value as it would appear inside a text. Raises: `NodeFailed`."""
        return str(text_of(self.render(values)))

    def before(self, name: str) -> Template:
        """The beginning of the text, up to the first value that needs `name`."""
        if name not in self.names or self.tree is None:
            return self
        parts = list(takewhile(lambda part: name not in _names(part), _parts(self.tree)))
        names = frozenset().union(*map(_names, parts))
        used = tuple(reference for reference in self.references if reference.name in names)
        tree = nodes.Template(parts if self.kind == "text" else [], lineno=1)
        tree.set_environment(SANDBOX)
        return Template("", "text", used, None, tree)

    def _failed(self, error: Exception) -> NodeFailed:
        shown = self.text.strip().replace("\n", " ")
        shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
        reason = str(error) or type(error).__name__
        return NodeFailed(f"cannot compute {shown!r}: {reason}", hint="see the values it uses")

    def _evaluate(self, values: Mapping[str, Any]) -> Any:
        context = _code(self).new_context(dict(values))
        consume(_code(self).root_render_func(context))
        return plain(context.vars[_VALUE])

    def _print(self, values: Mapping[str, Any]) -> str:
        token = steps_left.set([MAX_STEPS])
        try:
            pieces, length = [], 0
            for piece in _code(self).generate(dict(values)):
                length += len(piece)
                check_length(length)
                pieces.append(piece)
        finally:
            steps_left.reset(token)
        return "".join(pieces)


@lru_cache(maxsize=4096)
def template(text: str) -> Template:
    """Parse `text`, unless a parsed template of it is alive. Raises: `BadExpression`."""
    parsed = _ALIVE.get(text)
    if parsed is None:
        parsed = _ALIVE[text] = _parsed(text)
    return parsed


_ALIVE: Final[WeakValueDictionary[str, Template]] = WeakValueDictionary()


def _parsed(text: str) -> Template:
    if not any(opener in text for opener in _OPENERS):
        return Template(text, "literal")
    try:
        tree = SANDBOX.parse(text)
    except TemplateSyntaxError as error:
        raise BadExpression(
            f"bad template: {error.message}", line=error.lineno, hint=_remedy(text), in_text=True
        ) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise BadExpression("bad template: too deep or too large") from error
    _check_comments(text)
    used = references(tree)
    check_constants(tree)
    expression = _only_expression(text, tree)
    if expression is None:
        return Template(text, "text", used, None, tree)
    whole = used[0] if len(used) == 1 and _is_path(expression) else None
    assignment = nodes.Assign(nodes.Name(_VALUE, "store"), expression, lineno=1)
    typed = nodes.Template([assignment], lineno=1)
    typed.set_environment(SANDBOX)
    return Template(text, "expression", used, whole, typed)


def _check_comments(text: str) -> None:
    """Raises: `BadExpression` for what Jinja would leave out of the text, without a word."""
    for line, kind, _ in SANDBOX.lex(text) if "{#" in text else ():
        if kind == "comment_begin":
            raise BadExpression(
                "templates have no comments: `{# ... #}` would be left out of the text",
                line=line,
                word="{#",
                hint="leave it out",
                in_text=True,
            )


def _parts(tree: nodes.Template) -> Iterator[nodes.Node]:
    """The pieces of a text in order: literal text, values, and whole blocks."""
    for part in tree.body:
        if isinstance(part, nodes.Output):
            yield from (nodes.Output([piece], lineno=part.lineno) for piece in part.nodes)
        else:
            yield part


def _names(part: nodes.Node) -> frozenset[str]:
    return frozenset(name.name for name in part.find_all(nodes.Name))


@lru_cache(maxsize=4096)
def _code(parsed: Template) -> JinjaTemplate:
    assert parsed.tree is not None
    return SANDBOX.from_string(parsed.tree)


def _only_expression(text: str, tree: nodes.Template) -> nodes.Expr | None:
    """The expression, if `text` consists of one expression and blanks."""
    stripped = text.strip()
    if not (stripped.startswith("{{") and stripped.endswith("}}")) or len(tree.body) != 1:
        return None
    output = tree.body[0]
    if not isinstance(output, nodes.Output):
        return None
    parts = [
        part
        for part in output.nodes
        if not (isinstance(part, nodes.TemplateData) and not part.data.strip())
    ]
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _is_path(expression: nodes.Node) -> bool:
    while isinstance(expression, (nodes.Getattr, nodes.Getitem)):
        if isinstance(expression, nodes.Getitem) and not isinstance(expression.arg, nodes.Const):
            return False
        expression = expression.node
    return isinstance(expression, nodes.Name)


def _follow(path: Reference, values: Mapping[str, Any]) -> Any:
    value = values[path.name] if path.name in values else SANDBOX.undefined(name=path.name)
    for step in path.path:
        value = (
            SANDBOX.getattr(value, step) if isinstance(step, str) else SANDBOX.getitem(value, step)
        )
    return plain(value) if callable(value) or isinstance(value, SANDBOX.undefined) else value


def _remedy(text: str) -> str:
    if text.count("{{") != text.count("}}"):
        return "every {{ needs its }}"
    return "an expression looks like {{ name.field | length }}"


Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTemplate:
    """A parsed value; `parts` are its templates, each with its path."""

    tree: Any
    parts: tuple[tuple[Path, Template], ...]

    @property
    def names(self) -> frozenset[str]:
        """The names that its templates need."""
        return frozenset().union(*(part.names for _, part in self.parts))

    @property
    def whole(self) -> Template | None:
        """The template, if the value is one text."""
        return self.tree if isinstance(self.tree, Template) else None

    def render(self, values: Mapping[str, Any]) -> Any:
        """The value with all templates rendered. Raises: `NodeFailed`."""
        return _render(self.tree, values)


def value_template(value: Any) -> ValueTemplate:
    """Parse all texts in `value`. Raises: `BadExpression`, with the `path` inside `value`."""
    parts: list[tuple[Path, Template]] = []
    return ValueTemplate(_parse(value, (), parts), tuple(parts))


def _parse(value: Any, path: Path, parts: list[tuple[Path, Template]]) -> Any:
    if isinstance(value, str):
        try:
            parsed = template(value)
        except BadExpression as error:
            error.path = path
            raise
        parts.append((path, parsed))
        return parsed
    if isinstance(value, Mapping):
        return {key: _parse(item, (*path, key), parts) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_parse(item, (*path, index), parts) for index, item in enumerate(value)]
    return value


def _render(tree: Any, values: Mapping[str, Any]) -> Any:
    kind = type(tree)
    if kind is Template:
        return tree.render(values)
    if kind is dict:
        rendered = {}  # a comprehension would be one call more for every node
        for key, item in tree.items():
            rendered[key] = item.render(values) if type(item) is Template else _render(item, values)
        return rendered
    if kind is list:
        return [_render(item, values) for item in tree]
    return tree
