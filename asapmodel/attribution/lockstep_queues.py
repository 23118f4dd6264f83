"""Synchronous system with queues per group, or a limit on prompts: iterations, and components of every request's TTFT.

The engine writes down what every group computes in every iteration, and who is behind whom in its queue. What the
requests have to do with it follows (`asapmodel.attribution.pieces`); no rule of routing is run again.

A batch is formed when its iteration starts. With `schedule_ahead` it is formed when the iteration before starts, if
the group takes part in that one (docs/background/semantics.md). So a prompt that arrives while iteration `i - 1` runs
can be in iteration `i` at the earliest, and where the batch of `i` had been formed, in `i + 1`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.components import LOCKSTEP_QUEUES
from asapmodel.attribution.lockstep_parts import in_iterations, over_iterations
from asapmodel.attribution.lockstep_trace import IterationTimes, LockstepTrace
from asapmodel.attribution.pieces import groups_along, steps_of
from asapmodel.costs import Affine, LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests, new_outcome
from asapmodel.systems.lockstep_iteration import coefficients
from asapmodel.systems.lockstep_queues import run_lockstep_queues
from asapmodel.systems.logs import IterationLog, new_iteration_log
from asapmodel.systems.queue_rules import queue_rules
from asapmodel.systems.queues import Queues, new_batches, new_queues
from asapmodel.systems.slices import hardest_slice

__all__ = ["LockstepQueueTrace", "lockstep_queue_components", "queue_iteration_times", "trace_lockstep_queues"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LockstepQueueTrace:
    """Iterations and what each request has to do with them.

    In `run`, `routed` is the first iteration that starts with the request in a queue. By request, `formable` is the
    first whose batch its group forms with it in the queue. By iteration, `window_end` is when an idle engine's window
    ends, else its start.
    """

    run: LockstepTrace
    formable: Ints
    window_end: Floats


def trace_lockstep_queues(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> LockstepQueueTrace:
    """Run a request sequence with all iterations written down, at least one request."""
    log, queues = _run(layout, policy, costs, requests)
    start, end = log.table[:, 1], log.table[:, 1] + log.table[:, 2]
    tokens, work = log.batches[:, 1], log.batches[:, 2]
    before = np.append(-np.inf, end[:-1])
    idle = start > before
    next_arrival = np.append(requests.arrival, np.inf)[np.searchsorted(requests.arrival, before, side="right")]
    prepared = np.zeros(tokens.shape, dtype=np.bool_)
    if policy.schedule_ahead:
        prepared[1:] = (tokens[:-1] > 0) & ~idle[1:, None]
    group, first, last = _order(log, queues, requests)
    own_work = _own_work(layout, policy, requests, log, queues, group)
    routed = np.searchsorted(start, requests.arrival, side="left").astype(np.int64)
    run = LockstepTrace(
        start=start,
        end=end,
        idle_until=np.where(idle, next_arrival, start),
        tokens=tokens,
        work=work,
        times=queue_iteration_times(policy, costs, tokens, work, own_work, prepared),
        group=group,
        routed=routed,
        first=first,
        last=last,
    )
    window_end = np.where(idle, next_arrival + policy.batch_window, start)
    return LockstepQueueTrace(run, routed + prepared[routed, group], window_end)


def _run(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> tuple[IterationLog, Queues]:
    """Twice: how many iterations there are is not known before."""
    rules = queue_rules(layout, policy, costs.attention.per_token, costs.attention.per_token2)
    room, everything = 0, (-np.inf, np.inf)
    while True:
        log, queues = new_iteration_log(layout.D, room, everything), new_queues(layout.D, requests)
        batches, outcome = new_batches(2 * layout.D), new_outcome(len(requests.arrival))
        window = policy.batch_window
        run_lockstep_queues(coefficients(costs), queues, rules, batches, window, requests, outcome, log)
        if room == log.counts[0]:
            return log, queues
        room = int(log.counts[0])


def _order(log: IterationLog, queues: Queues, requests: Requests) -> tuple[Ints, Ints, Ints]:
    """Group of each request, and the iterations `first:last` that compute it."""
    tokens, asked = log.batches[:, 1], requests.prompt - requests.cached
    iteration, taking = np.nonzero(log.first >= 0)
    group = groups_along(taking, log.first[iteration, taking], queues.follow)
    first, last = np.zeros((2, len(group)), dtype=np.int64)
    for number in range(tokens.shape[1]):
        mine = np.flatnonzero(group == number)
        first[mine], last[mine] = steps_of(tokens[:, number], asked[mine])
    return group, first, last


def _own_work(
    layout: Layout, policy: Policy, requests: Requests, log: IterationLog, queues: Queues, group: Ints
) -> Floats:
    """Attention work of each batch by itself: what is logged, unless its slices are as wide as those of the largest."""
    tokens, work = log.batches[:, 1], log.batches[:, 2]
    if not (policy.context_parallel and policy.pad_groups):
        return work
    asked, before = requests.prompt - requests.cached, np.zeros(len(group), dtype=np.int64)
    for number in range(layout.D):  # tokens of the same queue before each request
        mine = np.flatnonzero(group == number)
        before[mine] = np.cumsum(asked[mine]) - asked[mine]
    done = np.cumsum(tokens, axis=0) - tokens
    out = np.zeros_like(work)
    for i, g in zip(*np.nonzero(log.first >= 0), strict=True):
        k, n = int(log.first[i, g]), int(tokens[i, g])
        there = int(requests.cached[k] + done[i, g] - before[k])
        width = -(-n // layout.T)
        out[i, g] = layout.T * hardest_slice(requests, queues.follow, k, there, n, width)
    return out


def queue_iteration_times(
    policy: Policy, costs: LayerCosts, tokens: Floats, work: Floats, own_work: Floats, prepared: Bools
) -> IterationTimes:
    """Evaluate iterations as `asapmodel.attribution.lockstep_trace.iteration_times` does, with two rules more.

    Parameters
    ----------
    policy, costs
        Of the system.
    tokens, work : array, shape (iterations, groups)
        Of the batches, 0 without.
    own_work : array, shape (iterations, groups)
        Attention work of each batch by itself; other than `work` where tokens are cut into slices as wide as those of
        the largest batch.
    prepared : array of bool, shape (iterations, groups)
        Whether the group had formed its batch, be it empty, when the iteration before started. With
        `hide_overhead` the overhead is paid if a batch is not prepared, or there is none at all, and is a group's own
        if its batch is not prepared; without it always.

    Returns
    -------
    IterationTimes
        Padded (`pad_groups`), all groups compute `n = max_g n_g` tokens, with the attention work of the widest batch:
        what that takes beyond a group's own batch is not its own. Alone, its batch of `n_g` would be `D n_g` tokens to
        the experts: `padding` is what that takes beyond `n_g`.
    """
    some, layers, groups = tokens > 0, costs.moe_layers, tokens.shape[1]
    late, works = some & ~(prepared & policy.hide_overhead), some.any(axis=1)
    transfers = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    move = Affine(sum(one.fixed for one in transfers), sum(one.per_token for one in transfers))
    attention, dense = (np.where(some, law(tokens, work), 0.0) for law in (costs.attention, costs.dense_layer))
    own, own_dense = (np.where(some, law(tokens, own_work), 0.0) for law in (costs.attention, costs.dense_layer))
    largest, widest, total = tokens.max(axis=1), work.max(axis=1), tokens.sum(axis=1)
    slowest, slowest_dense, padding = attention.max(axis=1), dense.max(axis=1), np.zeros_like(tokens)
    if policy.pad_groups:
        total = groups * largest
        slowest = np.where(works, costs.attention(largest, widest), 0.0)
        slowest_dense = np.where(works, costs.dense_layer(largest, widest), 0.0)
        padding = np.where(some, layers * (costs.moe(groups * tokens) - costs.moe(tokens)), 0.0)
    overhead = np.where(works & ~late.any(axis=1), 0.0, costs.step_overhead)
    moves, experts = move(largest), costs.moe(total)
    own_overhead = np.where(late, costs.step_overhead, 0.0)
    return IterationTimes(
        own_attention=own_overhead + costs.dense_layers * own_dense + layers * own,
        own_transfers=np.where(some, layers * move(tokens), 0.0),
        own_experts=np.where(some, layers * costs.moe(tokens), 0.0),
        padding=padding,
        layer=attention,
        attention=overhead + costs.dense_layers * slowest_dense + layers * slowest,
        transfers=layers * moves,
        experts=layers * experts,
        slowest=slowest,
        duration=overhead + costs.dense_layers * slowest_dense + layers * (slowest + moves + experts),
    )


def lockstep_queue_components(
    policy: Policy, costs: LayerCosts, requests: Requests, trace: LockstepQueueTrace
) -> dict[str, Floats]:
    """Split the TTFT of every request.

    Parameters
    ----------
    policy, costs, requests
        The system and what arrived.
    trace : LockstepQueueTrace
        Its run.

    Returns
    -------
    dict of arrays, shape (requests,)
        Seconds by the names of `asapmodel.attribution.components.LOCKSTEP_QUEUES`.
    """
    run, arrival = trace.run, requests.arrival
    out = {name: np.zeros(len(arrival)) for name in LOCKSTEP_QUEUES}
    out["request_latency"] += costs.request_latency
    routed, window_end = run.start[run.routed], trace.window_end[run.routed]
    idle = run.idle_until[run.routed] < routed
    out["window"] = np.where(idle, np.maximum(window_end - arrival, 0.0), 0.0)
    out["idle_step"] = np.where(idle, routed - np.maximum(window_end, arrival), 0.0)
    out["engine_busy"] = np.where(idle, 0.0, routed - arrival)
    out["formed_ahead"] = run.start[trace.formable] - routed
    seconds = np.broadcast_to((run.end - run.start)[:, None], run.tokens.shape)
    with_room = run.tokens < policy.chunk_tokens  # never without chunks
    waits = (run.group, trace.formable, run.first)
    out["own_queue"] = over_iterations(np.where(with_room, 0.0, seconds), *waits)
    out["prompt_limit"] = over_iterations(np.where(with_room, seconds, 0.0), *waits)
    out["padding"] = over_iterations(run.times.padding, run.group, run.first, run.last)
    return out | in_iterations(run)
