"""Calibrate on parts, predict the whole: runs in processes on this machine against runs in virtual time.

1. Attention and experts are measured alone, in one process, and the cost laws fitted (`measuring`).
2. Runs of lone prompts in processes calibrate the rest: how long each of the four primitives takes, with the time that
   what it delivers then lies there before the receiver, which polls, sees it (affine in tokens); and a factor each by
   which attention and experts take longer there than alone.
3. Other prompts, arriving while others are served, run in processes; the same prompts run in virtual time with the
   costs of steps 1 and 2. Nothing of step 3 is fitted.

Matrix products must use one thread, as one device is one process: `predict` runs itself in a process of its own whose
environment says so.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import run_asynchronous
from asapmodel.reference.buffers import Shape
from asapmodel.reference.devices import make_model
from asapmodel.reference.measuring import Fit, fit_attention, fit_experts, measure_attention, measure_experts
from asapmodel.reference.processes import ProcessRun, run_processes
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.scheduler_worker import Journal
from asapmodel.reference.synchronous import run_synchronous
from asapmodel.reference.virtual_time import Busy
from asapmodel.reference.weights import Config

__all__ = ["Law", "Prediction", "RunPair", "predict", "predicted_makespan"]

Floats = NDArray[np.float64]

_CONFIG = Config(
    hidden=256,
    heads=2,
    head_size=64,
    latent=64,
    index_heads=1,
    index_size=32,
    index_top=4096,
    experts=8,
    top=4,
    layers=6,
    dense_layers=0,
    expert_size=512,
    shared_size=256,
)
_BATCHES = (
    *([s] for s in (32, 64, 128, 192, 256, 384, 512, 768)),
    *([s] * k for s in (64, 128, 256) for k in (2, 4)),
    [256, 64, 64],
    [384, 64, 32],
    [512, 128],
)
_TOKENS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_POLICY = Policy(min_batch_tokens=128, max_batch_tokens=768, exclusive_tokens=768, batch_window=0.02)
_LONE = (32, 64, 128, 256, 512, 32, 64, 128, 256, 512)
_LOAD = 0.6
_LEAST_R2, _MOST_ERROR = 0.8, 0.5  # beyond which something is wrong, and not merely disturbed
_APART = 1.0  # seconds between lone prompts
_PHASES = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, slots=True)
class RunPair:
    """One run, measured and predicted: TTFT by prompt and time of the last end, seconds."""

    system: str
    ttft: tuple[float, ...]
    predicted_ttft: tuple[float, ...]
    makespan: float
    predicted_makespan: float

    @property
    def makespan_error(self) -> float:
        """Predicted over measured, less 1; from the first arrival on."""
        return self.predicted_makespan / self.makespan - 1.0

    @property
    def mean_error(self) -> float:
        """Of the mean TTFT."""
        return float(np.mean(self.predicted_ttft) / np.mean(self.ttft) - 1.0)

    @property
    def median_error(self) -> float:
        """Median absolute error of single TTFTs."""
        return float(np.median(np.abs(np.array(self.predicted_ttft) / np.array(self.ttft) - 1.0)))


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law as plain numbers: coefficients, points `(n, w, seconds, fitted)`, share of variance explained."""

    coefficients: dict[str, float]
    points: tuple[tuple[float, ...], ...]
    r2: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Fitted laws, the costs of both systems, and the runs."""

    processors: int
    config: dict[str, int]
    attention: Law
    experts: Law
    costs: dict[str, dict[str, Any]]
    runs: tuple[RunPair, ...]


def predict(requests: int = 12, seeds: Sequence[int] = (1,)) -> Prediction:
    """Measure, calibrate, run and predict; about 20 s with the defaults.

    Parameters
    ----------
    requests : int
        Prompts of a run.
    seeds : sequence of int
        One synchronous and one asynchronous run each.

    Raises
    ------
    RuntimeError
        If the process fails; with what it said.
    """
    one_thread = os.environ | dict.fromkeys(_THREADS, "1")
    arguments = [sys.executable, "-m", __name__, str(requests), *map(str, seeds)]
    done = subprocess.run(arguments, env=one_thread, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    laws = {name: Law(**found[name]) for name in ("attention", "experts")}
    runs = tuple(RunPair(**one) for one in found["runs"])
    return Prediction(found["processors"], found["config"], laws["attention"], laws["experts"], found["costs"], runs)


def predicted_makespan() -> tuple[bool, str]:
    """Whether laws are seen and makespans predicted; generous, for machines differ and may have other things to do."""
    found = predict(requests=8)
    errors = ", ".join(f"{run.system} {run.makespan_error:+.0%}" for run in found.runs)
    seen = min(found.attention.r2, found.experts.r2)
    passed = seen > _LEAST_R2 and all(abs(run.makespan_error) < _MOST_ERROR for run in found.runs)
    return (
        passed,
        f"R^2 of the laws from {seen:.2f}; makespan: {errors}; {found.processors} processors",
    )


def _layout(kind: str) -> Layout:
    """One process a processor where there are two."""
    return Layout("sync", 2, 1, 2) if kind == "sync" else Layout("asap", 1, 1, 1)


def _prompts(requests: int, seed: int, costs: LayerCosts) -> list[Prompt]:
    """Lognormal lengths, Poisson arrivals at a share of the rate at which lone prompts would follow each other."""
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(5.0, 0.8, requests), 16, 640).astype(int)
    alone = float(np.mean([costs.alone(float(s), float(s) ** 2) for s in lengths]))
    arrivals = _APART + np.cumsum(random.exponential(alone / _LOAD, requests))
    return [Prompt(k, float(arrivals[k]), int(s)) for k, s in enumerate(lengths)]


def _warm(prompts: Sequence[Prompt]) -> list[Prompt]:
    """A prompt before the others, whose time does not count: first touch of memory and code is slow."""
    return [Prompt(-1, 0.0, _LONE[0]), *prompts]


def _calibrated(kind: str, attention: Quadratic, experts: Plateau) -> LayerCosts:
    """Costs with what lone prompts say: of transfers everything, of attention and experts a factor each."""
    prompts = [Prompt(k, _APART * (k + 1), s) for k, s in enumerate(_LONE)]
    chains = _chains(kind, _measured(kind, prompts))
    here = {
        "attention": _slowdown(chains, "attention", lambda n: attention(n, n * n)),
        "moe": _slowdown(chains, "moe", experts),
    }
    a, m = here["attention"], here["moe"]
    quadratic = Quadratic(a * attention.fixed, a * attention.per_token, a * attention.per_token2)
    send, receive, back, end = _transfers(chains)
    plateau = Plateau(m * experts.floor, m * experts.per_token)
    return LayerCosts(quadratic, send, receive, plateau, back, end, layers=_CONFIG.layers)


def _measured(kind: str, prompts: Sequence[Prompt]) -> ProcessRun:
    every = _warm(prompts)
    return run_processes(make_model(_CONFIG, every, 0), _layout(kind), _POLICY, every)


def _chains(kind: str, run: ProcessRun) -> list[list[Busy]]:
    """Phases of each lone prompt in order.

    A synchronous transfer is a collective; the first device of the first group, where lone prompts go, stands for all.
    """
    chains: dict[int, list[Busy]] = defaultdict(list)
    for busy in run.log:
        counts = busy.worker[:3] == ("attention", 0, 0) if kind == "sync" else True
        if counts and busy.start > _APART and busy.phase.name not in ("barrier", "step"):
            chains[int(busy.start / _APART)].append(busy)
    return [sorted(chain, key=lambda one: one.start) for chain in chains.values()]


def _slowdown(chains: Sequence[Sequence[Busy]], name: str, law: Callable[[float], float]) -> float:
    """Median of measured over fitted seconds: caches are shared and colder than when a kernel is measured alone."""
    ratios = [
        (busy.end - busy.start) / law(float(busy.phase.n))
        for chain in chains
        for busy in chain
        if busy.phase.name == name
    ]
    return float(np.median(ratios))


def _transfers(chains: Sequence[Sequence[Busy]]) -> list[Affine]:
    """Affine laws of the four transfers, each from the end of what came before in the layer to its own end."""
    seconds: dict[str, list[tuple[int, float]]] = {name: [] for name in _PHASES}
    for chain in chains:
        for before, busy in pairwise(chain):
            if busy.phase.name in seconds:
                seconds[busy.phase.name].append((busy.phase.n, busy.end - before.end))
    return [_affine(seconds[name]) for name in _PHASES]


def _affine(pairs: Sequence[tuple[int, float]]) -> Affine:
    """Least squares through the medians by tokens, no coefficient negative."""
    n = sorted({one for one, _ in pairs})
    medians = np.array([np.median([seconds for one, seconds in pairs if one == size]) for size in n])
    slope, fixed = np.polyfit(n, medians, 1).tolist()
    return Affine(max(fixed, 0.0), max(slope, 0.0))


def _run_pair(kind: str, requests: int, seed: int, costs: LayerCosts) -> RunPair:
    """One run of both."""
    prompts = _prompts(requests, seed, costs)
    real = _measured(kind, prompts)
    runner = run_synchronous if kind == "sync" else run_asynchronous
    virtual = runner(make_model(_CONFIG, prompts, 0), _layout(kind), _POLICY, costs, prompts)

    def times(journal: Journal) -> tuple[tuple[float, ...], float]:
        ends = {index: end for index, (_, end) in journal.times().items()}
        return tuple(ends[one.index] - one.arrival for one in prompts), max(ends.values()) - prompts[0].arrival

    ttft, makespan = times(real.journal)
    predicted, predicted_makespan = times(virtual.journal)
    return RunPair("synchronous" if kind == "sync" else "asynchronous", ttft, predicted, makespan, predicted_makespan)


def _law(fit: Fit) -> Law:
    points = tuple(
        (point.n, point.w, point.seconds, float(fitted)) for point, fitted in zip(fit.points, fit.fitted, strict=True)
    )
    return Law(asdict(fit.law), points, fit.r2)


def _main(requests: int, seeds: Sequence[int]) -> Prediction:
    """Everything, in this process."""
    model = make_model(_CONFIG, [], 0)
    largest = max(sum(one) for one in _BATCHES)
    both = {}
    for kind in ("sync", "asap"):
        layout = _layout(kind)
        shape = Shape(layout.D, layout.T, layout.E, _CONFIG.experts, _CONFIG.top, _CONFIG.hidden, largest)
        both[kind] = shape
    attention = fit_attention(measure_attention(model, both["asap"], _BATCHES))
    experts = {kind: fit_experts(measure_experts(model, shape, _TOKENS)) for kind, shape in both.items()}
    costs, runs = {}, []
    for kind in ("sync", "asap"):
        assert isinstance(attention.law, Quadratic)
        law = experts[kind].law
        assert isinstance(law, Plateau)
        costs[kind] = _calibrated(kind, attention.law, law)
        runs += [_run_pair(kind, requests, seed, costs[kind]) for seed in seeds]
    plain = {kind: asdict(one) for kind, one in costs.items()}
    return Prediction(os.cpu_count() or 1, asdict(_CONFIG), _law(attention), _law(experts["asap"]), plain, tuple(runs))


if __name__ == "__main__":
    print(json.dumps(asdict(_main(int(sys.argv[1]), [int(one) for one in sys.argv[2:]]))))
