"""Lockstep execution of the independent program: iterations."""

from __future__ import annotations

from collections import deque
from functools import partial

from tests.independent.events import FIRST, TASK_END, WINDOW_EXPIRY, Costs, Engine, Policy, Prompt


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
