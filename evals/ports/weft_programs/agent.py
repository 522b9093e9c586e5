from pathlib import Path

import weft

PAID: list[int] = []


@weft.tool
def find_order(order: int) -> str:
    """Look an order up."""
    return f"order {order}: a tea pot, 40 euros"


@weft.tool(approve=True)
def pay(order: int, amount: int) -> str:
    """Pay money back."""
    PAID.append(order)
    return "paid"


flow = weft.Flow("agent", models={"llm": "local:smollm2-135m-instruct"})
answer = flow.model("llm", "My tea pot broke", tools=[find_order, pay], agent="parallel-react")
flow.output(answer=answer)


async def run(llm, folder: Path) -> object:
    PAID.clear()
    settings = {"models": {"llm": llm}, "journal": folder / "agent.sqlite"}
    first = await flow.run(**settings)
    question = first.questions[0]
    second = await flow.resume(first.run, answers={question.node: True}, **settings).wait()
    return {"asked": question.arguments, "answer": second["answer"], "paid": list(PAID)}
