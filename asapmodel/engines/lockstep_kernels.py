"""Compiled parts of `asapmodel.engines.lockstep_chain`: one iteration of a state, the table, the transitions."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from asapmodel.systems.arrays import CostArray, Outcome, PolicyNumbers, Requests
from asapmodel.systems.lockstep import GroupQueues, route, run_iteration

__all__ = ["MOST", "States", "System", "Table", "explore", "step", "tabulate", "transitions"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 256
"""Most prompts in one state, left over and new."""


class States(NamedTuple):
    """Left-over prompts of each state: how many, then group, prompt, done by state and place; last iteration, s."""

    size: Ints
    group: Ints
    prompt: Ints
    done: Ints
    time: Floats


class Table(NamedTuple):
    """Per state, arrivals and sample: time of the iteration, the two next states, and the share of the second."""

    offset: Ints  # (arrivals + 2,) start of the samples of each number of arrivals
    time: Floats  # (states, samples)
    low: Ints
    high: Ints
    share: Floats


class System(NamedTuple):
    """What an iteration needs to know."""

    policy: PolicyNumbers
    cost: CostArray
    dense_layers: int
    moe_layers: int


@njit(cache=True, nogil=True)
def step(system: System, states: States, k: int, new: Ints, out: States, at: int) -> None:
    """Run the iteration that follows state `k` with the prompts `new` arrived; write what is left into `out[at]`."""
    policy = system.policy
    left = states.size[k]
    total = left + new.shape[0]
    prompt = np.empty(total, dtype=np.int64)
    done = np.zeros(total, dtype=np.int64)
    prompt[:left] = states.prompt[k, :left]
    done[:left] = states.done[k, :left]
    prompt[left:] = new
    requests = Requests(np.zeros(total), prompt, done.copy())
    queues = GroupQueues(
        np.full(policy.groups, -1),
        np.full(policy.groups, -1),
        np.full(total, -1),
        done,
        np.zeros(policy.groups),
        np.zeros(policy.groups),
        np.zeros(policy.groups),
        np.zeros(policy.groups),
        np.zeros(7),
    )
    for i in range(left):
        group = states.group[k, i]
        tokens = float(prompt[i] - done[i])
        queues.queued_tokens[group] += tokens
        queues.queued_work[group] += float(prompt[i]) ** 2 - float(done[i]) ** 2
        if queues.first[group] < 0:
            queues.first[group] = i
        else:
            queues.next[queues.last[group]] = i
        queues.last[group] = i
    for i in range(left, total):
        route(policy, system.cost, requests, queues, i)
    outcome = Outcome(np.zeros(total), np.zeros(total), np.zeros(total))
    end, _ = run_iteration(policy, system.cost, system.dense_layers, system.moe_layers, requests, outcome, queues, 0.0)
    out.time[at] = end
    count = 0
    for group in range(policy.groups):
        i = queues.first[group]
        while i >= 0:
            out.group[at, count] = group
            out.prompt[at, count] = prompt[i]
            out.done[at, count] = queues.done[i]
            count += 1
            i = queues.next[i]
    out.size[at] = count


@njit(cache=True, nogil=True)
def explore(system: System, rate: float, lengths: Ints, arrivals: Floats, picks: Ints, out: States, at: int) -> None:
    """Follow the chain itself for `len(arrivals)` iterations; `arrivals` are uniforms, `picks` indices of lengths."""
    taken = 0
    for i in range(arrivals.shape[0]):
        before = at + i - 1 if i > 0 else at  # the first starts from an empty state
        weight = math.exp(-rate * out.time[before])
        cumulated, new = weight, 0
        while cumulated < arrivals[i] and new < 200:
            new += 1
            weight *= rate * out.time[before] / new
            cumulated += weight
        if out.size[before] == 0 and new == 0:
            new = 1
        new = min(new, MOST - out.size[before] - 1)
        prompts = np.empty(new, dtype=np.int64)
        for j in range(new):
            prompts[j] = lengths[picks[(taken + j) % picks.shape[0]]]
        taken += new
        step(system, out, before, prompts, out, at + i)


@njit(cache=True, nogil=True)
def _left_tokens(states: States, k: int) -> float:
    total = 0.0
    for i in range(states.size[k]):
        total += states.prompt[k, i] - states.done[k, i]
    return total


@njit(cache=True, nogil=True)
def _share_out(states: States, tokens: Floats, scale: Floats, found: States) -> tuple[int, int, float]:
    """The representative states below and above in left-over tokens, near in the rest, and the share of the upper."""
    own = _left_tokens(found, 0)
    low, high = -1, -1
    below, above = np.inf, np.inf
    for k in range(tokens.shape[0]):
        if (states.size[k] == 0) != (found.size[0] == 0):
            continue
        distance = 4.0 * ((tokens[k] - own) / (scale[0] + 0.2 * own)) ** 2
        distance += ((states.size[k] - found.size[0]) / (scale[1] + 0.2 * found.size[0])) ** 2
        distance += ((states.time[k] - found.time[0]) / scale[2]) ** 2
        if tokens[k] <= own and distance < below:
            below, low = distance, k
        if tokens[k] >= own and distance < above:
            above, high = distance, k
    if low < 0:
        return high, high, 0.0
    if high < 0:
        return low, low, 0.0
    if tokens[high] == tokens[low]:
        return low, high, 0.5
    return low, high, (own - tokens[low]) / (tokens[high] - tokens[low])


@njit(cache=True, nogil=True)
def tabulate(
    system: System,
    states: States,
    tokens: Floats,
    scale: Floats,
    lengths: Ints,
    fine: Ints,
    coarse: Ints,
    table: Table,
    found: States,
) -> None:
    """Fill the table: sample `j` has prompt `i` in cell `fine[i, j]` (or `coarse[i, j]`) of the length law.

    Where in its cell differs from state to state (multiples of the golden section): together they see all of it.
    """
    prompts = np.empty(table.offset.shape[0], dtype=np.int64)
    for k in range(tokens.shape[0]):
        for new in range(table.offset.shape[0] - 1):
            if new == 0 and states.size[k] == 0:
                continue
            size = table.offset[new + 1] - table.offset[new]
            for j in range(table.offset[new], table.offset[new + 1]):
                for i in range(new):
                    place = (0.6180339887498949 * (k + 1) + 0.7548776662466927 * (i + 1)) % 1.0
                    at = j - table.offset[new]
                    cell = fine[i, at] if size == fine.shape[1] else coarse[i, at]
                    prompts[i] = lengths[int((cell + place) / size * lengths.shape[0])]
                step(system, states, k, prompts[:new], found, 0)
                table.time[k, j] = found.time[0]
                table.low[k, j], table.high[k, j], table.share[k, j] = _share_out(states, tokens, scale, found)


@njit(cache=True, nogil=True)
def transitions(rate: float, window: float, states: States, table: Table) -> tuple[Floats, Floats, Floats]:
    """Transition matrix, mean time of a cycle, and mean of requests times time over it, by state.

    With `m` requests present at its start, an iteration of time T holds `m T + rate T^2 / 2` request-seconds; an idle
    system waits `1/rate` with none, then the window with one more and those that join.
    """
    count = states.size.shape[0]
    most = table.offset.shape[0] - 2
    matrix = np.zeros((count, count))
    cycle = np.zeros(count)
    area = np.zeros(count)
    for k in range(count):
        for idle in range(2):
            span = states.time[k] if idle == 0 else window
            chance = 1.0
            if idle == 1:
                if states.size[k] > 0:
                    continue
                chance = math.exp(-rate * states.time[k])
                cycle[k] += chance * (1.0 / rate + window)
                area[k] += chance * (window + 0.5 * rate * window * window)
            weight, rest = chance * math.exp(-rate * span), chance
            for arrived in range(most + 1):
                new = arrived + idle
                if new > most or arrived == most:
                    weight, new = rest, min(new, most)
                if new > 0 or states.size[k] > 0:
                    first, last = table.offset[new], table.offset[new + 1]
                    each = weight / (last - first)
                    for j in range(first, last):
                        time = table.time[k, j]
                        matrix[k, table.low[k, j]] += each * (1.0 - table.share[k, j])
                        matrix[k, table.high[k, j]] += each * table.share[k, j]
                        cycle[k] += each * time
                        area[k] += each * ((states.size[k] + new) * time + 0.5 * rate * time * time)
                rest -= weight
                if rest <= 1e-13 * chance:
                    break
                weight *= rate * span / (arrived + 1)
    return matrix, cycle, area
