"""The events of a run, as `Flow.stream` yields them and listeners get them.

    async for event in flow.stream(topic="rivers"):
        match event:
            case weft.events.NodeStreamed(node, text):
                print(text, end="")
            case weft.events.NodeFinished(node, outcome):
                print(node, outcome.status)

`Event` is the union of them all. `at_s` is seconds since the run started.
"""

from weft.core.events import (
    BreakerChanged,
    BudgetReached,
    CacheMissed,
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    Listener,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunMeasured,
    RunResumed,
    RunStarted,
    Subscription,
)

__all__ = [
    "BreakerChanged",
    "BudgetReached",
    "CacheMissed",
    "Event",
    "GraphGrew",
    "HumanAnswered",
    "HumanAsked",
    "JoinDecided",
    "Listener",
    "NodeDecoded",
    "NodeDenoised",
    "NodeFinished",
    "NodeInfo",
    "NodeLogged",
    "NodeRepairing",
    "NodeRerouted",
    "NodeRetrying",
    "NodeSpent",
    "NodeStarted",
    "NodeStreamed",
    "NodeWaiting",
    "Outcome",
    "RunFinished",
    "RunMeasured",
    "RunResumed",
    "RunStarted",
    "Subscription",
]
