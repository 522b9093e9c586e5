"""Keywords of Python functions: an unknown one is refused with a suggestion, as a key of a file."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from weft.core.errors import BuildError
from weft.core.suggestion import suggestion

P = ParamSpec("P")
R = TypeVar("R")


def check_keywords(
    call: str, given: Iterable[str], known: Iterable[str], hint: str | None = None
) -> None:
    """Raises: `BuildError` for a keyword that `call` does not have.

    `hint`: what to do when no known keyword is like it.
    """
    names = known if isinstance(known, Collection) else frozenset(known)
    for key in given:
        if key not in names:
            remedy = suggestion(key, sorted(names), quote="`", most=None)
            if hint is not None:
                remedy = f"{remedy.partition('? ')[0]}? {hint}" if "? " in remedy else hint
            raise BuildError(f"{call} has no keyword `{key}`", hint=remedy)


def refuses_unknown_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function without **keywords: an unknown one raises `BuildError`."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = frozenset(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in kinds
    )
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        check_keywords(name, keywords, known - {"self"})
        return function(*arguments, **keywords)

    if not inspect.iscoroutinefunction(function):
        return call

    @functools.wraps(function)
    async def awaited(*arguments: P.args, **keywords: P.kwargs) -> Any:
        return await call(*arguments, **keywords)  # type: ignore[misc]

    return awaited  # type: ignore[return-value]


def refuses_wrong_calls(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a method of a flow: a call with too few or too many arguments raises `BuildError`.

    Its hint is how the method is called. A `TypeError` from inside of it stays as it is.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            _check_call(function, arguments, keywords, error)
            raise

    return call


def _check_call(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    error: TypeError,
) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as misfit:
        own = [each for each in signature.parameters.values() if each.name != "self"]
        by_position = [each.name for each in own if each.kind in _BY_POSITION]
        needed = [
            f"{each.name}=..."
            for each in own
            if each.kind is inspect.Parameter.KEYWORD_ONLY and each.default is each.empty
        ]
        wrong = [name for name in by_position if name in keywords]
        why = f"`{wrong[0]}` is given by position, not by name" if wrong else str(misfit)
        form = f"flow.{function.__name__}({', '.join([*by_position, *needed])})"
        raise BuildError(f"flow.{function.__name__}: {why}", hint=f"write {form}") from error


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def expect(value: Any, kinds: type | tuple[type, ...], what: str, hint: str) -> None:
    """Raises: `BuildError` with `hint` when `value` is not of one of these `kinds`."""
    if not isinstance(value, kinds):
        raise BuildError(f"{what}, not {value!r}"[:300], hint=hint)
