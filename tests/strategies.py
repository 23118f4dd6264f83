"""Random systems and request sequences for hypothesis, shared by several test modules."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import AT_ARRIVAL, Layout, Policy
from asapmodel.systems.arrays import Requests, make_requests


@dataclass(frozen=True)
class Case:
    """One system and what arrives at it."""

    layout: Layout
    policy: Policy
    costs: LayerCosts
    requests: Requests


def _affine(rng: np.random.Generator) -> Affine:
    return Affine(rng.uniform(1e-6, 1e-3), rng.uniform(1e-9, 4e-7))


def random_costs(rng: np.random.Generator) -> LayerCosts:
    """Costs of plausible size with no two alike, so that ties come from equal batches only."""
    dense_layers = int(rng.integers(0, 3))
    return LayerCosts(
        attention=Quadratic(rng.uniform(1e-5, 2e-3), rng.uniform(1e-8, 1e-6), rng.uniform(1e-13, 4e-11)),
        dispatch_send=_affine(rng),
        dispatch_recv=_affine(rng),
        moe=Plateau(rng.uniform(1e-5, 2e-3), rng.uniform(1e-8, 1e-6)),
        combine_send=_affine(rng),
        combine_recv=_affine(rng),
        host_dispatch=rng.uniform(1e-5, 5e-4),
        layers=dense_layers + int(rng.integers(1, 5)),
        dense_layers=dense_layers,
        dense=_affine(rng),
        step_overhead=float(rng.choice([0.0, rng.uniform(1e-4, 1e-2)])),
        request_latency=float(rng.choice([0.0, 0.03])),
    )


def random_requests(rng: np.random.Generator, count: int, load: float) -> Requests:
    """Bursts, lone requests, repeated lengths and cached prefixes all occur."""
    gaps = rng.exponential(size=count) * load
    gaps[rng.random(count) < rng.choice([0.0, 0.3])] = 0.0  # several in one instant
    prompt = np.clip(np.exp(rng.normal(7.5, 1.4, size=count)).astype(np.int64), 1, 40000)
    if rng.random() < 0.2:
        prompt[:] = prompt[0]
    cached = np.where(rng.random(count) < rng.choice([0.0, 0.5]), (prompt - 1) * rng.random(count), 0)
    return make_requests(np.cumsum(gaps), prompt, cached.astype(np.int64))


@st.composite
def cases(draw: st.DrawFn, kind: str | None = None) -> Case:
    """A system of either kind with every switch drawn, and up to 60 requests."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    what = kind or draw(st.sampled_from(["sync", "asap"]))
    D, T = draw(st.integers(1, 5)), draw(st.sampled_from([1, 4]))
    layout = Layout("sync", D, T, D * T) if what == "sync" else Layout("asap", D, T, 8)
    costs = random_costs(rng)
    low = draw(st.sampled_from([1, 500, 2048, 6000]))
    policy = Policy(
        min_batch_tokens=low,
        max_batch_tokens=max(low, draw(st.sampled_from([2048, 8192, 32768]))),
        exclusive_tokens=draw(st.sampled_from([1000, 16384, 100000])),
        batch_window=draw(st.sampled_from([0.0, 0.003, 0.05, 10.0])),
        pairing=draw(st.sampled_from(["locked", "rolling"])),
        dual_batch=draw(st.booleans()),
        overlap_moe=draw(st.booleans()),
        overlap_attention=draw(st.booleans()),
        super_kernel=draw(st.booleans()),
        chunk_tokens=draw(st.sampled_from([0, 0, 512, 3000])) if what == "sync" else 0,
        balance=draw(st.sampled_from(["tokens", "work"])),
    )
    load = draw(st.sampled_from([0.002, 0.01, 0.05])) * costs.layers / 4
    return Case(layout, policy, costs, random_requests(rng, draw(st.integers(1, 60)), load))


@st.composite
def queue_cases(draw: st.DrawFn, kind: str | None = None) -> Case:
    """A system of either kind with a queue per group, every switch drawn, and up to 60 requests."""
    plain = draw(cases(kind=kind))
    chunked = draw(st.booleans())
    free = plain.layout.kind == "asap"
    routing = draw(st.sampled_from(AT_ARRIVAL))
    ahead = draw(st.booleans()) if chunked else False
    policy = replace(
        plain.policy,
        routing=routing,
        counts=draw(st.sampled_from(["exact", "step"])) if routing == "fewest_requests" else "exact",
        batching="chunks" if chunked else draw(st.sampled_from(["prompts", "min_tokens"])) if free else "prompts",
        chunk_tokens=draw(st.sampled_from([512, 3000, 16384])) if chunked else 0,
        max_seqs=draw(st.sampled_from([0, 1, 3])) if chunked else 0,
        schedule_ahead=ahead,
        hide_overhead=draw(st.booleans()) if ahead else True,
        pad_groups=False if free else draw(st.booleans()),
        idle_steps=False if free else draw(st.booleans()),
        context_parallel=False if free else draw(st.booleans()),
        balance="tokens",
        dual_batch=True,
        micro_batches=draw(st.sampled_from(["none", "split"] if chunked else ["none", "split", "pair"]))
        if free
        else "none",
    )
    return replace(plain, policy=policy)
