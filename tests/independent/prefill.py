"""Synchronous and asynchronous prefill, event by event, as an oracle for the package.

Written from the semantics page alone, shares no code with the package, slow on purpose: standard
library only, one heap of events, no caching, no shortcuts. Where the page leaves something open, what
is done here is listed in `choices.md`.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

Request = tuple[float, int, int]  # arrival, prompt tokens, cached tokens
Task = tuple[str, int, int, int, float, float]  # resource name, group, layer, phase, start, end

# Kinds of event, in the order in which they are processed at one instant.
FIRST, TASK_END, WINDOW_EXPIRY, ARRIVAL = -1, 0, 1, 2

# The phases of an MoE layer; the overhead of a step is a task of its own before the first layer.
PHASES = OVERHEAD, ATTENTION, DISPATCH_SEND, DISPATCH_RECV, MOE, COMBINE_SEND, COMBINE_RECV = range(-1, 6)
ON_MOE_DEVICES = (DISPATCH_RECV, MOE, COMBINE_SEND)


@dataclass(frozen=True)
class Costs:
    """Seconds per layer for one batch of n tokens and attention work w."""

    attention: tuple[float, float, float]  # a0, a1, a2: a0 + a1 n + a2 w
    dispatch_send: tuple[float, float]  # alpha, beta: alpha + beta n
    dispatch_recv: tuple[float, float]
    moe: tuple[float, float]  # floor, per token: max(floor, per_token n)
    combine_send: tuple[float, float]
    combine_recv: tuple[float, float]
    host_dispatch: float = 0.0
    layers: int = 61  # all layers, of which the first `dense_layers` are dense
    dense: tuple[float, float] = (0.0, 0.0)
    dense_layers: int = 0
    step_overhead: float = 0.0
    request_latency: float = 0.0

    def attention_time(self, n: int, w: int) -> float:
        a0, a1, a2 = self.attention
        return a0 + a1 * n + a2 * w

    def dense_layer_time(self, n: int, w: int) -> float:
        return self.attention_time(n, w) + affine(self.dense, n)

    def dispatch(self, n: int) -> tuple[float, float]:
        return affine(self.dispatch_send, n), affine(self.dispatch_recv, n)

    def combine(self, n: int) -> tuple[float, float]:
        return affine(self.combine_send, n), affine(self.combine_recv, n)

    def moe_time(self, n: int, host: float) -> float:
        floor, per_token = self.moe
        return max(floor, per_token * n) + host


@dataclass(frozen=True)
class Policy:
    """What the scheduler does."""

    kind: str  # "sync" | "asap"
    D: int
    min_batch_tokens: int = 2048
    max_batch_tokens: int = 32768
    exclusive_tokens: int = 16384
    batch_window: float = 0.0
    pairing: str = "locked"  # | "rolling"
    dual_batch: bool = True
    overlap_moe: bool = True
    overlap_attention: bool = False
    super_kernel: bool = True
    chunk_tokens: int = 0  # 0: whole prompts
    balance: str = "tokens"  # | "work"


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    arrival: float
    prompt: int
    cached: int
    start: float
    end: float
    ttft: float
    kernel: float


@dataclass
class Prompt:
    """A request on its way; `done` counts the tokens already there, the cached ones included."""

    arrival: float
    length: int
    cached: int
    done: int
    start: float = math.nan
    end: float = math.nan
    kernel: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens still to be computed."""
        return self.length - self.done

    @property
    def work(self) -> int:
        """Attention work still to be done."""
        return self.length * self.length - self.done * self.done


Action = Callable[[float], None]


class Engine:
    """A heap of events, ordered by time, then kind, then order of entry."""

    arrival_kind = ARRIVAL

    def __init__(self, policy: Policy, costs: Costs, prompts: list[Prompt]) -> None:
        self.policy, self.costs = policy, costs
        self.events: list[tuple[float, int, int, Action]] = []
        self.entered = 0
        self.log: list[Task] = []
        for prompt in prompts:
            self.add(prompt.arrival, self.arrival_kind, partial(self.arrive, prompt))

    def add(self, time: float, kind: int, action: Action) -> None:
        heapq.heappush(self.events, (time, kind, self.entered, action))
        self.entered += 1

    def run(self) -> None:
        while self.events:
            now, _, _, action = heapq.heappop(self.events)
            action(now)
            self.schedule(now)

    def arrive(self, prompt: Prompt, now: float) -> None:
        raise NotImplementedError

    def schedule(self, now: float) -> None:
        """What the scheduler does after every event."""


def affine(coefficients: tuple[float, float], n: int) -> float:
    alpha, beta = coefficients
    return alpha + beta * n


# ---------------------------------------------------------------------------------------- lockstep


class Lockstep(Engine):
    """D groups that run one iteration at a time together."""

    arrival_kind = FIRST  # "all that has arrived" includes the arrivals of the instant itself

    def __init__(self, policy: Policy, costs: Costs, prompts: list[Prompt]) -> None:
        super().__init__(policy, costs, prompts)
        self.arrived: list[Prompt] = []  # not yet routed to a group
        self.queues: list[deque[Prompt]] = [deque() for _ in range(policy.D)]
        self.state = "idle"  # | "collecting" (waiting for the window) | "running"

    def arrive(self, prompt: Prompt, now: float) -> None:
        self.arrived.append(prompt)
        if self.state == "idle":
            self.state = "collecting"
            self.add(now + self.policy.batch_window, WINDOW_EXPIRY, self.begin)

    def queued(self, group: int) -> float:
        n = sum(prompt.tokens for prompt in self.queues[group])
        if self.policy.balance == "tokens":
            return n
        _, a1, a2 = self.costs.attention
        return a1 * n + a2 * sum(prompt.work for prompt in self.queues[group])

    def form(self, queue: deque[Prompt]) -> list[tuple[Prompt, int]]:
        """Take a batch off a group's queue: prompts and how many tokens of each."""
        pieces: list[tuple[Prompt, int]] = []
        chunk, total = self.policy.chunk_tokens, 0
        while queue:
            c = queue[0].tokens
            if chunk > 0:
                c = min(c, chunk - total)
                if c == 0:
                    break
            elif pieces and total + c > self.policy.max_batch_tokens:
                break
            total += c
            pieces.append((queue[0], c))
            if c < queue[0].tokens:
                break  # cut: it stays at the head of the queue
            queue.popleft()
        return pieces

    def begin(self, now: float) -> None:
        self.state = "running"
        for prompt in self.arrived:
            group = min(range(self.policy.D), key=lambda g: (self.queued(g), g))
            self.queues[group].append(prompt)
        self.arrived.clear()

        finished: list[Prompt] = []
        sizes: list[tuple[int, int]] = []  # n and w of every group with work
        for queue in self.queues:
            pieces = self.form(queue)
            if not pieces:
                continue
            n = sum(c for _, c in pieces)
            w = sum(c * c + 2 * c * prompt.done for prompt, c in pieces)
            sizes.append((n, w))
            alone = self.duration([(n, w)])
            for prompt, c in pieces:
                if prompt.done == prompt.cached:
                    prompt.start = now
                prompt.kernel += alone
                prompt.done += c
                if prompt.tokens == 0:
                    finished.append(prompt)
        self.add(now + self.duration(sizes), TASK_END, partial(self.finish, finished))

    def duration(self, sizes: list[tuple[int, int]]) -> float:
        """Time of an iteration in which groups have batches of these sizes."""
        costs = self.costs
        largest = max((n for n, _ in sizes), default=0)
        total = sum(n for n, _ in sizes)
        dense = max((costs.dense_layer_time(n, w) for n, w in sizes), default=0.0)
        layer = (
            max((costs.attention_time(n, w) for n, w in sizes), default=0.0)
            + sum(costs.dispatch(largest))
            + costs.moe_time(total, 0.0)
            + sum(costs.combine(largest))
        )
        moe_layers = costs.layers - costs.dense_layers
        return costs.step_overhead + costs.dense_layers * dense + moe_layers * layer

    def finish(self, finished: list[Prompt], now: float) -> None:
        for prompt in finished:
            prompt.end = now
        if self.arrived or any(self.queues):
            self.begin(now)
        else:
            self.state = "idle"


# -------------------------------------------------------------------------------------------- free


@dataclass(eq=False)
class Batch:
    """A batch, its tasks (layer, phase, duration) in order, and which of them is next or running."""

    group: int
    prompts: list[Prompt]
    exclusive: bool
    tasks: list[tuple[int, int, float]]
    at: int = 0

    @property
    def phase(self) -> int:
        return self.tasks[self.at][1]


@dataclass(eq=False)
class Resource:
    """Serves its tasks one at a time in the order in which they became ready.

    A batch has never more than one task ready or running, so batches stand for their tasks. A task
    that waits for a buffer stays at the head, and blocks the others.
    """

    name: str
    busy: bool = False
    waiting: deque[Batch] = field(default_factory=deque)


def streams(side: str, overlap: bool) -> dict[int, Resource]:
    """The resource on which each phase runs."""
    if overlap:
        compute, send, receive = (Resource(f"{side}.{name}") for name in ("compute", "send", "receive"))
    else:
        compute = send = receive = Resource(side)
    sends, receives = (DISPATCH_SEND, COMBINE_SEND), (DISPATCH_RECV, COMBINE_RECV)
    return {phase: send if phase in sends else receive if phase in receives else compute for phase in PHASES}


class Free(Engine):
    """D groups that pull batches from one queue, and one pool of MoE devices."""

    def __init__(self, policy: Policy, costs: Costs, prompts: list[Prompt]) -> None:
        super().__init__(policy, costs, prompts)
        self.slots = 2 if policy.dual_batch else 1
        self.queue: deque[Prompt] = deque()
        self.active: list[list[Batch]] = [[] for _ in range(policy.D)]
        self.attention = [streams("attention", policy.overlap_attention) for _ in range(policy.D)]
        self.moe = streams("moe", policy.overlap_moe)
        # Every group's dispatch region and combine buffer, by the phase that occupies it.
        self.buffer_free = {phase: [True] * policy.D for phase in (DISPATCH_SEND, COMBINE_SEND)}

    def arrive(self, prompt: Prompt, now: float) -> None:
        self.queue.append(prompt)
        # The scheduler acts after every event, so the expiry itself has nothing to do.
        self.add(prompt.arrival + self.policy.batch_window, WINDOW_EXPIRY, lambda now: None)

    def exclusive(self, prompt: Prompt) -> bool:
        return prompt.length > self.policy.exclusive_tokens

    def schedule(self, now: float) -> None:
        while self.queue:
            head = self.queue[0]
            if (
                not self.exclusive(head)
                and not now >= head.arrival + self.policy.batch_window
                and sum(p.tokens for p in self.queue) < self.policy.min_batch_tokens * self.slots
            ):
                return
            able = [g for g in range(self.policy.D) if self.can_take(g, head)]
            if not able:
                return
            group = min(able, key=lambda g: (len(self.active[g]), g))
            batch = self.take(group, now)
            if self.policy.pairing == "locked":
                while (
                    not batch.exclusive
                    and len(self.active[group]) < self.slots
                    and self.queue
                    and not self.exclusive(self.queue[0])
                ):
                    self.take(group, now)

    def can_take(self, group: int, head: Prompt) -> bool:
        active = self.active[group]
        if not active:
            return True
        if self.policy.pairing == "locked" or self.exclusive(head):
            return False
        return len(active) < self.slots and not any(batch.exclusive for batch in active)

    def take(self, group: int, now: float) -> Batch:
        """Form a batch from the head of the queue and start it in a group."""
        first = self.queue.popleft()
        prompts, n = [first], first.tokens
        if not self.exclusive(first):
            while (
                self.queue
                and n < self.policy.min_batch_tokens
                and n + self.queue[0].tokens <= self.policy.max_batch_tokens
                and not self.exclusive(self.queue[0])
            ):
                n += self.queue[0].tokens
                prompts.append(self.queue.popleft())
        tasks = self.tasks(n, sum(prompt.work for prompt in prompts))
        batch = Batch(group, prompts, self.exclusive(first), tasks)
        for prompt in prompts:
            prompt.start = now
            prompt.kernel = sum(duration for _, _, duration in tasks)
        self.active[group].append(batch)
        self.ready(batch, now)
        return batch

    def tasks(self, n: int, w: int) -> list[tuple[int, int, float]]:
        """All that a batch has to go through: layer, phase, duration."""
        costs = self.costs
        host = 0.0 if self.policy.super_kernel else costs.host_dispatch
        tasks = [(0, OVERHEAD, costs.step_overhead)] if costs.step_overhead > 0.0 else []
        for layer in range(costs.dense_layers):
            tasks.append((layer, ATTENTION, costs.dense_layer_time(n, w)))
        for layer in range(costs.dense_layers, costs.layers):
            moe = [costs.attention_time(n, w), *costs.dispatch(n), costs.moe_time(n, host), *costs.combine(n)]
            tasks += [(layer, phase, duration) for phase, duration in enumerate(moe)]
        return tasks

    def resource(self, batch: Batch) -> Resource:
        side = self.moe if batch.phase in ON_MOE_DEVICES else self.attention[batch.group]
        return side[batch.phase]

    def ready(self, batch: Batch, now: float) -> None:
        """The batch's next task becomes ready."""
        self.resource(batch).waiting.append(batch)
        self.serve(self.resource(batch), now)

    def serve(self, resource: Resource, now: float) -> None:
        """Start the next task of a resource if it can start."""
        if resource.busy or not resource.waiting:
            return
        batch = resource.waiting[0]
        layer, phase, duration = batch.tasks[batch.at]
        if phase in self.buffer_free:
            if not self.buffer_free[phase][batch.group]:
                return
            self.buffer_free[phase][batch.group] = False
        resource.waiting.popleft()
        resource.busy = True
        self.log.append((resource.name, batch.group, layer, phase, now, now + duration))
        self.add(now + duration, TASK_END, partial(self.finish, resource, batch))

    def finish(self, resource: Resource, batch: Batch, now: float) -> None:
        group = batch.group
        resource.busy = False
        # 1. The buffer is released; a stream blocked on it starts its task.
        if batch.phase == DISPATCH_RECV:
            self.buffer_free[DISPATCH_SEND][group] = True
            self.serve(self.attention[group][DISPATCH_SEND], now)
        if batch.phase == COMBINE_RECV:
            self.buffer_free[COMBINE_SEND][group] = True
            self.serve(self.moe[COMBINE_SEND], now)
        # 2. The batch goes on, or is done.
        batch.at += 1
        if batch.at < len(batch.tasks):
            self.ready(batch, now)
        else:
            self.active[group].remove(batch)
            for prompt in batch.prompts:
                prompt.end = now
        # 3. The freed resource serves its next task.
        self.serve(resource, now)


# --------------------------------------------------------------------------------------------- both


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
