"""The pure parts of MIRAGE: triples, the graph, steps, verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import BuildError, InputError
from weft.reasoning.mirage.chain import RetrievalStep, read_step
from weft.reasoning.mirage.graph import KnowledgeGraph, Triple, check_source, graph_of, read_triples
from weft.reasoning.mirage.prompts import ChainFinding
from weft.reasoning.mirage.strategy import believed
from weft.reasoning.question import Document

FACTS = (("Bonn", "lies on", "Rhine"), ("Rhine", "flows to", "North Sea"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.json", '[["Bonn", "lies on", "Rhine"],\n ["Rhine", "flows to", "North  Sea"]]'),
        ("bom.json", '\ufeff [["Bonn", "lies on", "Rhine"], ["Rhine", "flows to", "North Sea"]]'),
        ("lines.jsonl", '["Bonn", "lies on", "Rhine"]\n\n["Rhine", "flows to", "North Sea"]\n'),
        (
            "objects.jsonl",
            (
                '{"subject": "Bonn", "relation": "lies on", "object": "Rhine"}\n'
                '{"head": "Rhine", "predicate": "flows to", "tail": "North Sea", "since": 1}'
            ),
        ),
        (
            "member.json",
            (
                '{"triples": [{"s": "Bonn", "r": "lies on", "o": "Rhine"},'
                ' ["Rhine", "flows to", "North Sea"]], "more": 1}'
            ),
        ),
        ("plain.csv", "Bonn,lies on,Rhine\nRhine,flows to,North Sea"),
        (
            "header.csv",
            "Object,Subject,Relation\r\nRhine,Bonn,lies on\r\n\r\nNorth Sea,Rhine,flows to\r\n",
        ),
        ("tabs.tsv", "Bonn\tlies on\tRhine\nRhine\tflows to\tNorth Sea\n"),
        ("semicolon.csv", 'Bonn;"lies on";Rhine;extra\nRhine;"flows\nto";North Sea\n'),
    ],
)
def test_triples_are_read_from_what_people_have(name: str, text: str) -> None:
    triples = read_triples(Document(name, text))
    assert tuple((t.subject, t.relation, t.object) for t in triples) == FACTS
    for triple in triples:
        assert text[triple.start : triple.end] == triple.text
        assert "Rhine" in triple.text
        assert "\n" not in triple.text.strip('"') or name == "semicolon.csv"


@pytest.mark.parametrize("text", ["", "  \n", "[]", "subject,relation,object\n"])
def test_nothing_is_no_triples(text: str) -> None:
    assert read_triples(Document("x", text)) == ()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("Bonn,lies on,Rhine\nRhine,flows to\n", "facts:2"),
        ("This is prose.", "facts:1"),
        ('[["a", "b", "c"],\n ["a", "b"]]', "facts:2"),
        ('[["a", "b", "c"],\n oops]', "facts:2"),
        ('[["a", "b", ["c"]]]', "facts:1"),
        ('{"subject": "a", "relation": "", "object": "b"}', "facts:1"),
        ("[" * 100_000, "facts:1"),
        ('a,b,c\n"never closed,b,c', "facts:2"),
    ],
)
def test_what_is_no_triple_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(InputError, match=where) as caught:
        read_triples(Document("facts", text))
    assert caught.value.hint is not None


@examples(150)
@given(st.text(st.sampled_from('[]{},"\n\tab:\\\ufeff;1'), max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        triples = read_triples(Document("d", text))
    except InputError:
        return
    assert all(text[triple.start : triple.end] == triple.text for triple in triples)


def graph(*facts: tuple[str, str, str]) -> KnowledgeGraph:
    return KnowledgeGraph([Triple(*fact, "d", 0, 0, "") for fact in facts])


RIVERS = graph(
    *FACTS,
    ("Cologne", "lies on", "rhine"),
    ("Bonn", "twinned with", "Oxford"),
    ("Oxford", "lies on", "River Thames"),
    ("River Thames", "flows to", "North Sea"),
    ("Bonn", "is in", "Germany"),
)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("BONN", "Bonn"),
        ("the Rhine", "Rhine"),
        ("Thames", "River Thames"),
        ("Colonge", "Cologne"),
        ("Paris", None),
        ("", None),
        ("?!", None),
    ],
)
def test_entities_are_found_by_what_people_call_them(said: str, found: str | None) -> None:
    assert RIVERS.find(said) == found


def test_neighbours_come_by_relation_and_then_as_given() -> None:
    assert RIVERS.around("Bonn") == (0, 3, 6)
    assert RIVERS.around("Bonn", "is twinned with") == (3, 6, 0)
    assert RIVERS.around("Bonn", most=1) == (0,)
    assert RIVERS.around("Paris") == ()


def test_ways_are_the_shortest_and_within_their_hops() -> None:
    assert RIVERS.between("Cologne", "North Sea", hops=2) == (2, 1)
    assert RIVERS.between("Cologne", "Oxford", hops=3) == (2, 0, 3)
    assert RIVERS.between("Cologne", "Oxford", hops=2) == ()
    assert RIVERS.between("Bonn", "North Sea", hops=9, most=1) == (0,)
    assert RIVERS.between("Bonn", "Bonn", hops=3) == ()
    assert RIVERS.between("Bonn", "Atlantis", hops=3) == ()
    assert graph(("a", "r", "b"), ("c", "r", "d")).between("a", "d", hops=9) == ()


def test_a_crowded_graph_answers_with_few_facts() -> None:
    crowd = graph(*((f"a{n}", "knows", f"b{m}") for n in range(60) for m in range(60)))
    assert len(crowd.around("a1")) == 12
    assert len(crowd.between("a1", "a2", hops=4)) <= 12


def test_a_fact_about_itself_and_the_same_fact_twice_are_fine() -> None:
    twice = graph(("a", "is", "A"), ("a", "is", "b"), ("b", "was", "a"))
    assert twice.around("a") == (0, 1, 2)
    assert twice.between("a", "b", hops=1) == (1, 2)


def test_names_in_a_text_are_the_longest_first_and_whole_words() -> None:
    assert RIVERS.named_in("Is bonn on the River Thames, or on the Rhineland?", 5) == (
        "River Thames",
        "Bonn",
    )
    assert RIVERS.named_in("Bonn Oxford Rhine", 2) == ("Oxford", "Rhine")


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Thought: hm\nLook up: Bonn", RetrievalStep("look up", "Bonn", thought="hm")),
        (
            "**Look up:** [Bonn] | twin town\nAnswer: Paris",
            RetrievalStep("look up", "Bonn", "twin town"),
        ),
        ("Connect: Bonn | North Sea", RetrievalStep("connect", "Bonn", "North Sea")),
        ("Connect: Bonn and Tom and Jerry", RetrievalStep("connect", "Bonn", "Tom and Jerry")),
        ("connect: Bonn -> Oxford", RetrievalStep("connect", "Bonn", "Oxford")),
        ("Connect: Bonn", RetrievalStep("look up", "Bonn")),
        ("Answer: It is [T3].\nIndeed.", RetrievalStep("answer", answer="It is [T3].\nIndeed.")),
        (
            '{"thought": "x", "action": "look_up", "entity": "Bonn", "other": null}',
            RetrievalStep("look up", "Bonn", thought="x"),
        ),
        ('{"action": "answer", "answer": 42}', RetrievalStep("answer", answer="42")),
        ('{"action": "answer"}', None),
        ('{"action": "look up", "entity": ""}', None),
        ("Look up:\nAnswer:", None),
        ("I would look up: Bonn", None),
        ("", None),
    ],
)
def test_steps_are_read_in_both_spellings(text: str, step: RetrievalStep | None) -> None:
    assert read_step(text) == step


@pytest.mark.parametrize(
    ("verdict", "kept"),
    [
        ("Chain 1: keep\nChain 2: drop, no proof", (0, 2)),
        ("chain 1: DROP\n**Chain 3**: drop", (1,)),
        ("Chain 1: drop\nChain 2: drop\nChain 3: drop", (0, 2)),
        ("Chain 99: drop\nChain 0: drop\nnonsense", (0, 1, 2)),
        ("", (0, 1, 2)),
    ],
)
def test_a_verdict_cannot_throw_away_all_evidence(verdict: str, kept: tuple[int, ...]) -> None:
    findings = [
        ChainFinding("a", "x", (1,)),
        ChainFinding("b", "y"),
        ChainFinding("c", "z", (2,)),
        ChainFinding("d", ""),
    ]
    if verdict.startswith("chain 1: DROP"):
        findings[1] = ChainFinding("b", "y", (3,))
    assert believed(findings, verdict) == kept


def test_without_any_answer_all_chains_are_kept() -> None:
    assert believed([ChainFinding("a", ""), ChainFinding("b", "")], "") == (0, 1)


def test_a_graph_comes_from_a_file_a_list_and_documents(tmp_path: Path) -> None:
    file = tmp_path / "facts.csv"
    file.write_text("Bonn,lies on,Rhine\n", "utf-8")
    document = Document("more", '[["Rhine", "flows to", "North Sea"]]')
    both = graph_of(str(file), [document])
    assert [both.triple(n).document for n in range(len(both))] == ["facts.csv", "more"]
    listed = graph_of(check_source([["a", "b", "c"]]), [])
    assert listed.triple(0).text == "a | b | c"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("nothing.csv", "binary", "."):
        with pytest.raises(InputError, match="cannot be read"):
            graph_of(str(tmp_path / name), [])


@pytest.mark.parametrize(
    "given", [7, [["a", "b"]], [["a", "b", ""]], [["a", "b", 3]], ["abc"], {"a": 1}]
)
def test_what_is_no_source_is_refused(given: Any) -> None:
    with pytest.raises(BuildError, match=r"facts\.csv"):
        check_source(given)
