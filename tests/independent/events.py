"""What both executions of the independent program share: costs, policy, prompts, and the heap of events."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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
