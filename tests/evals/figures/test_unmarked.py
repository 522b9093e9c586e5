"""A measured number without a marker is found; what is chosen or cited is named as such."""

import pytest

from evals.figures.unmarked import idle, unmarked


@pytest.mark.parametrize(
    "text",
    [
        "It takes 12 ms.",
        "3 times as fast",
        "It is 40 % of it",
        "42% off",
        "147 tokens/s for 32",
        "280 tokens a second",
        "3.05 forwards",
        "1,679,360 bytes",
        "a 2.4x gain",
        "| weft | 1.40 |",
        "off by 4.5 points (0.67)",
    ],
)
def test_a_measured_number_is_found(text: str) -> None:
    assert list(unmarked(text))


@pytest.mark.parametrize(
    "text",
    [
        "Python 3.11 and vLLM 0.32.0",
        "LLMCompiler (arXiv 2312.04511), [there](a/b-1.2.md)",
        "`timeout: 3.5` and\n```\nit took 12 ms\n```\nthen",
        "eight nodes, 100 steps, chain_100, 10,000 items",
        "| chain | 100 |",
        "<!--=engine a/b/c .2f-->1.40<!--/--> ms",
        "<!--table engine\nhead: a\ncol: 1.5 ms = [{}/a .1f]\n-->\n| 1.5 ms |\n<!--/-->",
        "at most <!--given limit-->64 KiB<!--/--> of it",
        "<!--given cited arXiv:2211.17192-->2 to 3 times<!--/-->",
    ],
)
def test_what_is_no_measured_number_is_not(text: str) -> None:
    assert list(unmarked(text)) == []


def test_pages_of_benchmarks_have_no_bare_number_in_a_cell() -> None:
    text = "text 100\n| chain of 100 | 1,607 | **3 of 4** | 25k | 1.5 |"
    found = [(2, "1.5"), (2, "1,607"), (2, "**3 of 4**"), (2, "25k")]
    assert list(unmarked(text, cells=True)) == found
    assert list(unmarked("| a | <!--given setup-->100<!--/--> |", cells=True)) == []


@pytest.mark.parametrize(
    "marker",
    [
        "<!--given-->12 ms<!--/-->",
        "<!--given because-->12 ms<!--/-->",
        "<!--given cited-->12 ms<!--/-->",
        "<!--given cited somebody-->12 ms<!--/-->",
        f"<!--given limit-->{'12 ms and ' * 7}<!--/-->",
        "<!--given limit-->12 ms\n13 ms<!--/-->",
        "<!--ms 12--> 12 ms",
    ],
)
def test_a_marker_without_its_reason_hides_nothing(marker: str) -> None:
    assert list(unmarked(marker))


def test_a_marker_around_no_number_is_found() -> None:
    assert list(idle("<!--given limit-->a few<!--/--> <!--given limit-->5 s<!--/-->")) == ["a few"]
