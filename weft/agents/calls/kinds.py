"""What a parameter means, read from its name and schema: a place, a date, an amount, an id.

Values are drawn and queries are phrased by kind. Rules over words; the first that fits counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from weft.agents.calls.pools import listed

Kind = Literal[
    "flag", "list", "object", "year", "start", "end", "date", "clock", "period", "email", "phone",
    "url", "path", "id", "country", "city", "state", "place", "from_place", "to_place", "address",
    "from_language", "to_language", "language", "company", "product", "title", "person", "age",
    "money", "percent", "fraction", "latitude", "longitude", "count", "temperature", "quantity",
    "unit", "class", "color", "currency", "formula", "sentence", "user", "topic", "other",
]  # fmt: skip

NUMERIC: Final = frozenset({"integer", "number"})
_LISTED: Final = re.compile(
    r"\(\s*(?:e\.?g\.?|for example|such as)[,:]?\s*([^()]+)\)", re.IGNORECASE
)
_EXAMPLES: Final = re.compile(
    r"[(,]?\s*\b(?:e\.?g\.?|for example|such as|like|eg\.?|either|can be|one of|options?:)[,:]?\s*"
    r"([^()]+?)(?:\)|\.\s|\.?$)",
    re.IGNORECASE,
)
_DEFAULT: Final = re.compile(
    r"\bdefault(?:s|ed)?(?: value| unit)?(?: is| to|:|=)*\s*(?:is |to )?"
    r"(?:(?:the [a-z]+ [a-z]+ )?['\"](?P<quoted>[^'\"]+)['\"]|(?P<bare>[^,;()'\"]+?)"
    r"(?=[,;()]|\.(?!\d)|\s*$|\s+(?:if|when|which|and|for)\b))",
    re.IGNORECASE,
)
_PLACES: Final = frozenset(listed("location,place,region,area,site,venue,destination,origin"))
_FROM: Final = frozenset(listed("origin,from,departure,source,start,starting,pickup"))
_TO: Final = frozenset(listed("destination,to,arrival,target,end,dropoff"))
_PEOPLE: Final = frozenset(
    listed(
        "author,artist,person,patient,student,employee,player,customer,client,donor,athlete,scientist,"
        "user,contact,guest,teacher,philosopher,actor,director,president,member,recipient,owner,"
        "composer,celebrity,politician,candidate,officer,worker,manager,driver,agent,volunteer,"
        "resident,applicant,instructor,coach,nurse,pilot,researcher,musician,singer,writer,caller,"
        "subscriber,tenant,buyer,seller,borrower,child,parent,doctor,lawyer,attorney,inspector"
    )
)
_COMPANIES: Final = frozenset(
    listed("company,organization,organisation,manufacturer,brand,employer,bank,supplier,vendor")
)
_WORKS: Final = frozenset(listed("title,book,movie,film,song,game,album,course,event,project"))
_COUNTS: Final = frozenset(
    listed(
        "quantity,number,count,num,limit,size,participants,guests,passengers,people,servings,copies,"
        "days,hours,minutes,nights,weeks,months,years,rooms,seats,items,pages,top,max,maximum,n,"
        "capacity,population"
    )
)
_CLASSES: Final = frozenset(
    listed(
        "type,category,method,format,level,style,mode,status,genre,severity,priority,order,sort,"
        "algorithm,frequency,group,stage,gender,season,class,grade,technique,size,quality"
    )
)
_SENTENCES: Final = frozenset(
    listed(
        "message,content,body,text,comment,feedback,review,note,notes,sentence,reason,description,"
        "instructions,caption"
    )
)
_MONEY: Final = frozenset(
    listed("price,cost,amount,budget,salary,income,principal,payment,fee,revenue,loan,investment")
)
# The words that say a kind in the name of a text parameter; the first line that has one counts.
_TEXT: Final[tuple[tuple[Kind, frozenset[str]], ...]] = (
    ("email", frozenset({"email"})),
    ("phone", frozenset({"phone", "telephone"})),
    ("url", frozenset({"url", "link", "website"})),
    ("path", frozenset({"path", "file", "filename", "filepath"})),
    ("id", frozenset(listed("id,ids,identifier,code,serial,tracking,isbn,vin,password,zip"))),
    ("class", _CLASSES),
    ("unit", frozenset({"unit", "units"})),
    ("date", frozenset({"date", "deadline", "day", "dob", "birthdate"})),
    ("period", frozenset(listed("period,timeframe,duration,interval,range,timeline"))),
    ("clock", frozenset({"time", "timestamp"})),
    ("year", frozenset({"year"})),
    ("currency", frozenset({"currency"})),
    ("language", frozenset({"language", "lang"})),
    ("country", frozenset({"country", "nation", "nationality"})),
    ("city", frozenset({"city", "town"})),
    ("state", frozenset({"state", "province"})),
    ("address", frozenset({"address"})),
    ("place", _PLACES),
    ("color", frozenset({"color", "colour"})),
    ("formula", frozenset(listed("equation,formula,function,expression,polynomial"))),
    ("company", _COMPANIES),
    ("product", frozenset({"product", "item"})),
    ("title", _WORKS),
    ("sentence", _SENTENCES),
    ("user", frozenset({"username", "database", "table", "dataset", "column"})),
    ("person", _PEOPLE),
    ("topic", frozenset(listed("topic,subject,keyword,keywords,query,theme,field,issue"))),
)


def words_of(name: str) -> str:
    """`startDate`, `start_date` and `start.date` as `start date`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+", " ", name).strip().lower()


def kind_of(name: str, schema: Mapping[str, Any]) -> Kind:
    """The kind of a parameter. Numbers and texts never share one."""
    described = str(schema.get("description", "")).lower()
    words = words_of(name).split() or [""]
    match schema.get("type"):
        case "boolean":
            return "flag"
        case "array":
            return "list"
        case "object":
            return "object"
        case "integer" | "number":
            return _of_number(words, described, schema["type"])
    if schema.get("enum"):
        return "unit" if words[-1] in {"unit", "units"} else "class"
    return _of_text(words, described)


def examples(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The values that the description gives as examples, without quotes."""
    described = str(schema.get("description", ""))
    found = _LISTED.search(described) or _EXAMPLES.search(described)
    if not found:
        return ()
    parts = re.split(r",\s*(?:or|and)\s+|,|;|\bor\b", found[1])
    clean = (part.strip(" .'\"`\u2018\u2019\u201c\u201d") for part in parts)
    return tuple(x for x in clean if 0 < len(x) <= 40 and x.lower() not in {"etc", "and", "or"})


def default_of(schema: Mapping[str, Any]) -> str | None:
    """The default in words, from `default` or from the description; None without."""
    if "default" in schema:
        return str(schema["default"])
    found = _DEFAULT.search(str(schema.get("description", "")))
    return (found["quoted"] or found["bare"]).strip() if found else None


def _of_number(words: list[str], described: str, type_: str) -> Kind:
    has = set(words)
    if "latitude" in has or "lat" in has:
        return "latitude"
    if has & {"longitude", "lon", "lng", "long"}:
        return "longitude"
    if "year" in has:
        return "year"
    if has & {"percentage", "percent"} or "percent" in described or "%" in described:
        return "percent"
    if "age" in has:
        return "age"
    if has & {"id", "zip"}:
        return "id"
    if type_ == "number" and has & {"rate", "probability", "ratio", "confidence", "alpha"}:
        return "fraction"
    if has & _MONEY:
        return "money"
    if "temperature" in has:
        return "temperature"
    return "count" if type_ == "integer" and has & _COUNTS else "quantity"


def _of_text(words: list[str], described: str) -> Kind:
    if words[-1] in {"name", "names"}:  # `product_name` names a product
        found = re.search(r"names? of (?:the|a|an) ([a-z]+(?: [a-z]+)?)", described)
        words = words[:-1] or (found[1].split() if found else ["person"])
    has = set(words)
    if has & {"date"} or (words[-1] in {"start", "end"} and "date" in described):
        begins = has & {"start", "from", "begin", "departure"} or {"check", "in"} <= has
        return "start" if begins else "end" if has & {"end", "to", "out", "return"} else "date"
    if words[-1] in _CLASSES:
        return "class"
    if has & {"language", "lang"}:
        return "from_language" if has & _FROM else "to_language" if has & _TO else "language"
    if "address" in has and "email" not in has and "ip" not in has:
        return "address"
    if has & _PLACES or (has & {"city", "airport", "station"} and has & (_FROM | _TO)):
        return "from_place" if has & _FROM else "to_place" if has & _TO else "place"
    for kind, said in _TEXT:
        if words[-1] in said:
            return kind
    return next((kind for kind, said in _TEXT if kind != "person" and has & said), "other")
