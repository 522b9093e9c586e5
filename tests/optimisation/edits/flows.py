"""A workflow to edit, with a comment or two, and a model that answers by its prompt."""

from __future__ import annotations

from typing import Final

from weft.testing import FakeModel

TEXT: Final = """\
# a comment at the top
name: brief
inputs:
  topic: string  # what about
models:
  small: {use: local, model: tiny}
  big: {use: local, model: tiny}
nodes:
  notes:  # one for each item
    map: [1, 2]
    do:
      nodes:
        intro: {model: small, prompt: "Introduce {{ topic }}"}
        note: {model: small, prompt: "Note {{ item }} {{ intro }}"}
      result: "{{ note }}"
  short:
    map: "{{ notes }}"
    as: long
    do: {model: small, prompt: "Shorten {{ long }}"}
  # the answer itself
  answer:
    model: small
    prompt: |
      Answer {{ topic }}
      with {{ short }}
    schema:
      type: object
      properties: {answer: {type: string}, why: {type: string}}
      additionalProperties: false
  rating: {model: small, prompt: "Rate {{ answer.answer }}", after: [notes]}
outputs:
  answer: "{{ answer }}"
  rating: "{{ rating }}"
"""


def echo() -> FakeModel:
    """A model whose answers are a function of what it is asked."""
    return FakeModel(
        lambda request: (
            {"answer": "yes", "why": str(len(request.messages[-1].content))}
            if request.schema is not None
            else f"<{request.messages[-1].content}>"
        )
    )
