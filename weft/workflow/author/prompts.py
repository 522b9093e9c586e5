"""What the author is told at the layers before single nodes: templates over the run's values."""

from __future__ import annotations

from typing import Final

BULLETS: Final = {
    "type": "object",
    "properties": {
        "bullets": {
            "type": "array",
            "items": {"type": "string", "maxLength": 300},
            "minItems": 1,
            "maxItems": 40,
        }
    },
    "required": ["bullets"],
    "additionalProperties": False,
}
INTENTION_PROMPT: Final = """\
Say what a workflow for this request takes, what it gives, and what else is known.

Request: {{ request.query }}

Tools:
{% for tool in request.tools %}- {{ tool.name }}: {{ tool.description }}
{% endfor %}
Inputs are what changes from run to run. Answer as JSON."""
BULLETS_PROMPT: Final = """\
Write the steps of a workflow for this request, one short sentence each, in order.

Request: {{ request.query }}
What it takes and gives: {{ intention }}

Tools:
{% for tool in request.tools %}- {{ tool.name }}: {{ tool.description }}
{% endfor %}
Say where something is decided, repeated, or done for each item of a list. Answer as JSON."""
SKELETON_PROMPT: Final = """\
Draw the skeleton of a workflow for this request: its nodes, without expressions and prompts.

Request: {{ request.query }}
What it takes and gives: {{ intention }}

Steps:
{% for bullet in bullets.bullets %}{{ loop.index }}. {{ bullet }}
{% endfor %}
Tools:
{% for tool in request.tools %}- {{ tool.name }}: {{ tool.description }} {{ tool.parameters }}
{% endfor %}
Kinds of nodes:
- tool: calls a tool
- model: asks a language model; `answer` is the type of its answer
- map: does what is inside it for each item of a list; inside, the item is called `item`
- branch: does what is inside one of its `cases`
- loop: repeats what is inside it; inside, the last value is called `item`
- value: composes a value of others

`inside` is the id of the map or loop around a node, `ID/CASE` for a case of a branch, and empty \
for others. A container comes before what is inside it, and the last node inside makes its value. \
`needs` are the names of the nodes, inputs and items whose values a node uses: those beside it and \
around it. An output comes from a node that is inside nothing.
{% if drawn.problems %}
Your last skeleton was wrong:
{% for problem in drawn.problems %}- {{ problem }}
{% endfor %}{% endif %}
Answer as JSON."""
