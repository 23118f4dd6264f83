"""Prefill with a queue per group, event by event, as an oracle for the package.

Written from the semantics page alone, slow on purpose. Shares with `prefill.py` its heap of events, the time of an
iteration, and the resources of free execution; routing, batches and steps are here. Where the page leaves something
open, what is done here is listed in `choices.md`.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from functools import partial

from tests.independent.events import (
    ARRIVAL,
    ATTENTION,
    FIRST,
    OVERHEAD,
    TASK_END,
    WINDOW_EXPIRY,
    Costs,
    Outcome,
    Policy,
    Prompt,
    Request,
)
from tests.independent.free import Batch, Free
from tests.independent.lockstep import Lockstep


@dataclass(frozen=True)
class QueuePolicy(Policy):
    """What the scheduler does; `batching` and `micro_batches` are spelt out."""

    routing: str = "round_robin"  # | "fewest_requests" | "fewest_tokens" | "least_work"
    counts: str = "exact"  # | "step"
    batching: str = "chunks"  # | "prompts" | "min_tokens"
    max_seqs: int = 0  # 0: no limit
    schedule_ahead: bool = False
    hide_overhead: bool = True
    pad_groups: bool = False
    idle_steps: bool = False
    context_parallel: bool = False
    T: int = 1  # devices of a group
    micro_batches: str = "none"  # | "pair" | "split"


@dataclass(frozen=True)
class Piece:
    """The tokens of a prompt from `begin` to before `end`."""

    prompt: Prompt
    begin: int
    end: int

    @property
    def n(self) -> int:
        return self.end - self.begin

    @property
    def w(self) -> int:
        return self.end * self.end - self.begin * self.begin


@dataclass(eq=False)
class Step:
    """What a group computes at a time, and how many of its parts are still on their way."""

    group: int
    pieces: list[Piece]
    parts: int = 1
    prepared: bool = False  # formed when the step before started, and its overhead hidden


class Member(Batch):
    """A batch that is part of a step."""

    step: Step


def sizes(pieces: list[Piece]) -> tuple[int, int]:
    return sum(piece.n for piece in pieces), sum(piece.w for piece in pieces)


def cut(pieces: list[Piece], tokens: int) -> tuple[list[Piece], list[Piece]]:
    """Cut a batch behind so many of its tokens."""
    before: list[Piece] = []
    after: list[Piece] = []
    for piece in pieces:
        room = tokens - sum(p.n for p in before)
        middle = min(piece.begin + room, piece.end)
        if middle > piece.begin:
            before.append(Piece(piece.prompt, piece.begin, middle))
        if middle < piece.end:
            after.append(Piece(piece.prompt, middle, piece.end))
    return before, after


def hardest(pieces: list[Piece], devices: int, tokens: int) -> int:
    """Work of a batch whose tokens, padded to `tokens`, are cut among devices: as if all had the hardest part."""
    parts, rest = [], pieces
    while rest:
        part, rest = cut(rest, -(-tokens // devices))
        parts.append(sizes(part)[1])
    return devices * max(parts)


class Router:
    """Which group a prompt joins, from what every group has unfinished."""

    def __init__(self, policy: QueuePolicy, costs: Costs) -> None:
        self.policy, self.costs = policy, costs
        self.unfinished: list[list[Prompt]] = [[] for _ in range(policy.D)]
        self.computed: dict[int, int] = {}  # of a prompt, by id: tokens there when the last step with it ended
        self.begun: set[int] = set()  # prompts, by id, of which a batch has taken tokens
        self.turn = 0
        self.noted = [0] * policy.D

    def requests(self, group: int) -> int:
        running = self.running(group)
        return 4 * (len(self.unfinished[group]) - running) + running

    def running(self, group: int) -> int:
        return sum(id(prompt) in self.begun for prompt in self.unfinished[group])

    def load(self, group: int) -> float:
        mine = self.unfinished[group]
        n = sum(p.length - self.computed[id(p)] for p in mine)
        w = sum(p.length**2 - self.computed[id(p)] ** 2 for p in mine)
        match self.policy.routing, self.policy.counts:
            case "fewest_requests", "exact":
                return self.requests(group)
            case "fewest_requests", "step":
                return self.noted[group]
            case "fewest_tokens", _:
                return n
        return self.costs.attention[1] * n + self.costs.attention[2] * w

    def choose(self, prompt: Prompt) -> int:
        D = self.policy.D
        self.computed[id(prompt)] = prompt.cached
        if self.policy.routing == "round_robin":
            group, self.turn = self.turn, (self.turn + 1) % D
        elif self.policy.routing == "fewest_requests":
            order = [(self.turn + k) % D for k in range(D)]
            group = min(order, key=lambda g: (self.load(g), order.index(g)))
            if self.policy.counts == "exact":
                self.turn = (group + 1) % D
        else:
            group = min(range(D), key=lambda g: (self.load(g), g))
        self.unfinished[group].append(prompt)
        return group

    def step_formed(self) -> None:
        if self.policy.counts == "step":
            self.noted = [self.requests(group) for group in range(self.policy.D)]
            self.turn = (self.turn + 1) % self.policy.D

    def step_ended(self, step: Step, now: float) -> None:
        for piece in step.pieces:
            self.computed[id(piece.prompt)] = piece.end
            if piece.end == piece.prompt.length:
                piece.prompt.end = now
                self.unfinished[step.group].remove(piece.prompt)


def form(policy: QueuePolicy, queue: deque[Prompt], router: Router, group: int) -> list[Piece]:
    """Take a batch from the head of a queue."""
    pieces: list[Piece] = []
    running = router.running(group)
    while queue:
        prompt, total = queue[0], sum(piece.n for piece in pieces)
        tokens = prompt.tokens
        exclusive = policy.batching == "min_tokens" and prompt.length > policy.exclusive_tokens
        if policy.batching == "chunks":
            tokens = min(tokens, policy.chunk_tokens - total)
            if tokens == 0:
                break
            if policy.max_seqs and id(prompt) not in router.begun and running == policy.max_seqs:
                break
        elif pieces:
            full = policy.batching == "min_tokens" and total >= policy.min_batch_tokens
            if full or exclusive or total + tokens > policy.max_batch_tokens:
                break
        if id(prompt) not in router.begun:
            router.begun.add(id(prompt))
            running += 1
        pieces.append(Piece(prompt, prompt.done, prompt.done + tokens))
        prompt.done += tokens
        if prompt.tokens > 0:
            break
        queue.popleft()
        if exclusive:
            break
    return pieces


def note_start(pieces: list[Piece], now: float) -> None:
    for piece in pieces:
        if piece.prompt.start != piece.prompt.start:
            piece.prompt.start = now


class LockstepQueues(Lockstep):
    """D groups in lockstep, prompts routed when they arrive."""

    arrival_kind = FIRST

    def __init__(self, policy: QueuePolicy, costs: Costs, prompts: list[Prompt]) -> None:
        super().__init__(policy, costs, prompts)
        self.how = policy
        self.router = Router(policy, costs)
        self.ahead: dict[int, list[Piece]] = {}  # by group that took part in the last iteration: its next batch
        self.idle_since: float | None = None  # None before the first iteration

    def arrive(self, prompt: Prompt, now: float) -> None:
        self.queues[self.router.choose(prompt)].append(prompt)
        if self.state == "idle":
            self.state = "collecting"
            self.add(self.restart(now + self.policy.batch_window), WINDOW_EXPIRY, self.begin)

    def restart(self, now: float) -> float:
        """When an idle engine that may start now does start."""
        empty = super().duration([])
        if not self.how.idle_steps or self.idle_since is None or empty == 0.0:
            return now
        return max(now, self.idle_since + math.ceil((now - self.idle_since) / empty) * empty)

    def duration(self, sizes: list[tuple[int, int]]) -> float:
        if not self.how.pad_groups or not sizes:
            return super().duration(sizes)
        n = max(n for n, _ in sizes)
        return super().duration([(n, max(w for _, w in sizes))] + [(n, 0)] * (self.policy.D - 1))

    def sizes_of(self, steps: list[Step]) -> list[tuple[int, int]]:
        if not self.how.context_parallel:
            return [sizes(step.pieces) for step in steps]
        largest = max((sizes(step.pieces)[0] for step in steps), default=0)
        own = [(sizes(step.pieces)[0], step.pieces) for step in steps]
        return [(n, hardest(pieces, self.how.T, largest if self.how.pad_groups else n)) for n, pieces in own]

    def begin(self, now: float) -> None:
        self.state = "running"
        steps, ahead = [], {}
        for group, queue in enumerate(self.queues):
            pieces = self.ahead[group] if group in self.ahead else form(self.how, queue, self.router, group)
            if pieces:
                steps.append(Step(group, pieces, prepared=group in self.ahead and self.how.hide_overhead))
                note_start(pieces, now)
                if self.how.schedule_ahead:
                    ahead[group] = form(self.how, queue, self.router, group)
        self.ahead = ahead
        self.router.step_formed()
        for step in steps:
            saved = self.costs.step_overhead if step.prepared else 0.0
            for piece in step.pieces:
                piece.prompt.kernel += self.duration(self.sizes_of([step])) - saved
        time = self.duration(self.sizes_of(steps))
        if steps and all(step.prepared for step in steps):
            time -= self.costs.step_overhead
        self.add(now + time, TASK_END, partial(self.end_of, steps))

    def end_of(self, steps: list[Step], now: float) -> None:
        for step in steps:
            self.router.step_ended(step, now)
        if any(self.router.unfinished):
            self.begin(now)
        else:
            self.state = "idle"
            self.idle_since = now
            self.ahead.clear()


class FreeQueues(Free):
    """D groups that each step on their own, and one pool of MoE devices."""

    arrival_kind = ARRIVAL

    def __init__(self, policy: QueuePolicy, costs: Costs, prompts: list[Prompt]) -> None:
        super().__init__(policy, costs, prompts)
        self.how = policy
        self.router = Router(policy, costs)
        self.queues: list[deque[Prompt]] = [deque() for _ in range(policy.D)]
        self.steps: list[list[Step]] = [[] for _ in range(policy.D)]
        self.ahead: list[list[Piece]] = [[] for _ in range(policy.D)]
        self.fresh: list[Step] = []  # formed at the latest event

    def arrive(self, prompt: Prompt, now: float) -> None:
        self.fresh.clear()
        self.queues[self.router.choose(prompt)].append(prompt)

    def schedule(self, now: float) -> None:
        for group in range(self.policy.D):
            while self.may_form(group, now):
                prepared = bool(self.ahead[group]) and self.how.hide_overhead
                pieces = self.ahead[group] or form(self.how, self.queues[group], self.router, group)
                step = Step(group, pieces, prepared=prepared)
                self.steps[group].append(step)
                note_start(pieces, now)
                if self.how.schedule_ahead:
                    self.ahead[group] = form(self.how, self.queues[group], self.router, group)
                self.router.step_formed()
                alone = self.alone(step)
                for piece in step.pieces:
                    piece.prompt.kernel += alone
                self.start(step, now)

    def may_form(self, group: int, now: float) -> bool:
        queue, steps = self.queues[group], self.steps[group]
        if not steps:
            return bool(queue or self.ahead[group])
        if not queue:
            return False
        if self.how.micro_batches != "pair" or len(steps) == 2:
            return False
        if self.how.pairing == "locked" and steps[0] not in self.fresh:
            return False
        if self.how.batching != "min_tokens":
            return True
        return not self.exclusive(queue[0]) and not self.exclusive(steps[0].pieces[0].prompt)

    def start(self, step: Step, now: float) -> None:
        self.fresh.append(step)
        n, w = sizes(step.pieces)
        tasks = [task for task in self.tasks(n, w) if task[1] != OVERHEAD or not step.prepared]
        before = [task for task in tasks if task[0] < self.costs.dense_layers or task[1] == OVERHEAD]
        layers = self.costs.layers - self.costs.dense_layers
        if self.how.micro_batches != "split" or n < 2 or layers == 0:
            self.go(step, tasks, now)
        elif before:
            step.parts = 3
            self.go(step, before, now)
        else:
            step.parts = 2
            self.go_in_halves(step, now)

    def go_in_halves(self, step: Step, now: float) -> None:
        for half in cut(step.pieces, sizes(step.pieces)[0] // 2):
            tasks = [task for task in self.tasks(*sizes(half)) if task[0] >= self.costs.dense_layers]
            self.go(step, [task for task in tasks if task[1] >= ATTENTION], now)

    def go(self, step: Step, tasks: list[tuple[int, int, float]], now: float) -> None:
        member = Member(step.group, [], False, tasks)
        member.step = step
        self.active[step.group].append(member)
        self.ready(member, now)

    def finish(self, resource: object, batch: Member, now: float) -> None:  # type: ignore[override]
        self.fresh.clear()
        super().finish(resource, batch, now)  # type: ignore[arg-type]
        if batch.at < len(batch.tasks):
            return
        step = batch.step
        step.parts -= 1
        if step.parts == 2:
            self.go_in_halves(step, now)
        elif step.parts == 0:
            self.steps[step.group].remove(step)
            self.router.step_ended(step, now)

    def alone(self, step: Step) -> float:
        """Time of a step in a system that has nothing else to do."""
        lone = LoneStep(replace(self.how, D=1), self.costs, [])
        pieces = [Piece(replace(p.prompt), p.begin, p.end) for p in step.pieces]
        only = Step(0, pieces, prepared=step.prepared)
        lone.steps[0].append(only)
        for piece in only.pieces:
            lone.router.unfinished[0].append(piece.prompt)
        lone.start(only, 0.0)
        lone.run()
        return lone.latest


class LoneStep(FreeQueues):
    """A system whose scheduler does nothing but look at the clock."""

    latest = 0.0

    def schedule(self, now: float) -> None:
        self.latest = now


def simulate(policy: QueuePolicy, costs: Costs, requests: list[Request]) -> list[Outcome]:
    """Every request's outcome, in order of arrival."""
    prompts = [Prompt(arrival, prompt, cached, cached) for arrival, prompt, cached in requests]
    engine = (LockstepQueues if policy.kind == "sync" else FreeQueues)(policy, costs, prompts)
    engine.run()
    latency = costs.request_latency
    return [
        Outcome(p.arrival, p.length, p.cached, p.start, p.end, p.end - p.arrival + latency, p.kernel) for p in prompts
    ]
