"""Plans are read while they are written: cut anywhere, never swallowed, never shortened."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.shop import SHOP, TEXT
from tests.planner.strategies import any_plans, plans, registries
from tests.profile import examples
from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanLimits, PlanStep, Ref, StepCondition
from weft.planner.text.reader import PlanReader, read
from weft.planner.text.writer import write


def value(text: str) -> object:
    """What a lone argument is read as."""
    return read(f"1. f(a={text})\n2. join()").steps[0].arguments["a"]


def ended(
    text: str | bytes, cuts: list[int], tools: tuple[ToolSpec, ...] | None
) -> Plan | PlanError:
    """How reading `text` in bytes, cut at `cuts`, ends."""
    data = text.encode() if isinstance(text, str) else text
    reader = PlanReader(tools)
    try:
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            reader.feed(data[start:end])
        return reader.close()
    except PlanError as error:
        return error


def same(one: Plan | PlanError, other: Plan | PlanError) -> bool:
    return str(one) == str(other) if isinstance(one, PlanError) else one == other


def test_the_plan_of_the_documentation_is_read() -> None:
    plan = read(TEXT, SHOP)
    assert plan == Plan(
        (
            PlanStep(1, "price", {"item": "tea"}, thought="both prices can be looked up at once"),
            PlanStep(2, "price", {"item": "coffee"}),
            PlanStep(3, "total", {"amounts": (Ref(1, ("amount",)), Ref(2, ("amount",)))}),
            PlanStep(
                4,
                "describe",
                {"text": Ref("item", ("title",)), "place": Ref("index")},
                over=Ref(3, ("lines",)),
            ),
            PlanStep(
                5,
                "warn",
                {"text": "too dear: over $3"},
                when=StepCondition(Ref(3, ("sum",)), ">", 10),
            ),
        ),
        (Ref(3), Ref(4)),
    )
    assert [step.line for step in plan.steps] == [2, 3, 4, 5, 6]
    assert write(plan) == TEXT


def test_a_step_is_there_with_the_very_piece_that_completes_it() -> None:
    reader = PlanReader(SHOP)
    came = []
    for place, character in enumerate(TEXT, 1):
        came += [(place, step.number) for step in reader.feed(character)]
        assert reader.complete == (place >= TEXT.rindex(")") + 1)
    lines = TEXT.splitlines(keepends=True)
    ends = [sum(map(len, lines[: index + 1])) for index in range(1, 6)]
    assert came == list(zip(ends, [1, 2, 3, 4, 5], strict=True))


def test_a_plan_that_is_cut_off_is_never_a_shorter_plan() -> None:
    for end in range(TEXT.rindex(")")):
        assert isinstance(ended(TEXT[:end], [], SHOP), PlanError)
        assert isinstance(ended(TEXT[:end], [], None), PlanError)


def test_what_follows_the_join_is_ignored() -> None:
    reader = PlanReader(SHOP)
    reader.feed('1. price(item="tea")\n2. join($1) \n```\n3. nothing(')
    assert reader.feed(b"\xff") == ()
    assert reader.close() == Plan((PlanStep(1, "price", {"item": "tea"}),), (Ref(1),))


@given(any_plans(), st.data())
def test_any_plan_is_read_as_it_was_written_wherever_it_is_cut(
    plan: Plan, data: st.DataObject
) -> None:
    text = write(plan)
    size = len(text.encode())
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    whole = read(text)
    assert repr(whole) == repr(read(write(whole)))
    assert whole == plan
    assert ended(text, cuts, None) == plan
    assert ended(text, list(range(1, size)), None) == plan


@given(registries().flatmap(lambda tools: st.tuples(st.just(tools), plans(tools))))
def test_a_plan_that_checks_is_read_with_its_tools(
    given: tuple[tuple[ToolSpec, ...], Plan],
) -> None:
    tools, plan = given
    assert read(write(plan), tools) == plan


@examples(200)
@given(st.integers(0, 2**32), st.booleans())
def test_spoilt_text_is_a_plan_or_a_typed_error_and_the_same_one_for_every_cut(
    seed: int, checked: bool
) -> None:
    source = random.Random(seed)
    text = list(TEXT)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(text))
        spoil = source.choice(
            ["", "\n", '"', "'", "(", ")", "\\", "$", "[", "}", "#", "5", "\ud83d"]
        )
        text[place : place + source.choice([0, 1, 9])] = spoil
    spoilt = "".join(text).replace("\ud83d", "☕")
    tools = SHOP if checked else None
    whole = ended(spoilt, [], tools)
    size = len(spoilt.encode())
    assert same(ended(spoilt, list(range(1, size)), tools), whole)
    assert same(ended(spoilt, sorted(source.sample(range(size), 3)), tools), whole)


@given(st.text(alphabet=st.sampled_from("1. f(a=\"'[{$\\#\n)]},:u0 join" + "☕"), max_size=40))
def test_any_text_is_a_plan_or_a_typed_error(text: str) -> None:
    found = ended(text, [], None)
    if isinstance(found, PlanError):
        assert min(found.line, found.column) >= 1
    else:
        assert read(write(found)) == found


@given(st.binary(max_size=20), st.integers(0, len(TEXT)))
def test_bytes_that_are_no_text_are_a_typed_error_at_their_place(noise: bytes, at: int) -> None:
    data = TEXT[:at].encode() + noise + TEXT[at:].encode()
    whole = ended(data, [], SHOP)
    assert same(ended(data, list(range(1, len(data))), SHOP), whole)


def test_text_may_follow_bytes_but_not_half_a_character() -> None:
    reader = PlanReader()
    reader.feed('1. f(a="é'.encode())
    assert reader.feed('é")\n') == (PlanStep(1, "f", {"a": "éé"}),)
    reader.feed("# é".encode()[:-1])
    with pytest.raises(PlanError, match="plan:2:3: the text holds half a character"):
        reader.feed("x")


def test_readers_share_nothing() -> None:
    one, other = PlanReader(SHOP), PlanReader(SHOP)
    one.feed('# a\n1. price(item="te')
    assert other.feed('1. price(item="x")\n') == (PlanStep(1, "price", {"item": "x"}),)
    assert one.feed('a")\n') == (PlanStep(1, "price", {"item": "tea"}, thought="a"),)
    with pytest.raises(PlanError):
        one.feed("3. nothing()\n")
    assert other.feed("2. join($1)") == ()
    assert other.close().results == (Ref(1),)


def test_a_reader_that_failed_stays_failed_and_keeps_what_came_before() -> None:
    reader = PlanReader(SHOP)
    for _ in range(2):
        with pytest.raises(PlanError, match="no tool 'prise'"):
            reader.feed('1. price(item="tea")\n2. prise(item="tea")\n3. join($1)\n')
    assert [step.number for step in reader.steps] == [1]
    with pytest.raises(PlanError, match="no tool 'prise'"):
        reader.close()


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ('"$1 is {price: \\"3\\"}, isn\'t it?"', '$1 is {price: "3"}, isn\'t it?'),
        ('"a\\u00e9\\ud83d\\ude00\\n\\/"', "aé😀\n/"),
        ('"two\nlines) # and \'more"', "two\nlines) # and 'more"),
        ("'it\\'s \"so\"'", 'it\'s "so"'),
        ("[1, -2.5e3, true, None, False, null,]", (1, -2500.0, True, None, False, None)),
        ('{"a": [$1.b[0], {c: $item}],}', {"a": (Ref(1, ("b", 0)), {"c": Ref("item")})}),
        ("{'d': (1, [2],)}", {"d": (1, (2,))}),
        ("${3}.total", Ref(3, ("total",))),
        ("${3.total}", Ref(3, ("total",))),
        ('$1["odd name"][-1].x-y.0', Ref(1, ("odd name", -1, "x-y", 0))),
        ("$index", Ref("index")),
        ("[\n  1,\n  2\n]", (1, 2)),
    ],
)  # fmt: skip
def test_values(text: str, read_as: object) -> None:
    found = value(text)
    assert found == read_as
    assert repr(found) == repr(read_as)


@pytest.mark.parametrize(
    ("condition", "read_as"),
    [
        ("if $1.ok", StepCondition(Ref(1, ("ok",)))),
        ("if not $1", StepCondition(Ref(1), "not")),
        ("if $1.n >= 3", StepCondition(Ref(1, ("n",)), ">=", 3)),
        ('if $1 == "x # \\"y"  # why', StepCondition(Ref(1), "==", 'x # "y')),
        ("if $1!=[1, {}]", StepCondition(Ref(1), "!=", (1, {}))),
        ("for each $2 if $1<-1", StepCondition(Ref(1), "<", -1)),
    ],
)
def test_conditions(condition: str, read_as: StepCondition) -> None:
    assert read(f"3. f() {condition}\n4. join()").steps[0].when == read_as


@pytest.mark.parametrize(
    ("written", "after"),
    [
        ("f() after $1", (1,)),
        ("f() after $2,$1 , ${2}  # why", (1, 2)),
        ('f() for each $1 if $2 == "after $9" after $2', (2,)),
        ("f() if $1 after $1", (1,)),
        ('f(a="x after $1")', ()),
    ],
)
def test_orders(written: str, after: tuple[int, ...]) -> None:
    assert read(f"3. {written}\n4. join()").steps[0].after == after


@pytest.mark.parametrize(
    "written",
    [
        '1) price(item = "tea" , )',
        '1. price("tea")',
        "  1.  price( 'tea' )   ",
        "1. price(\n  item='tea'\n)\r",
        '- 1. price("item": "tea")',
        '**1.** price(item="tea")',
        'Step 1: price(item="tea")',
        '$1 = price(item="tea")',
        '```text\n1. price(item="tea")',
        '\ufeff1. price(item="tea")',
    ],
)
def test_what_models_write_in_its_place_is_read(written: str) -> None:
    plan = read(f"{written}\njoin($1)", SHOP)
    assert plan == Plan((PlanStep(1, "price", {"item": "tea"}),), (Ref(1),))


def test_thoughts_belong_to_what_follows_them() -> None:
    text = "First, both (isn't it?).\n#  b\n\n1. f()  # c\n2. g()\n# d\n3. join()\n# e"
    plan = read(text)
    assert [step.thought for step in plan.steps] == ["First, both (isn't it?).\n b\nc", ""]
    assert plan.thought == "d"


def test_what_is_thought_aloud_is_not_carried_out() -> None:
    text = (
        "<think>\n1. prise(it\n2. join(isn't\n</think>\n1. price('a')\n<think>b</think> c\njoin($1)"
    )
    assert read(text, SHOP) == Plan((PlanStep(1, "price", {"item": "a"}),), (Ref(1),), "c")


def test_names_that_are_not_plain_are_quoted() -> None:
    tool = ToolSpec("find (all)", "", {"type": "object", "properties": {"$top": {}, "a.b": {}}})
    join = ToolSpec("join", "", {"type": "object", "properties": {}})
    plan = Plan(
        (PlanStep(1, "find (all)", {"$top": 1, "a.b": 2}), PlanStep(2, "join")), (Ref(1, ("a b",)),)
    )
    text = '1. "find (all)"("$top"=1, "a.b"=2)\n2. "join"()\n3. join($1["a b"])\n'
    assert write(plan) == text
    assert read(text, (tool, join)) == plan


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", (1, 1), "without its join line"),
        ('1. price(item="tea")', (1, 21), "without its join line"),
        ('1. price(item="tea")\n', (2, 1), "1"),
        ('1. price(item="tea', (1, 15), "ends inside a string"),
        ('1. price(item="tea"\n\n', (1, 9), "ends inside a bracket"),
        ('1. warn(text=[\n{"a": "b"}, (', (2, 13), "ends inside a bracket"),
        ("1. warn(text=don't)\n", (1, 14), 'a value is expected, here is "don\'t)"'),
        ('1. warn(text="say "hi"")\n', (1, 20), "a comma or ) is expected"),
        ('1. warn(text="a\\d")\n', (1, 16), "no escape \\d"),
        ('1. warn(text="\\ud800")\n', (1, 14), "half a character"),
        ('1. warn("\\udc00"=1)\n', (1, 9), "half a character"),
        ('1. "\\x"()\n', (1, 5), "no escape \\x"),
        ("1. warn(\ud800)\n", (1, 9), "half a character"),
        ("1. warn(text=1e999)\n", (1, 14), "too large"),
        ("1. warn(text=1 + 2)\n", (1, 16), "nothing is computed"),
        ("1. warn(text=price('a'))\n", (1, 14), "a call is no value"),
        ("1. warn(text=01)\n", (1, 14), "a value is expected"),
        ("1. warn(text={1: 2})\n", (1, 15), "a key is expected"),
        ('1. warn(text={"a": 1, "a": 2})\n', (1, 23), "given twice"),
        ('1. warn(text="a", text="b")\n', (1, 19), "given twice"),
        ('1. warn(text="a", "b")\n', (1, 19), "without a name"),
        ('1. warn("a", "b")\n', (1, 14), "one too many"),
        ('1. price("a", item="b")\n', (1, 10), "a second time"),
        ("1. warn(text=$price)\n", (1, 14), "a reference is expected"),
        ("1. warn(text=$1.)\n", (1, 16), "no part of a reference"),
        ("1. warn(text=$1[*].a)\n", (1, 16), "no part of a reference"),
        ('1. warn(text="a") for each [1]\n', (1, 28), "a reference is expected"),
        ('1. warn(text="a") if $1 == $2\n', (1, 28), "with a literal"),
        ('1. warn(text="a") if $1 > 3 and $2\n', (1, 29), "after the call stands 'and $2'"),
        ('1. warn(text="a") after\n', (1, 24), "a reference is expected"),
        ('1. warn(text="a") after $1.x\n', (1, 25), "`after` takes whole steps"),
        ('1. warn(text="a") after $item\n', (1, 25), "`after` takes whole steps"),
        ('1. warn(text="a") after $1\n', (1, 19), "$1 is not there yet"),
        ('1. warn(text="a") after $0\n', (1, 19), "there is no step 0"),
        ('1. warn(text="a") afterwards $0\n', (1, 19), "after the call stands"),
        ('1. warn(text="a"); 2. warn(text="b")\n', (1, 18), "after the call stands"),
        ('1. warn(text=["a"\n  1])\n', (2, 3), "a comma or ] is expected"),
        ('1. join("done")', (1, 9), "references to steps only"),
        ("1. join($item)", (1, 9), "references to steps only"),
        ('- `price(item="tea")`\n', (1, 1), "the call of price is no step"),
        ('price(item="tea")\n', (1, 1), "the call of price is no step"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, place: tuple[int, int], why: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(text, SHOP)
    error = caught.value
    assert (error.line, error.column) == place
    assert why in f"{error.message} {error.hint}"


def test_without_tools_arguments_need_their_names() -> None:
    with pytest.raises(PlanError, match=r"argument 1 has no name \(name the arguments: f\(name="):
        read("1. f(3)\n2. join()")


def test_without_any_tool_every_call_is_refused() -> None:
    assert read("1. join()", ()) == Plan()
    with pytest.raises(PlanError, match="there are none"):
        read("1. f()\n2. join()", ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1. f(a=[[[[1]]]])\n", "more than 3 levels"),
        ("1. f(a=$1.a.b.c.d)\n", "more than 3 parts"),
        ("1. f()\n2. f()\n3. f()\n", "more than 2 steps"),
        ('1. f(a="' + "x" * 300, "the line has more than 200 characters"),
        ("x" * 300, "the line has more than 200 characters"),
        ("# x\n" * 200, "the plan has more than 500 characters"),
    ],
)
def test_everything_has_a_bound(text: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        read(text, limits=PlanLimits(steps=2, text=500, step=200, depth=3))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10**6,
        '1. f(a="' + "x" * 10**6,
        "1. f(a=" + "[" * 10**6,
        "1. f(" + "a" * 10**6,
        "*" * 10**6,
        "1" * 10**6,
        "1. f(a=" + "1" * 10**6 + ")",
        "\n" * 10**6,
    ],
)
def test_endless_lines_are_refused(text: str) -> None:
    with pytest.raises(PlanError):
        read(text)


def test_limits_are_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        PlanLimits(steps=0)
