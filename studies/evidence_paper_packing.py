"""A scheduler that the paper's wording also allows: a batch goes to the group that has one already.

The shipped rule gives a batch to the group with the fewest active batches, so that below half load batches hardly ever
meet in a group. Here it goes to the group with the most that has a free slot: "co-schedule the two batches to an idle
DP group" (section 3.3.2) taken to mean that pairs are sought. All else is the asynchronous system with rolling pairs.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.graph import Run, exposed_host_dispatch
from asapmodel.solvers.compiled import njit
from asapmodel.solvers.event_graph import Log, Network, State, advance, new_log, new_state
from asapmodel.systems.arrays import Outcome, PolicyNumbers, Requests, cost_array, new_outcome, policy_numbers
from asapmodel.systems.free import Groups, free_network, new_groups, start_batch
from asapmodel.verbs.evaluate import Prepared

__all__ = ["PackedPrepared"]

Floats = NDArray[np.float64]


class PackedPrepared(Prepared):
    """A prepared asynchronous scenario with two slots a group, whose runs pack batches."""

    def run(self, requests: Requests) -> Run:
        """Run a request sequence; of the resources nothing is noted."""
        layout, policy, costs = self.scenario.layout, self.scenario.policy, self.costing.costs
        network = free_network(layout, policy, costs)
        state, outcome = new_state(network, policy.slots), new_outcome(len(requests.arrival))
        groups = new_groups(layout.D, policy.slots)
        cost = cost_array(costs, exposed_host_dispatch(layout, policy, costs))
        log = new_log()
        _run(network, state, log, policy_numbers(layout, policy), cost, requests, outcome, groups)
        nothing = np.zeros(0, dtype=np.int64)
        makespan = float(outcome.end.max(initial=0.0))
        return Run(outcome, makespan, {}, int(groups.tally[0]), float(groups.tally[1]), 0, 0.0, log, nothing)


@njit(cache=True, nogil=True)
def _group(policy: PolicyNumbers, groups: Groups, alone: bool) -> int:
    """The group with the most active batches that can take the head (ties: lowest index), or -1."""
    best = -1
    for group in range(policy.groups):
        active = groups.active[group]
        if active >= policy.slots or groups.exclusive[group] > 0 or (alone and active > 0):
            continue
        if best < 0 or active > groups.active[best]:
            best = group
    return best


@njit(cache=True, nogil=True)
def _run(
    net: Network,
    st: State,
    log: Log,
    policy: PolicyNumbers,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
    groups: Groups,
) -> None:
    """Run a request sequence to its end, events in the order of `asapmodel.systems.free.run_free`."""
    count = requests.arrival.shape[0]
    head = tail = done = queued = 0
    now = 0.0
    while done < count:
        arrival = requests.arrival[tail] if tail < count else np.inf
        expiry = requests.arrival[head] + policy.batch_window if head < tail else np.inf
        if expiry <= now:  # has expired; the head waits for a group
            expiry = np.inf
        chain = advance(net, st, log, min(arrival, expiry))
        if chain >= 0:
            now = st.clock[0]
            outcome.end[groups.first[chain] : groups.last[chain]] = now
            done += groups.last[chain] - groups.first[chain]
            group = st.lane[chain]
            groups.used[chain] = groups.exclusive[group] = 0
            groups.active[group] -= 1
        elif expiry <= arrival:
            now = expiry
        else:
            now = arrival
            queued += requests.prompt[tail] - requests.cached[tail]
            tail += 1
        while head < tail:
            alone = requests.prompt[head] > policy.exclusive_tokens
            enough = queued >= policy.min_batch_tokens * policy.slots
            group = _group(policy, groups, alone)
            if group < 0 or not (enough or alone or now >= requests.arrival[head] + policy.batch_window):
                break
            following = start_batch(net, st, log, policy, cost, requests, outcome, groups, group, head, tail, now)
            for k in range(head, following):
                queued -= requests.prompt[k] - requests.cached[k]
            head = following
