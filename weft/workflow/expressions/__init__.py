"""Templates and expressions: Jinja's syntax in a sandbox with bounds. Knows no nodes."""

from weft.workflow.expressions.errors import BadExpression
from weft.workflow.expressions.references import Reference
from weft.workflow.expressions.template import Template, template
from weft.workflow.expressions.tree import ValueTemplate, value_template

__all__ = [
    "BadExpression",
    "Reference",
    "Template",
    "ValueTemplate",
    "template",
    "value_template",
]
