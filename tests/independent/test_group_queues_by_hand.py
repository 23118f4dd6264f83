"""The graph engine and the independent program with a queue per group, against cases worked out by hand.

All numbers are exact in binary. Unless said otherwise attention takes 1 a batch, everything else nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.independent import events, group_queues

K = 2.0**-10  # a second per 1024 tokens
ONE = {"attention": (1.0, 0.0, 0.0)}
BY_TOKEN = {"attention": (0.0, K, 0.0)}
BY_WORK = {"attention": (0.0, 0.0, K * K)}
LAYER = {"attention": (0.0, K, 0.0), "moe": (0.0, K)}


@dataclass
class Hand:
    """A system and its requests; `want` is start or end of every request."""

    kind: str
    D: int
    requests: list[tuple[float, int]]
    costs: Mapping[str, object]
    policy: dict[str, object]
    start: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)


SPLIT = {"routing": "round_robin", "chunk_tokens": 4096, "micro_batches": "split", "overlap_attention": True}
COUNT = {"routing": "fewest_requests", "chunk_tokens": 4096}

CASES = {
    # A and C to group 0, B to group 1. Group 0: step 1 has 1024 of A, step 2 512 of A and 512 of C, step 3 512 of C.
    "round robin and chunks": Hand(
        "asap",
        2,
        [(0.0, 1536), (0.0, 1024), (0.0, 1024)],
        BY_TOKEN,
        {"routing": "round_robin", "chunk_tokens": 1024},
        start=[0.0, 0.0, 1.0],
        end=[2.0, 1.0, 2.5],
        kernel=[2.0, 1.0, 1.5],
    ),
    # At most one prompt a step: A's two pieces, then C alone.
    "one prompt a step": Hand(
        "asap",
        2,
        [(0.0, 1536), (0.0, 1024), (0.0, 1024)],
        BY_TOKEN,
        {"routing": "round_robin", "chunk_tokens": 1024, "max_seqs": 1},
        start=[0.0, 0.0, 1.5],
        end=[1.5, 1.0, 2.5],
        kernel=[1.5, 1.0, 1.0],
    ),
    # The same in lockstep: an iteration takes as long as its longest group. A 1024 and B 1024 (0-1); 512 of A and 512
    # of C (1-2); 512 of C (2-2.5).
    "lockstep": Hand(
        "sync",
        2,
        [(0.0, 1536), (0.0, 1024), (0.0, 1024)],
        BY_TOKEN,
        {"routing": "round_robin", "chunk_tokens": 1024, "batch_window": 0.0},
        start=[0.0, 0.0, 1.0],
        end=[2.0, 1.0, 2.5],
        kernel=[2.0, 1.0, 1.5],
    ),
    # Padded: A 1024 and B 512 together, attention 1 and MoE of 2 x 1024 tokens 2 (0-3), where each alone has 3 and 1.5;
    # then C alone, padded in both groups: 0.5 and 1 (3-4.5).
    "padded groups": Hand(
        "sync",
        2,
        [(0.0, 1024), (0.0, 512), (1.0, 512)],
        LAYER,
        {"routing": "round_robin", "chunk_tokens": 1024, "batch_window": 0.0, "pad_groups": True},
        start=[0.0, 0.0, 3.0],
        end=[3.0, 3.0, 4.5],
        kernel=[3.0, 1.5, 1.5],
    ),
    # Work is not padded: A has 2048 tokens, B 512. Attention 2 by tokens and 4 by A's work.
    "padding attends to nothing": Hand(
        "sync",
        2,
        [(0.0, 2048), (0.0, 512)],
        {"attention": (0.0, K, K * K)},
        {"routing": "round_robin", "chunk_tokens": 4096, "batch_window": 0.0, "pad_groups": True},
        end=[6.0, 6.0],
        kernel=[6.0, 0.75],
    ),
    # Attention 1, floor of the experts 1/4, overhead 1/4: iterations of 1.5, empty ones of 1/2. A 0-1.5, then
    # empty. B comes at 2.25 and starts at 2.5, ends at 4; C comes at 5.0, when one ends, and starts then.
    "idle iterations": Hand(
        "sync",
        2,
        [(0.0, 64), (2.25, 64), (5.0, 64)],
        ONE | {"moe": (0.25, 0.0), "step_overhead": 0.25},
        {"routing": "round_robin", "chunk_tokens": 4096, "batch_window": 0.0, "idle_steps": True},
        start=[0.0, 2.5, 5.0],
        end=[1.5, 4.0, 6.5],
        kernel=[1.5, 1.5, 1.5],
    ),
    # 2048 tokens, attention 1 s and MoE 1 s per 1024, two layers, streams of their own for transfers. Halves P and Q of
    # 1024. Attention P 0-1, Q 1-2;
    # MoE P 1-2, Q 2-3; attention P 2-3, Q 3-4; MoE P 3-4, Q 4-5.
    "two halves": Hand("asap", 1, [(0.0, 2048)], LAYER | {"layers": 2}, SPLIT, end=[5.0], kernel=[5.0]),
    # With one dense layer of 2 + 1 and overhead 1/2 before the cut: 0-0.5-3.5, then as above.
    "before the cut": Hand(
        "asap",
        1,
        [(0.0, 2048)],
        LAYER | {"layers": 3, "dense_layers": 1, "dense": (1.0, 0.0), "step_overhead": 0.5, "request_latency": 9.0},
        SPLIT,
        end=[8.5],
        kernel=[8.5],
    ),
    # A cut prompt: work of its first half 1024^2, of its second 2048^2 - 1024^2 = 3 x 1024^2. Attention 1 and 3.
    "the second half attends to the first": Hand("asap", 1, [(0.0, 2048)], BY_WORK, SPLIT, end=[4.0], kernel=[4.0]),
    # The second step (3072 tokens, two prompts) is cut inside its second prompt, at 1536: work 1 + 1/4, then 4 - 1/4.
    # The first step has one token, and is not cut: attention 2^-20, MoE 4. The second begins then: attention to 5.25,
    # MoE 5.25-9.25; attention 5.25-9, MoE 9.25-13.25.
    "cut inside a prompt": Hand(
        "asap",
        1,
        [(0.0, 1), (0.5, 1024), (0.5, 2048)],
        BY_WORK | {"moe": (4.0, 0.0)},
        SPLIT,
        start=[0.0, 4.0 + K * K, 4.0 + K * K],
        end=[4.0 + K * K, 13.25 + K * K, 13.25 + K * K],
    ),
    # Counts 4 waiting + running, one second a prompt in lockstep. At 0 A to group 0, an iteration 0-1 (A runs: 1, 0).
    # B: group 1 (4 waiting). C: 1 against 4, group 0. D: 5 against 4, group 1. E: 5 against 8, group 0; F: 9 against 8.
    "exact counts": Hand(
        "sync",
        2,
        [(0.0, 4096), (0.25, 4096), (0.25, 4096), (0.5, 4096), (0.5, 4096), (0.75, 4096)],
        ONE,
        COUNT | {"batch_window": 0.0},
        start=[0.0, 1.0, 1.0, 2.0, 2.0, 3.0],
        end=[1.0, 2.0, 2.0, 3.0, 3.0, 4.0],
    ),
    # As they stood at 0, when the step was formed: (1, 0): B to F all go to group 1, one iteration each.
    "counts of the last step": Hand(
        "sync",
        2,
        [(0.0, 4096), (0.25, 4096), (0.25, 4096), (0.5, 4096)],
        ONE,
        COUNT | {"batch_window": 0.0, "counts": "step"},
        start=[0.0, 1.0, 2.0, 3.0],
        end=[1.0, 2.0, 3.0, 4.0],
    ),
    # Ties rotate: lone requests go to 0, 1, 0; the last two arrive together, to 1 and 0.
    "ties rotate": Hand(
        "asap",
        2,
        [(0.0, 8), (2.0, 8), (4.0, 8), (6.0, 8), (6.0, 8)],
        ONE,
        COUNT,
        start=[0.0, 2.0, 4.0, 6.0, 6.0],
        end=[1.0, 3.0, 5.0, 7.0, 7.0],
    ),
    # 2048 tokens, then 1024 twice to group 1 (a tie of tokens): the last to group 0 (lowest index), behind the first.
    "fewest tokens": Hand(
        "asap",
        2,
        [(0.0, 2048), (0.0, 1024), (0.0, 1024), (0.0, 1024)],
        BY_WORK,
        {"routing": "fewest_tokens", "batching": "prompts", "micro_batches": "none", "max_batch_tokens": 1024},
        start=[0.0, 0.0, 1.0, 4.0],
        end=[4.0, 1.0, 2.0, 5.0],
    ),
    # By work 4 against 1 and 2: the last joins group 1, too.
    "least work": Hand(
        "asap",
        2,
        [(0.0, 2048), (0.0, 1024), (0.0, 1024), (0.0, 1024)],
        BY_WORK,
        {"routing": "least_work", "batching": "prompts", "micro_batches": "none", "max_batch_tokens": 1024},
        start=[0.0, 0.0, 1.0, 2.0],
        end=[4.0, 1.0, 2.0, 3.0],
    ),
    # What a step computes counts until it ends: at 0.5 group 0 has 1024 tokens still, and B of 512 goes to group 1;
    # C at 0.75, too (512 against 1024).
    "outstanding until the end of the step": Hand(
        "asap",
        2,
        [(0.0, 1024), (0.5, 512), (0.75, 512)],
        ONE,
        {"routing": "fewest_tokens", "batching": "prompts", "micro_batches": "none"},
        start=[0.0, 0.5, 1.5],
        end=[1.0, 1.5, 2.5],
    ),
    # Free slots are filled. Group 0: A at 0, C at 9.5; group 1: B at 9, D at 9.75 beside it. Attention B 9-10, D 10-11,
    # C 9.5-10.5. MoE B 10-12, C 12-14, D 14-16.
    "pairs in turn": Hand(
        "asap",
        2,
        [(0.0, 64), (9.0, 64), (9.5, 64), (9.75, 64)],
        ONE | {"moe": (2.0, 0.0)},
        {"routing": "round_robin", "micro_batches": "pair", "pairing": "rolling", "overlap_attention": True},
        start=[0.0, 9.0, 9.5, 9.75],
        end=[3.0, 12.0, 14.0, 16.0],
    ),
}


def costs_of(given: Mapping[str, object]) -> tuple[LayerCosts, events.Costs]:
    whole: dict[str, object] = {"attention": (0.0, 0.0, 0.0), "moe": (0.0, 0.0), "layers": 1, **given}
    nothing = (0.0, 0.0)
    transfers = dict.fromkeys(("dispatch_send", "dispatch_recv", "combine_send", "combine_recv"), nothing)
    theirs = events.Costs(**transfers | whole)  # type: ignore[arg-type]
    laws = {"attention": Quadratic, "moe": Plateau, "dense": Affine, **dict.fromkeys(transfers, Affine)}
    ours = {name: laws[name](*value) if name in laws else value for name, value in (transfers | whole).items()}  # type: ignore[misc]
    return LayerCosts(**ours), theirs  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    case = CASES[name]
    ours, theirs = costs_of(case.costs)
    arrival, prompt = (np.array(column) for column in zip(*case.requests, strict=True))
    layout = Layout(case.kind, case.D, 1, case.D)  # type: ignore[arg-type]
    out = run(layout, Policy(**case.policy), ours, make_requests(arrival, prompt)).outcome  # type: ignore[arg-type]
    batching = "chunks" if "chunk_tokens" in case.policy else case.policy.get("batching", "min_tokens")
    policy = group_queues.QueuePolicy(case.kind, case.D, **case.policy | {"batching": batching})  # type: ignore[arg-type]
    other = group_queues.simulate(policy, theirs, [(float(t), int(s), 0) for t, s in case.requests])
    for what in ("start", "end", "kernel"):
        want = getattr(case, what)
        if want:
            assert getattr(out, what).tolist() == want, f"engine, {what}"
            assert [getattr(one, what) for one in other] == want, f"independent program, {what}"
