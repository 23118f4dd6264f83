"""Bounds of the asynchronous system's throughput that hold whatever the order of service.

*Upper.* A stream of a group serves one task at a time, a region holds one batch, so what all batches ask of it cannot
exceed the time of the D groups; likewise the one pool; and a batch in flight holds one of the slots (an exclusive one
all of them) for at least its time on idle resources. With locked pairs the queue alone decides who is paired, a pair
leaves its group before the next comes, and stays at least as long as the most loaded of all this needs.

*Lower.* While more waits than the groups can take, every group has an active batch. At an instant (a) the pool serves,
or (b) it is blocked, then the holder of the combine region that it waits for is being received, or (c) no batch is
with the pool: then every group serves one. Summed over a run, (a) and (b) last no longer than the pool's work and the
combine receives one after another, (c) no longer than the groups' work shared by D.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.batches import Batches
from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION, stream_names
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.policy import Layout, Policy

__all__ = ["IN_FLIGHT", "STAY", "free_lower", "free_upper", "stays"]

Floats = NDArray[np.float64]

IN_FLIGHT, STAY = "batches in flight", "stay in a group"
_POOL = (2, 3, 4)


class _Load(NamedTuple):
    """What a batch asks of one thing that serves one batch at a time, and its least time before and after; seconds."""

    asked: Floats
    before: Floats
    after: Floats


def _loads(layout: Layout, policy: Policy, costs: LayerCosts, batches: Batches) -> tuple[dict[str, _Load], Floats]:
    """Loads of a group's streams, the pool's, and the regions; time of each batch alone."""
    n, w = batches.n, batches.w
    if n.ndim != 1 or np.any(n == 0):
        raise ValueError(
            f"batches have shape {n.shape}, the least {n.min():g} tokens: give one row of batches with work"
        )
    host = exposed_host_dispatch(layout, policy, costs)
    layer = np.stack(costs.phases(n, w, host)) * min(costs.moe_layers, 1)  # without MoE layers no phase ever runs
    head = costs.step_overhead + costs.dense_layers * costs.dense_layer(n, w)
    names = stream_names(policy.overlap_attention, policy.overlap_moe)
    served = {name: [phase for phase in range(6) if names[phase] == name] for name in dict.fromkeys(names)}
    loads = {}
    for name, phases in (served | {DISPATCH_REGION: [1, 2], COMBINE_REGION: [4, 5]}).items():
        asked, before = costs.moe_layers * layer[phases].sum(axis=0), head + layer[: phases[0]].sum(axis=0)
        if phases[0] == 0:  # overhead and dense layers run on the group's compute
            asked, before = asked + head, np.zeros_like(head)
        loads[name] = _Load(asked, before, layer[phases[-1] + 1 :].sum(axis=0))
    return loads, costs.alone(n, w, host)


def _pool_names(policy: Policy) -> set[str]:
    names = stream_names(policy.overlap_attention, policy.overlap_moe)
    return {names[phase] for phase in _POOL}


def stays(policy: Policy, batches: Batches) -> list[tuple[int, ...]]:
    """Who is in a group together, by index, where times do not matter: locked pairs of a backlog, or batches alone.

    Examples
    --------
    >>> n = np.array([3.0, 2.0, 3.0, 9.0, 1.0])
    >>> some = Batches(n, n**2, n > 8, 5)
    >>> stays(Policy(pairing="locked"), some), stays(Policy(dual_batch=False), some)
    ([(0, 1), (2,), (3,), (4,)], [(0,), (1,), (2,), (3,), (4,)])
    """
    found: list[tuple[int, ...]] = []
    pairs, k, count = policy.slots == 2 and policy.pairing == "locked", 0, len(batches.n)
    while k < count:
        two = pairs and k + 1 < count and not batches.exclusive[k] and not batches.exclusive[k + 1]
        found.append((k, k + 1) if two else (k,))
        k += len(found[-1])
    return found


def free_upper(layout: Layout, policy: Policy, costs: LayerCosts, batches: Batches) -> dict[str, float]:
    """Upper bounds in batches/s by constraint, the joint bound of a group among them.

    Over any run of T seconds in which all these batches are served from beginning to end, batches / T does not exceed
    any of them.
    """
    loads, alone = _loads(layout, policy, costs, batches)
    pool = _pool_names(policy)
    if policy.slots == 1 or policy.pairing == "locked":
        seconds, joint = _of_stays(loads, alone, stays(policy, batches))
    else:
        seconds, joint = _of_slots(loads, alone, batches, pool)
    count = float(batches.n.size)
    upper = {}
    for name, time in seconds.items():
        capacity = 1.0 if name in pool else float(layout.D)
        if time > 0:
            upper[name] = capacity * count / time
    return upper | {STAY: layout.D * count / joint}


def _of_stays(loads: dict[str, _Load], alone: Floats, found: list[tuple[int, ...]]) -> tuple[dict[str, float], float]:
    """Seconds asked of each constraint by all batches, and the least sum of all stays.

    A pair starts together: a stream is idle at least until the sooner of the two can reach it, and after its last task
    at least until the sooner of the two can end.
    """
    first = np.array([stay[0] for stay in found])
    last = np.array([stay[-1] for stay in found])
    two = np.array([len(stay) == 2 for stay in found])
    longest = np.maximum(alone[first], alone[last])
    seconds, joint = {IN_FLIGHT: float(longest.sum())}, longest
    for name, load in loads.items():
        asked = load.asked[first] + np.where(two, load.asked[last], 0.0)
        seconds[name] = float(load.asked.sum())
        around = np.minimum(load.before[first], load.before[last]) + np.minimum(load.after[first], load.after[last])
        joint = np.maximum(joint, asked + around)
    return seconds, float(joint.sum())


def _of_slots(
    loads: dict[str, _Load], alone: Floats, batches: Batches, pool: set[str]
) -> tuple[dict[str, float], float]:
    """Likewise with two slots that are filled one by one: who meets whom is not known.

    While an exclusive batch has a group, at least for its time alone, that group serves no other.
    """
    exclusive = batches.exclusive
    seconds = {name: float(load.asked.sum()) for name, load in loads.items()}
    seconds[IN_FLIGHT] = float(np.where(exclusive, 1.0, 0.5) @ alone)
    shared = [float(alone[~exclusive].sum()) / 2]
    shared += [float(load.asked[~exclusive].sum()) for name, load in loads.items() if name not in pool]
    return seconds, float(alone[exclusive].sum()) + max(shared)


def free_lower(layout: Layout, policy: Policy, costs: LayerCosts, batches: Batches) -> tuple[float, float]:
    """Batches/s that are reached whatever the order, and the seconds by which a finite run may exceed that.

    The better of two: one batch after another, `1 / mean time alone` (no deadlock: while a batch is active one task is
    being served); and `1 / (mean pool work + mean combine receive + mean group work / D)`. Without a second batch in
    the group no combine region blocks, and the receive is left out. When the queue is empty groups fall idle, in (c)
    one after another, for at most the group work of the batches that one group holds.
    """
    n, w = batches.n, batches.w
    host = exposed_host_dispatch(layout, policy, costs)
    layer, alone = np.stack(costs.phases(n, w, host)), costs.alone(n, w, host)
    moe = costs.moe_layers * layer[list(_POOL)].sum(axis=0)
    group = alone - moe
    blocked = costs.moe_layers * layer[5] if policy.slots == 2 else np.zeros_like(n)
    overlapped = float((moe + blocked).mean() + group.mean() / layout.D)
    serial = float(alone.mean())
    if serial <= overlapped:
        return 1.0 / serial, 0.0
    return 1.0 / overlapped, policy.slots * float(group.max())
