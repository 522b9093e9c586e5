"""What lists and sentences are made of."""

from typing import Final

NAMES: Final = tuple(
    """Ada Alan Anita Boris Carla Cedric Daria Diego Edgar Elena Fatima Felix Greta Hassan Helena
    Igor Irene Jamal Joan Karl Kenji Laila Lucas Maria Milan Nadia Nils Olga Omar Paula Pedro Quinn
    Rania Robin Sofia Stefan Tamara Theo Uma Viktor Wanda Xenia Yusuf Zora""".split()  # noqa: SIM905
)
EASY: Final = tuple(
    """apple ball bird book bread chair child cloud coat door dog farm fish garden house key lake
    letter milk moon mother mountain night rain river road school snow song street summer sun table
    teacher train tree water window winter wind""".split()  # noqa: SIM905 - a list for reading
)
MEDIUM: Final = tuple(
    """accident balance bargain ceremony climate compass courage distance engine evidence factory
    festival harbor journey justice library machine memory neighbor opinion passport pattern
    permission pocket promise rescue rhythm season shelter signal storage stranger treasure
    vehicle village weather""".split()  # noqa: SIM905 - a list for reading
)
HARD: Final = tuple(
    """algorithm ambiguity anomaly archetype catalyst chronology conjecture consensus dialectic
    dissonance entropy epiphany equilibrium euphemism heuristic hierarchy hypothesis idiosyncrasy
    irony juxtaposition labyrinth metaphor nostalgia paradigm paradox pragmatism rhetoric
    serendipity solitude symmetry synthesis taxonomy threshold trajectory""".split()  # noqa: SIM905
)
