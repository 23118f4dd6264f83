"""Free execution of the independent program: streams, buffers, batches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial

from tests.independent.events import (
    ATTENTION,
    COMBINE_RECV,
    COMBINE_SEND,
    DISPATCH_RECV,
    DISPATCH_SEND,
    ON_MOE_DEVICES,
    OVERHEAD,
    PHASES,
    TASK_END,
    WINDOW_EXPIRY,
    Costs,
    Engine,
    Policy,
    Prompt,
)


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
