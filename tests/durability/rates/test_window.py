"""Grants never exceed a limit in any 60 seconds of the store's clock, and come in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.durability.rates import WINDOW_S, RateLimits
from weft.durability.rates.window import RateWindow

STEPS = st.lists(
    st.tuples(
        st.floats(0, 40),  # seconds that pass
        st.integers(1, 60),  # tokens that are reserved
        st.integers(0, 60),  # tokens that are used
        st.sampled_from(["keep", "settle", "cancel", "die"]),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 5), st.none() | st.integers(20, 100))
def test_no_window_has_more_than_the_limit(
    steps: list[tuple[float, int, int, str]], requests: int, tokens: int | None
) -> None:
    limits, now_s, text = RateLimits(requests, tokens), 1e9, ""
    granted: list[list[float]] = []
    for number, (passed_s, reserved, used, end) in enumerate(steps):
        now_s += passed_s
        window = RateWindow(text)
        reserved = limits.clamped(reserved)
        ticket = str(number)
        wait_s = window.ask(ticket, reserved, limits, now_s)
        if not wait_s:
            spent = reserved
            if end == "settle":
                spent = min(used, reserved)
                window.settle(ticket, spent)
            granted.append([now_s, spent])
        elif end == "cancel":
            window.withdraw(ticket)
        elif end != "die":  # waits, and is granted in its turn
            now_s += wait_s
            if not window.ask(ticket, reserved, limits, now_s):
                granted.append([now_s, reserved])
        text = window.text
    for start_s, _ in granted:
        inside = [each for each in granted if start_s <= each[0] < start_s + WINDOW_S]
        assert len(inside) <= requests
        if tokens is not None:
            assert sum(each[1] for each in inside) <= tokens


@given(st.integers(1, 4), st.integers(2, 12))
def test_who_asks_first_is_granted_first(requests: int, many: int) -> None:
    limits, window, now_s = RateLimits(requests), RateWindow(), 1e9
    waiting = [str(number) for number in range(many)]
    order: list[str] = []
    for _ in range(2_000):
        for ticket in waiting:
            if ticket not in order and not window.ask(ticket, 0, limits, now_s):
                order.append(ticket)
        if len(order) == many:
            break
        now_s += 5
    assert order == waiting


def test_a_request_that_is_withdrawn_frees_its_place() -> None:
    limits, window = RateLimits(1), RateWindow()
    assert window.ask("a", 0, limits, 1e9) == 0
    assert window.ask("b", 0, limits, 1e9) > 60
    window.withdraw("a")
    assert window.ask("b", 0, limits, 1e9) == 0


def test_a_process_that_died_holds_nobody_up_for_long() -> None:
    limits, window = RateLimits(1), RateWindow()
    window.ask("granted", 0, limits, 1e9)  # never settled
    window.ask("dead", 0, limits, 1e9)
    assert window.ask("alive", 0, limits, 1e9 + 62) > 0
    now_s = 1e9 + 62
    while (wait_s := window.ask("alive", 0, limits, now_s)) and now_s < 1e9 + 100:
        now_s += wait_s
    assert now_s <= 1e9 + 62 + 16


def test_tokens_that_were_not_used_are_free_again() -> None:
    limits, window = RateLimits(None, 100), RateWindow()
    assert window.ask("a", 80, limits, 1e9) == 0
    assert 0 < window.ask("b", 50, limits, 1e9) <= 1
    window.settle("a", 10)
    assert window.ask("b", 50, limits, 1e9 + 1) == 0


def test_a_clock_that_is_set_back_by_far_starts_anew() -> None:
    limits, window = RateLimits(1), RateWindow()
    window.ask("a", 0, limits, 1e9)
    assert window.ask("b", 0, limits, 1e9 - 10_000) == 0


def test_the_wait_that_is_announced_is_the_whole_one() -> None:
    limits, window = RateLimits(2, 100), RateWindow()
    for ticket in ("a", "b"):
        assert window.ask(ticket, 10, limits, 1e9) == 0
        window.settle(ticket, 10)
    first, behind = window.ask("c", 10, limits, 1e9), window.ask("d", 10, limits, 1e9)
    assert first == window.due_s("c", limits) == 62
    assert behind < 10  # it asks again: the other process may die
    assert window.due_s("d", limits) == 62
    for ticket in ("e", "f"):
        window.ask(ticket, 10, limits, 1e9)
    assert window.due_s("f", limits) == 122
