"""What a rehearsal fills in, orders and refuses, in words that a user reads."""

from __future__ import annotations

import pytest

from tests.planner.rehearsal.kitchen import FACTS, GRASP, PUT, SAY, TOOLS, spec, world
from weft.core.errors import BuildError, PlanError
from weft.core.facts import parse_pattern
from weft.core.values import ToolSpec
from weft.planner.plan import PlanLimits
from weft.planner.rehearsal import RehearsedPlan, rehearse
from weft.planner.text.reader import read
from weft.planner.text.writer import write


def rehearsed(
    text: str,
    *goals: str,
    tools: tuple[ToolSpec, ...] = TOOLS,
    facts: tuple[str, ...] = FACTS,
    **options: object,
) -> RehearsedPlan:
    wanted = [parse_pattern(goal) for goal in goals]
    return rehearse(read(text, tools), tools, world(*facts), wanted, **options)  # type: ignore[arg-type]


def refused(text: str, *goals: str, **options: object) -> PlanError:
    with pytest.raises(PlanError) as caught:
        rehearsed(text, *goals, **options)  # type: ignore[arg-type]
    return caught.value


GOLDEN = """\
# inserted by the rehearsal for step 3
1. goto(room="kitchen")
# inserted by the rehearsal for step 3
2. open(place="fridge") after $1
# take it first
3. grasp(thing="apple") after $2
# inserted by the rehearsal for step 6
4. goto(room="hall") after $3
# inserted by the rehearsal for step 6
5. goto(room="attic") after $4
6. put(thing="apple", place="table") after $5
7. say(text="done")
8. join($7)
"""


def test_ways_and_doors_are_filled_in_and_steps_are_ordered() -> None:
    found = rehearsed(
        '# take it first\n1. grasp(thing="apple")\n2. put(thing="apple", place="table")\n'
        '3. say(text="done")\n4. join($3)\n'
    )
    assert write(found.plan) == GOLDEN
    assert found.inserted == (1, 2, 4, 5)
    assert found.ordered == (2, 3, 4, 5, 6)
    assert found.states > 6


def test_references_follow_their_steps_and_the_join_keeps_what_it_named() -> None:
    tools = (*TOOLS[:2], spec("look", "place", needs=["at(kitchen)"]), SAY)
    found = rehearsed('1. look(place="here")\n2. say(text=$1)\n3. join()\n', tools=tools)
    assert write(found.plan) == (
        "# inserted by the rehearsal for step 2\n"
        '1. goto(room="kitchen")\n'
        '2. look(place="here") after $1\n'
        "3. say(text=$2)\n"
        "4. join($2, $3)\n"
    )


def test_goals_fill_in_what_no_step_needs() -> None:
    found = rehearsed("1. join()\n", "at(attic)", first=4)
    assert write(found.plan) == (
        '# inserted by the rehearsal for the goals\n4. goto(room="attic")\n5. join()\n'
    )
    assert not rehearsed("1. join()\n", "at(hall)", "not holding(*)").inserted


def test_steps_that_do_not_disturb_one_another_stay_parallel() -> None:
    ring = spec("ring", "bell", makes=["rung({bell})"])
    text = '1. ring(bell="a")\n2. ring(bell="b")\n3. say(text="x")\n4. join()\n'
    found = rehearsed(text, tools=(ring, SAY))
    assert write(found.plan) == text
    assert (found.ordered, found.states) == ((), 0)


def test_a_step_that_breaks_the_need_of_another_waits_for_it() -> None:
    lock = spec("lock", "door", makes=["locked({door})"])
    leave = spec("leave", "door", needs=["not locked({door})"])
    found = rehearsed(
        '1. leave(door="front")\n2. lock(door="front")\n3. join()\n', tools=(lock, leave)
    )
    assert '2. lock(door="front") after $1' in write(found.plan)


def test_values_of_earlier_steps_are_known() -> None:
    text = "4. goto(room=$2.room)\n5. join($4)\n"
    plan = read(text, TOOLS, known={2: None})
    found = rehearse(plan, TOOLS, world(), results={2: {"room": "kitchen"}})
    assert write(found.plan) == text
    with pytest.raises(PlanError, match=r"\$2\.room does not exist"):
        rehearse(plan, TOOLS, world(), results={2: {"floor": 1}})


def test_values_are_of_the_types_of_their_parameters() -> None:
    schema = {"level": {"type": "integer"}, "fast": {"type": "boolean"}}
    lift = spec("lift", schema=schema, makes=["level({level})", "fast({fast})"], fill=True)
    fly = spec("fly", needs=["level(3)", "fast(true)"])
    found = rehearsed("1. fly()\n2. join()\n", tools=(lift, fly), facts=("ok",))
    assert "1. lift(level=3, fast=true)" in write(found.plan)
    dive = spec("dive", needs=["level(low)"])
    assert "no such call" in str(refused("1. dive()\n2. join()\n", tools=(lift, dive)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '1. put(thing="apple", place="table")\n2. join()\n',
            [
                "plan:1:1: step 1: put needs holding(apple), which does not hold then",
                'make it so first: grasp(thing="apple")',
            ],
        ),
        (
            '1. say(text="x")\n2. grasp(thing="pear")\n3. join()\n',
            ["plan:2:1: step 2: grasp needs on(pear, ", "put(thing="],
        ),
        ('1. goto(room="moon")\n2. join()\n', ["needs next(hall, moon)", "no tool makes it"]),
        (
            '1. say(text="x")\n2. goto(room=$1)\n3. join()\n',
            ["step 2: the argument room is $1, which is not known before the run"],
        ),
        (
            '1. say(text="x")\n2. grasp(thing="apple") if $1\n3. join()\n',
            ["step 2: whether grasp is called", "end this plan before it"],
        ),
        (
            '1. say(text="x")\n2. say(text="y") if $1\n3. grasp(thing="cup") after $2\n4. join()\n',
            ["step 3: whether grasp is called"],
        ),
        (
            '1. say(text="x")\n2. grasp(thing=$item) for each $1\n3. join()\n',
            ["step 2: whether each call of grasp can be made"],
        ),
    ],
)
def test_what_cannot_run_names_step_fact_and_remedy(text: str, words: list[str]) -> None:
    error = str(refused(text))
    for each in words:
        assert each in error


def test_goals_that_nothing_reaches_are_refused() -> None:
    error = refused('1. goto(room="kitchen")\n2. join()\n', "on(apple, table)")
    assert str(error).startswith("plan:2:1: the goal on(apple, table) does not hold then")
    assert error.step is None
    error = refused("1. join()\n", "not inside(table, attic)")
    assert "no tool undoes it" in str(error)


def test_an_argument_that_a_fact_names_is_given_and_single() -> None:
    loose = spec("ring", schema={"bell": {}}, makes=["rung({bell})"])
    assert "no text, number or boolean" in str(
        refused("1. ring(bell=[1])\n2. join()\n", tools=(loose,))
    )
    shape = {"type": "object", "properties": {"bell": {"type": "string"}}}
    optional = ToolSpec("ring", "", shape, makes=("rung({bell})",))
    assert "the argument bell is missing" in str(
        refused("1. ring()\n2. join()\n", tools=(optional,))
    )
    shape["properties"]["bell"]["default"] = "main"  # type: ignore[index]
    assert not rehearsed("1. ring()\n2. join()\n", "rung(main)", tools=(optional,)).inserted


def test_the_search_ends_at_its_limit_of_states() -> None:
    text = '1. grasp(thing="apple")\n2. put(thing="apple", place="table")\n3. join()\n'
    error = refused(text, states=4)
    assert "none of 4 states leads to it" in str(error)
    needed = rehearsed(text).states
    assert len(rehearsed(text, states=needed).inserted) == 4


def test_a_filled_plan_is_within_the_limits_of_plans() -> None:
    text = '1. grasp(thing="apple")\n2. join()\n'
    assert rehearsed(text, limits=PlanLimits(steps=3)).inserted
    assert "3 steps with those that are filled in, 2 are allowed" in str(
        refused(text, limits=PlanLimits(steps=2))
    )


def test_too_many_calls_are_refused_at_once() -> None:
    many = [f"thing(t{number})" for number in range(200)]
    link = spec("link", "a", "b", "c", makes=["linked({a}, {b}, {c})"], fill=True)
    use = spec("use", needs=["linked(?a, ?b, ?c)"])
    error = refused("1. use()\n2. join()\n", tools=(link, use), facts=tuple(many))
    assert "more than 20,000 calls could be filled in" in str(error)


def test_a_dead_end_is_left_again() -> None:
    """The first way to fill step 1 makes step 2 impossible; the search goes back."""
    tools = (
        spec("burn", needs=["wood"], makes=["warm", "not wood"], fill=True),
        spec("wear", needs=["coat"], makes=["warm"], fill=True),
        spec("sit", needs=["warm"]),
        spec("build", needs=["wood"]),
    )
    found = rehearsed("1. sit()\n2. build()\n3. join()\n", tools=tools, facts=("wood", "coat"))
    assert write(found.plan).splitlines()[1] == "1. wear()"


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"needs": ["at({rom})"]}, "needs: at({rom}) has no parameter 'rom'"),
        ({"makes": ["at(?x)"]}, "makes: at(?x) does not say what ?x is"),
        ({"makes": ["at(*)"]}, "makes: at(*) does not say what * is"),
        ({"needs": ["not at(?x)"]}, "needs: not at(?x) does not say what ?x is"),
        ({"needs": ["at("]}, "needs: 'at(' is no fact"),
        ({"fill": True}, "it is to be filled in, and makes nothing"),
        ({"makes": ["done"], "fill": True}, "no fact says what room is"),
    ],
)
def test_malformed_facts_of_tools_are_refused(declared: dict[str, object], why: str) -> None:
    tool = spec("go", "room", **declared)
    with pytest.raises(BuildError) as caught:
        rehearsed("1. join()\n", tools=(tool,))
    assert why in str(caught.value)


def test_tools_without_facts_change_nothing() -> None:
    text = '1. say(text="x")\n2. say(text=$1) if $1\n3. say(text=$item) for each $1\n4. join($2)\n'
    assert write(rehearsed(text, tools=(SAY, GRASP, PUT)).plan) == text
