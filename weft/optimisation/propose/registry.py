"""Proposers by name. Each is imported when a study uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.optimisation.candidates import KnobOptions, Proposer
from weft.optimisation.propose.context import ProposalContext
from weft.workflow.document.spec.optimise import OptimiseSpec

ProposerMaker: TypeAlias = Callable[..., Proposer]
"""Called with a `ProposalContext`, the study's `KnobOptions`, and options by name."""
ProposerLike: TypeAlias = "str | Mapping[str, Any] | ProposerMaker"
"""A name, a mapping `{name: NAME, OPTION: VALUE}`, or a class or function that makes one."""
PROPOSERS: Final[dict[str, str]] = {
    "aflow": "tree:StructureTree",
    "bootstrap": "bootstrap:BootstrapDemonstrations",
    "formats": "formats:MessageFormats",
    "hypotheses": "hypotheses:Hypotheses",
    "instruct": "instruct:Instructions",
    "optoprime": "optoprime:GraphFeedback",
    "paths": "paths:ParetoPaths",
    "playbook": "curator:PlaybookCurator",
    "reflect": "reflect:Reflection",
    "structure": "structure_rules:StructureRules",
    "tpe": "tpe:ParzenKnobs",
}
"""`module:class` by name. A study tries declared knobs without any of them."""
_PACKAGE: Final = "weft.optimisation.propose"


def maker_of(name: str) -> ProposerMaker:
    """The maker of the proposer called `name`. Raises: `BuildError`, with the closest names."""
    if name not in PROPOSERS:
        hint = suggestion(name, PROPOSERS)
        raise BuildError(f"there is no proposer {name!r}", hint=hint)
    module, _, kind = PROPOSERS[name].partition(":")
    made: ProposerMaker = getattr(import_module(f"{_PACKAGE}.{module}"), kind)
    return made


def named(proposer: ProposerLike) -> str:
    """What reports call a proposer. Raises: `BuildError` for a mapping without a name."""
    if isinstance(proposer, Mapping):
        if not isinstance(proposer.get("name"), str):
            hint = "such as {name: bootstrap}"
            raise BuildError(f"a proposer without a name: {dict(proposer)!r:.80}", hint=hint)
        return str(proposer["name"])
    return proposer if isinstance(proposer, str) else getattr(proposer, "__name__", "proposer")


def declared_proposers(spec: OptimiseSpec) -> Sequence[ProposerLike]:
    """Those of the workflow's `optimise`."""
    return () if spec.proposer is None else tuple(spec.proposer.use)


def check_proposers(proposers: Sequence[ProposerLike]) -> None:
    """Raises: `BuildError` for an unknown one."""
    for each in proposers:
        name = named(each)
        if not callable(each):
            maker_of(name)


def make_proposer(each: ProposerLike, context: ProposalContext, knobs: KnobOptions) -> Proposer:
    """The proposer of a study. Raises: `BuildError` for an unknown name or option."""
    options = dict(each) if isinstance(each, Mapping) else {}
    options.pop("name", None)
    make = each if callable(each) else maker_of(named(each))
    try:
        return make(context, knobs, **options)
    except TypeError as error:
        given = ", ".join(options) or "none"
        raise BuildError(
            f"the proposer {named(each)}: {error}", hint=f"options: {given}"
        ) from error
