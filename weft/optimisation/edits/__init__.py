"""Typed edits of workflow documents, composed to patches that can be read, applied and reverted."""

from weft.optimisation.edits.catalogue import EDITS, edits_schema, read_edits
from weft.optimisation.edits.choose import Choose
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.insertions import InsertRevise, InsertVerifier, WrapCascade, WrapVote
from weft.optimisation.edits.messages import SetMessageFormat
from weft.optimisation.edits.patch import (
    AppliedPatch,
    Patch,
    addresses,
    document_digest,
    with_document,
)
from weft.optimisation.edits.settings import (
    Demonstration,
    SetDecoder,
    SetDemonstrations,
    SetModel,
    SetPrompt,
    SetSamples,
    SetSchemaOrder,
    SetWidth,
)
from weft.optimisation.edits.structure import Drop, Fuse, Hoist, Parallelise, Split
from weft.workflow.document.rewrite import document_diff

__all__ = [
    "EDITS",
    "AppliedPatch",
    "Choose",
    "Demonstration",
    "Drop",
    "Edit",
    "EditError",
    "Fuse",
    "Hoist",
    "InsertRevise",
    "InsertVerifier",
    "Parallelise",
    "Patch",
    "SetDecoder",
    "SetDemonstrations",
    "SetMessageFormat",
    "SetModel",
    "SetPrompt",
    "SetSamples",
    "SetSchemaOrder",
    "SetWidth",
    "Split",
    "WrapCascade",
    "WrapVote",
    "addresses",
    "document_diff",
    "document_digest",
    "edits_schema",
    "read_edits",
    "with_document",
]
