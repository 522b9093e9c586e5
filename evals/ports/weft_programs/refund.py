from pathlib import Path

from pydantic import BaseModel

import weft


class Proposal(BaseModel):
    order: int
    amount: int


flow = weft.Flow("refund", models={"llm": "local:smollm2-135m-instruct"})
proposal = flow.model("llm", "Propose a refund", schema=Proposal)
approved = flow.ask(f"Refund {proposal.amount} for order {proposal.order}?", bool)
flow.output(state=flow.value(f"paid {proposal.amount}", when=approved))


async def run(llm, folder: Path) -> object:
    settings = {"models": {"llm": llm}, "journal": folder / "refund.sqlite"}
    first = await flow.run(**settings)
    asked = first.questions[0].question
    second = await flow.resume(first.run, answers={"approved": True}, **settings).wait()
    return {"asked": asked, "state": second["state"]}
