"""The facts that hold at one moment: what matches them, and what a call changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.core.facts import Bindings, Fact, FactPattern, Variable

_NOTHING: dict[Fact, None] = {}


class World:
    """Facts, found by name and by each argument. What is not among them does not hold."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[Fact, None] = {}
        self._named: dict[tuple[str, int], dict[Fact, None]] = {}
        self._having: dict[tuple[str, int, int, str], dict[Fact, None]] = {}
        for fact in facts:
            self.add(fact)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._facts

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def add(self, fact: Fact) -> bool:
        """Add `fact`; returns whether it is new."""
        if fact in self._facts:
            return False
        self._facts[fact] = None
        for group in self._groups(fact):
            group[fact] = None
        return True

    def remove(self, fact: Fact) -> None:
        """Remove `fact`, which has to be there."""
        del self._facts[fact]
        for group in self._groups(fact):
            del group[fact]

    def _groups(self, fact: Fact) -> Iterator[dict[Fact, None]]:
        size = len(fact.arguments)
        yield self._named.setdefault((fact.name, size), {})
        for place, constant in enumerate(fact.arguments):
            yield self._having.setdefault((fact.name, size, place, constant), {})

    def candidates(self, pattern: FactPattern) -> dict[Fact, None]:
        """A small group of facts with all that match the atom of `pattern`."""
        size = len(pattern.terms)
        groups = [self._named.get((pattern.name, size), _NOTHING)]
        groups += [
            self._having.get((pattern.name, size, place, term), _NOTHING)
            for place, term in enumerate(pattern.terms)
            if isinstance(term, str)
        ]
        return min(groups, key=len)

    def matching(self, pattern: FactPattern) -> Iterator[Fact]:
        """The facts that match the atom of `pattern`, in the order in which they were added."""
        found = self.candidates(pattern)
        return (fact for fact in found if pattern.match(fact, {}) is not None)

    def join(self, patterns: Sequence[FactPattern], bindings: Bindings) -> Iterator[Bindings]:
        """All bindings with which all `patterns`, none of them denied, match facts."""
        if not patterns:
            yield bindings
            return
        bound = [pattern.bind(bindings) for pattern in patterns]
        sizes = [len(self.candidates(pattern)) for pattern in bound]
        at = sizes.index(min(sizes))
        rest = [*patterns[:at], *patterns[at + 1 :]]
        for fact in self.candidates(bound[at]):
            if (found := patterns[at].match(fact, bindings)) is not None:
                yield from self.join(rest, found)

    def satisfying(self, needs: Sequence[FactPattern], bindings: Bindings) -> Iterator[Bindings]:
        """All bindings with which all `needs` hold, the denied ones too."""
        denied = [need for need in needs if need.negated]
        for found in self.join([need for need in needs if not need.negated], bindings):
            if not any(self._matches(need.bind(found)) for need in denied):
                yield found

    def _matches(self, pattern: FactPattern) -> bool:
        return next(self.matching(pattern), None) is not None

    def unmet(self, needs: Sequence[FactPattern], bindings: Bindings) -> FactPattern | None:
        """The first of `needs` that does not hold together with those before it; None: all hold."""
        ordered = sorted(needs, key=lambda need: need.negated)
        for count, need in enumerate(ordered, 1):
            if next(self.satisfying(ordered[:count], bindings), None) is None:
                found = next(self.satisfying(ordered[: count - 1], bindings), bindings)
                return need.bind(found)
        return None

    def apply(self, makes: Iterable[FactPattern], bindings: Bindings) -> None:
        """Undo the denied facts of `makes`, and then make the others."""
        bound = [make.bind(bindings) for make in makes]
        for make in bound:
            for fact in list(self.matching(make)) if make.negated else ():
                self.remove(fact)
        for make in bound:
            if not make.negated:
                self.add(make.fact())


def open_terms(pattern: FactPattern) -> FactPattern:
    """`pattern` with `*` for all that is not constant."""
    terms = tuple(term if isinstance(term, str) else Variable() for term in pattern.terms)
    return FactPattern(pattern.name, terms, pattern.negated)
