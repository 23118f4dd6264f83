"""Synchronous and asynchronous prefill, event by event, as an oracle for the package.

Written from the semantics page alone, shares no code with the package, slow on purpose: standard
library only, one heap of events, no caching, no shortcuts. Where the page leaves something open, what
is done here is listed in `choices.md`. Its parts are `events.py`, `lockstep.py` and `free.py`.
"""

from __future__ import annotations

from itertools import pairwise

from tests.independent.events import Costs, Engine, Outcome, Policy, Prompt, Request, Task
from tests.independent.free import Free
from tests.independent.lockstep import Lockstep


def run(policy: Policy, costs: Costs, requests: list[Request]) -> tuple[list[Outcome], list[Task]]:
    assert policy.pairing in ("locked", "rolling")
    assert policy.balance in ("tokens", "work")
    assert 0 <= costs.dense_layers <= costs.layers
    assert all(0 <= cached < prompt for _, prompt, cached in requests)
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(requests))
    prompts = [Prompt(arrival, prompt, cached, cached) for arrival, prompt, cached in requests]
    engines: dict[str, type[Engine]] = {"sync": Lockstep, "asap": Free}
    engine = engines[policy.kind](policy, costs, prompts)
    engine.run()
    latency = costs.request_latency
    results = [
        Outcome(p.arrival, p.length, p.cached, p.start, p.end, p.end - p.arrival + latency, p.kernel) for p in prompts
    ]
    return results, engine.log


def simulate(policy: Policy, costs: Costs, requests: list[Request]) -> list[Outcome]:
    """Every request's outcome, in order of arrival."""
    return run(policy, costs, requests)[0]


def simulate_tasks(policy: Policy, costs: Costs, requests: list[Request]) -> tuple[list[Outcome], list[Task]]:
    """Outcomes, and all tasks in the order in which they started; free execution only."""
    if policy.kind != "asap":
        raise ValueError("only free execution has tasks")
    return run(policy, costs, requests)
