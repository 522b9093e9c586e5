"""What a tool does, as people ask for it: read from the first sentence of its description."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.kinds import NUMERIC, kind_of, words_of
from weft.agents.calls.pools import listed

LOOKUP: Final = frozenset(
    listed("retrieve,get,fetch,find,check,provide,show,list,search,obtain,view,return,look,access")
)
COMPUTE: Final = frozenset(
    listed("calculate,compute,determine,estimate,predict,evaluate,measure,assess,count")
)
_LOOKUPS: Final = (
    *("get", "find", "look up", "fetch", "show me", "give me", "tell me", "pull up", "check"),
    *("find out", "retrieve", "get me", "find me", "provide"),
)
_COMPUTES: Final = (
    "calculate",
    "compute",
    "work out",
    "determine",
    "figure out",
    "find",
    "tell me",
)
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "create": ("create", "make", "set up", "create"),
    "add": ("add", "put in", "add"),
    "delete": ("delete", "remove", "get rid of"),
    "remove": ("remove", "delete", "take out"),
    "update": ("update", "change", "update"),
    "send": ("send", "send out"),
    "generate": ("generate", "create", "produce", "make"),
    "analyze": ("analyze", "examine", "look into", "run an analysis of"),
    "schedule": ("schedule", "arrange", "set up", "plan"),
    "book": ("book", "reserve", "book me"),
    "convert": ("convert", "change", "turn"),
    "submit": ("submit", "hand in", "file"),
    "start": ("start", "begin", "launch"),
    "estimate": ("estimate", "give me an estimate of"),
    "track": ("track", "follow"),
    "record": ("record", "log", "note down"),
    "cancel": ("cancel", "call off"),
    "request": ("request", "ask for"),
}
_COMMON: Final = frozenset(
    listed(
        "information,details,specific,given,particular,about,based,using,certain,current,available,"
        "their,between,within,different,various,another,related,number,level,status,average,total"
    )
)
_SUFFIXES: Final = frozenset(listed("name,id,title,type,code,value,number,specific"))
_SPECIFIC: Final = r"(?:specific |given |particular |certain |specified |desired |single |chosen )"
_TAIL: Final = re.compile(
    r",? (?<!\ba )(?<!\ban )(?<!\bthe )(?:based on|given|using|by using|according to|"
    r"depending on|in terms of|with the (?:given|"
    r"specified)|from the (?:given|specified)|by (?:its|their)) .*$"
)
_ABOUT: Final = re.compile(
    r"(?:the |detailed |general |some )*(?:information|details|data|info|facts) "
    r"(?:about|on|of|regarding|for|related to) "
)


@dataclass(frozen=True, slots=True)
class Purpose:
    """`verb` in its base form and lower case, and the rest of the sentence."""

    verb: str
    rest: str

    @property
    def text(self) -> str:
        """Verb and rest."""
        return f"{self.verb} {self.rest}".strip()


def purpose_of(tool: CallTool) -> Purpose:
    """The purpose of a tool; without a description, the words of its name."""
    first = re.split(r"\.\s|\.$|\n|;", tool.description.strip())[0].strip()
    text = re.sub(r"\s*\([^()]*\)", "", first) or words_of(tool.name)
    text = re.sub(r"^(?:allows? (?:users?|you) to|used to|use this to|this \w+|a tool to) ", "",
                  text[0].lower() + text[1:])  # fmt: skip
    verb, _, rest = text.partition(" ")
    verb, rest = _base(verb), rest.strip()
    if verb in {"look", "search"}:
        rest = re.sub(r"^(?:up|for|in|into) ", "", rest)
    return Purpose(verb, re.sub(r" from one [a-z]+ to another\b", "", rest))


def fill_slots(
    purpose: Purpose, tool: CallTool, said: Mapping[str, str], rng: random.Random
) -> tuple[str, frozenset[str]]:
    """The rest of the purpose with values in place of `a specific X`, and which were placed."""
    rest, placed = purpose.rest, set()
    for name, text in said.items():
        schema = tool.properties.get(name, {})
        if schema.get("type") in {"boolean", "object", *NUMERIC} and kind_of(name, schema) != "id":
            continue
        for head in _heads(name):
            pattern = rf"\b(?:an?|the|any|some)? ?{_SPECIFIC}?{head}s?\b(?! (?:of|for|about)\b)"
            found = next((f for f in re.finditer(pattern, rest) if _is_slot(f[0])), None)
            if found and rng.random() < 0.85:
                rest = (
                    rest[: found.start()]
                    + " "
                    + _in_slot(name, schema, head, text, rng)
                    + (rest[found.end() :])
                )
                placed.add(name)
                break
    return _tidy(rest, tool, placed, rng), frozenset(placed)


def particular_word(tool: CallTool, rng: random.Random) -> str:
    """A noun that the tool deals with, of those that are not said of any tool."""
    words = re.findall(r"\b[a-z]{5,}\b", purpose_of(tool).rest.lower())
    known = [word for word in words if word not in _COMMON]
    found: str = rng.choice(known or ["technology"])
    return found


def command(verb: str, rest: str, rng: random.Random) -> str:
    """The request as an order: `find the price of gold`."""
    about = _ABOUT.match(rest)
    if re.match(r"(?:if|whether) ", rest):
        return f"{rng.choice(('check', 'tell me', 'find out', 'check'))} {rest}"
    if verb in LOOKUP:
        if about and rng.random() < 0.4:
            return f"{rng.choice(('tell me about', 'tell me more about'))} {rest[about.end() :]}"
        return f"{rng.choice(_LOOKUPS)} {rest}"
    if verb in COMPUTE:
        return f"{rng.choice(_COMPUTES)} {rest}"
    return f"{rng.choice(_SYNONYMS.get(verb, (verb,)))} {rest}"


def question(verb: str, rest: str, rng: random.Random) -> str | None:
    """The request as a question without its mark; None where a rule cannot ask it."""
    if verb not in LOOKUP | COMPUTE or re.match(r"(?:if|whether) ", rest):
        return None
    if about := _ABOUT.match(rest):
        return (
            f"{rng.choice(('what can you tell me about', 'what do we know about'))} "
            + (rest[about.end() :])
        )
    if found := re.match(r"the number of ([a-z ]+?s)\b (.*)", rest):
        return f"how many {found[1]} are there {found[2]}"
    if found := re.match(r"the (?:current )?(?:location|whereabouts|birthplace) of (.*)", rest):
        return f"where is {found[1]}" if "birth" not in rest else f"where was {found[1]} born"
    if re.match(r"the (?:[a-z]+ )?(?:author|inventor|owner|director|architect|holder) of ", rest):
        return f"who is {rest}"
    if not re.match(r"(?:the|an?|any|all|current|latest) ", rest):
        rest = f"the {rest}"
    head = re.split(r" (?:of|for|in|on|about|from|at|to|with|between|by|related|using)\b", rest)[0]
    plural = re.search(r"(?<![suia])s$|data$", head) or " and " in head
    if re.match(r"(?:all|any) ", rest):
        return None
    return f"what {'are' if plural else 'is'} {rest}"


def _base(verb: str) -> str:
    """`calculates` as `calculate`."""
    if not verb.endswith("s") or verb.endswith("ss") or verb in {"focus", "process", "discuss"}:
        return verb
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(?:ch|sh|ss|x|zz)es$", verb) else verb[:-1]


def _heads(name: str) -> list[str]:
    """The nouns of a parameter name, the longest first: `drug name`, `drug`."""
    words = words_of(name).split()
    found = [" ".join(words)]
    while len(words) > 1 and words[-1] in _SUFFIXES:
        words = words[:-1]
        found.append(" ".join(words))
    return [re.escape(head) for head in found if len(head) > 2]


def _is_slot(found: str) -> bool:
    """`a drug` and `a specific drug` stand for a value, `drug` alone does not."""
    return bool(re.match(rf" ?(?:an?|any|some|the {_SPECIFIC}|{_SPECIFIC})\b", found.strip() + " "))


def _in_slot(name: str, schema: Mapping[str, Any], head: str, text: str, rng: random.Random) -> str:
    noun = head.replace("\\", "")
    kind = kind_of(name, schema)
    if kind == "id":
        noun = re.sub(r" (?:id|code|number)$", "", noun)
        forms = (f"{noun} {text}", f"the {noun} with ID {text}", f"the {noun} {text}")
        return rng.choice(forms)
    if kind == "class":
        return rng.choice((f"the {noun} {text}", f"the {text} {noun}", text))
    if rng.random() < 0.7:
        return text
    return rng.choice((f"the {noun} {text}", f"the {noun} '{text}'", f"{text}"))


def _tidy(rest: str, tool: CallTool, placed: set[str], rng: random.Random) -> str:
    """Without what the placed or following arguments say again."""
    if len(rest.split()) > 4 and rng.random() < 0.85:
        kept = _TAIL.sub("", rest)
        rest = kept if len(kept.split()) > 1 else rest
    for name in tool.properties:
        if name in placed:
            continue
        for head in _heads(name):
            rest = re.sub(
                rf" (?:for|in|of|at|on|by|from|with|to|into) (?:an?|the|any) {_SPECIFIC}?{head}\b"
                r"(?= |$)(?! of\b)",
                "",
                rest,
            )
    rest = re.sub(rf"\b(an?|the) {_SPECIFIC}", r"\1 ", rest)
    rest = re.sub(r"\ba(?= [aeiou])", "an", re.sub(r"\ban(?= [^aeiou\W])", "a", rest))
    return re.sub(r"\s+", " ", rest).strip(" ,")
