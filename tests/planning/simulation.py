"""A router and its instances, simulated: the graph engine runs every instance on the prompts it is sent."""

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines import graph
from asapmodel.planning.instance import Instance
from asapmodel.systems.arrays import make_requests

__all__ = ["simulate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def simulate(one: Instance, instances: int, rate: float, routing: str, requests: int, seed: int) -> tuple[Floats, Ints]:
    """TTFT of every request of a Poisson flow in front of `instances`, and the place of its class in the mix.

    ``least_work`` knows the work of what it has sent: it counts the tokens of each instance, worked off at the pace
    that saturates one.
    """
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1.0 / rate, requests))
    row = rng.integers(0, len(one.mix.member), requests)
    prompt, cached = one.mix.prompts.prompt[row], one.mix.prompts.cached[row]
    if routing == "round_robin":
        place = np.arange(requests) % instances
    elif routing == "random":
        place = rng.integers(0, instances, requests)
    else:
        place = _least_work(arrival, prompt.astype(np.float64), instances, one.limit * float(one.mix.tokens.mean()))
    ttft = np.zeros(requests)
    scenario = one.kind.scenario
    for k in range(instances):
        own = np.flatnonzero(place == k)
        sent = make_requests(arrival[own], prompt[own], cached[own])
        done = graph.run(scenario.layout, scenario.policy, one.costs, sent)
        ttft[own] = done.outcome.end - arrival[own] + one.costs.request_latency
    return ttft, one.mix.member[row]


def _least_work(arrival: Floats, tokens: Floats, instances: int, pace: float) -> Ints:
    left = np.zeros(instances)
    place = np.zeros(len(arrival), dtype=np.int64)
    before = 0.0
    for k, now in enumerate(arrival):
        left = np.maximum(left - (now - before) * pace, 0.0)
        before = now
        place[k] = int(np.argmin(left))
        left[place[k]] += tokens[k]
    return place
