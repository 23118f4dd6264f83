"""The graph engine: the timed event graph of a concrete request sequence, evaluated exactly.

Takes requests, layout, policy and costs; gives per-request times and what the resources did. No randomness.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import check_policy, is_vllm_like
from asapmodel.solvers.event_graph import Log, State, new_log, new_state
from asapmodel.systems import lockstep
from asapmodel.systems.arrays import Outcome, Requests, cost_array, new_outcome, policy_numbers
from asapmodel.systems.free import free_network, new_groups, run_free
from asapmodel.systems.free_queues import Alone, run_free_queues
from asapmodel.systems.lockstep_queues import run_lockstep_queues
from asapmodel.systems.logs import IterationLog, StepLog, new_iteration_log, new_step_log
from asapmodel.systems.queue_rules import queue_rules
from asapmodel.systems.queues import new_batches, new_queues
from asapmodel.systems.steps import new_steps, step_rules

__all__ = ["Run", "exposed_host_dispatch", "lockstep_arguments", "lockstep_run", "resource_names", "run"]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one run of the graph engine leaves behind.

    `busy_s` maps a resource to its busy seconds (groups: mean over groups), `critical_s` a phase to the seconds it
    paces the system; `tasks` counts completed tasks; `barrier_waste` is the share of the attention groups' stepping
    time lost at barriers (0 in free execution). In free execution batch `b` ends before request `bound[b]`, where batch
    0 begins with the first request and every other where the one before ends. With queues per group and logged tasks,
    `steps` has what they hold, and `follow` says which request is behind another in its group's queue.
    """

    outcome: Outcome
    makespan_s: float
    busy_s: dict[str, float]
    batches: int
    batch_tokens: float
    tasks: int
    barrier_waste: float
    log: Log
    bound: NDArray[np.int64]
    steps: StepLog | None = None
    follow: NDArray[np.int64] | None = None


def exposed_host_dispatch(layout: Layout, policy: Policy, costs: LayerCosts) -> float:
    """Host dispatch per MoE layer that is not hidden, seconds.

    0 in lockstep (the order of layers is known, kernels are launched ahead) and with the super kernel.
    """
    return 0.0 if layout.kind == "sync" or policy.super_kernel else costs.host_dispatch


def run(
    layout: Layout,
    policy: Policy,
    costs: LayerCosts,
    requests: Requests,
    log_tasks: int = 0,
    window: tuple[float, float] = (-np.inf, np.inf),
) -> Run:
    """Evaluate one request sequence to its end.

    Parameters
    ----------
    layout, policy, costs
        The system.
    requests : Requests
        In arrival order (see `asapmodel.systems.arrays.make_requests`).
    log_tasks : int
        Free execution: keep the first so many tasks of the window.
    window : (float, float)
        Free execution: which tasks to keep, by time; see `asapmodel.solvers.event_graph.Log`.

    Raises
    ------
    ValueError
        If the policy contradicts itself or the kind of system.
    """
    check_policy(layout.kind, policy)
    if layout.kind == "sync":
        return _run_lockstep(layout, policy, costs, requests)
    log = new_log(log_tasks, window)
    if policy.queue_per_group:
        return _run_free_queues(layout, policy, costs, requests, log)
    return _run_free(layout, policy, costs, requests, log)


def resource_names(policy: Policy) -> tuple[list[str], list[str]]:
    """Streams of the pool and of an attention group, in the order of their numbers in `free_network`."""
    pool = ["moe", "moe_send", "moe_receive"] if policy.overlap_moe else ["moe"]
    own = ["attention", "attention_send", "attention_receive"] if policy.overlap_attention else ["attention"]
    return pool, own


def _run_free(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, log: Log) -> Run:
    network = free_network(layout, policy, costs)
    state = new_state(network, policy.slots)
    outcome = new_outcome(len(requests.arrival))
    groups = new_groups(layout.D, policy.slots, len(requests.arrival))
    numbers = policy_numbers(layout, policy)
    cost = cost_array(costs, exposed_host_dispatch(layout, policy, costs))
    run_free(network, state, log, numbers, cost, requests, outcome, groups)
    return _free_run(policy, state, outcome, groups.tally, groups.bound, log)


def _run_free_queues(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, log: Log) -> Run:
    network = free_network(layout, policy, costs)
    lone = free_network(replace(layout, D=1), policy, costs)
    state, lone_state = new_state(network, policy.slots), new_state(lone, policy.slots)
    outcome = new_outcome(len(requests.arrival))
    steps = new_steps(layout.D, policy.slots)
    rules = queue_rules(layout, policy, costs.attention.per_token, costs.attention.per_token2)
    queues = new_queues(layout.D, requests)
    cost = cost_array(costs, exposed_host_dispatch(layout, policy, costs))
    alone = Alone(lone, lone_state, new_log(), new_step_log(1))
    noted = new_step_log(layout.D, _most_steps(policy, requests) if len(log.start) else 0)
    how = step_rules(policy)
    run_free_queues(network, state, log, alone, queues, rules, how, steps, noted, cost, requests, outcome)
    done = _free_run(policy, state, outcome, steps.tally, np.zeros(0, dtype=np.int64), log)
    return replace(done, steps=noted, follow=queues.follow) if len(log.start) else done


def _most_steps(policy: Policy, requests: Requests) -> int:
    """Steps there can be: every one ends a prompt, or is a full chunk."""
    tokens = int((requests.prompt - requests.cached).sum())
    return len(requests.prompt) + (tokens // policy.chunk_tokens if policy.chunk_tokens else 0)


def _free_run(
    policy: Policy,
    state: State,
    outcome: Outcome,
    tally: NDArray[np.float64],
    bound: NDArray[np.int64],
    log: Log,
) -> Run:
    """Collect a run of the event graph."""
    pool, own = resource_names(policy)
    busy = {name: float(state.busy[k]) for k, name in enumerate(pool)}
    stalled = {name: float(state.stalled[k]) for k, name in enumerate(pool)}
    for k, name in enumerate(own):
        busy[name] = float(np.mean(state.busy[len(pool) + k :: len(own)]))
        stalled[name] = float(np.mean(state.stalled[len(pool) + k :: len(own)]))
    return Run(
        outcome=outcome,
        makespan_s=float(outcome.end.max(initial=0.0)),
        busy_s=busy | {f"{name}_blocked": time for name, time in stalled.items() if time > 0},
        batches=int(tally[0]),
        batch_tokens=float(tally[1]),
        tasks=int(state.counter[2]),
        barrier_waste=0.0,
        log=log,
        bound=bound[: int(tally[0])],
    )


def lockstep_arguments(
    layout: Layout, policy: Policy, costs: LayerCosts
) -> tuple[NDArray[np.float64], int, int, bool, bool, float]:
    """Coefficients, groups, budget, chunked, by work and window, as the loops of `asapmodel.systems.lockstep` ask."""
    return (
        lockstep.coefficients(costs),
        layout.D,
        policy.chunk_tokens or policy.max_batch_tokens,
        policy.chunk_tokens > 0,
        policy.balance == "work",
        policy.batch_window,
    )


def lockstep_run(
    layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, log: IterationLog | None = None
) -> tuple[Outcome, NDArray[np.float64]]:
    """Run a synchronous system; return the requests' times, and the tally (`asapmodel.systems.lockstep.TALLY`).

    A `log` is filled with queues per group or a limit on the prompts of an iteration.
    """
    if is_vllm_like(policy):
        outcome = new_outcome(len(requests.arrival))
        rules = queue_rules(layout, policy, costs.attention.per_token, costs.attention.per_token2)
        queues = new_queues(layout.D, requests)
        coefficients, batches = lockstep.coefficients(costs), new_batches(2 * layout.D)
        noted, window = log or new_iteration_log(layout.D), policy.batch_window
        return outcome, run_lockstep_queues(coefficients, queues, rules, batches, window, requests, outcome, noted)
    times = np.zeros((len(requests.arrival), 3))
    tally = lockstep.run_lockstep(*lockstep_arguments(layout, policy, costs), *requests, times)
    return Outcome(*np.ascontiguousarray(times.T)), tally


def _run_lockstep(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Run:
    outcome, tally = lockstep_run(layout, policy, costs, requests)
    engine, total, pace, transfers, experts, batches, tokens = tally.tolist()
    own = total / layout.D
    return Run(
        outcome=outcome,
        makespan_s=float(outcome.end.max(initial=0.0)),
        busy_s={"attention": own, "barrier": pace - own, "transfers": transfers, "moe": experts, "engine": engine},
        batches=int(batches),
        batch_tokens=tokens,
        tasks=int(batches) * (costs.layers + 5 * costs.moe_layers),
        barrier_waste=1.0 - own / pace if pace > 0 else 0.0,
        log=new_log(),
        bound=np.zeros(0, dtype=np.int64),
    )
