"""Runs of the study of imbalance: laws of length, groups that wait for each other, and what the waiting costs.

Four quantities a system. *Waste* is the share of the groups' attention time lost at the barriers, at a load (queueing
engine) and with every prompt waiting from the beginning (graph engine). *Predicted* is ``c kappa_D / (1 + c kappa_D)``
of the closed forms. *Perfect balance* is the same system with every token and all attention work divided evenly over
the groups, which is one group with 1/D of the costs per token and D times the budget. *Barrier share* is that of all
device time with every prompt waiting: without it the same iterations would run ``1 / (1 - share)`` times as fast.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from asapmodel.attribution.blame import blame_of
from asapmodel.circuits.batches import form_iterations
from asapmodel.closed_forms.barriers import batch_cv_prompts, batch_cv_tokens, slowest_group
from asapmodel.costing import length_grid
from asapmodel.models.distributions import TruncatedLognormal
from asapmodel.models.imbalance import expected_maximum
from asapmodel.scenario import Scenario
from asapmodel.verbs.blame import blame
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import evaluate
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = ["CAP", "CHUNK", "LOAD", "MEAN", "OTHERS", "SIGMAS", "Row", "law", "measure", "perfectly_balanced", "system"]

MEAN, CAP = 5000, 32768  # tokens, of the laws with a sigma
SIGMAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
OTHERS = ("the paper's", "azure2023_conv", "mooncake_conversation")
LOAD = 0.8  # of the SLO throughput
CHUNK = 8192

_WAITING = 12_000  # prompts of a backlog
_FULL = 0.8  # of its iterations: later on groups run dry
_SEEDS = 4  # runs whose waste is averaged
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")


@dataclass(frozen=True, slots=True)
class Row:
    """One system; rates in requests/s, shares of 1, `sigma` NaN where the law has none."""

    law: str
    sigma: float
    length_cv: float
    groups: int
    chunk: int
    balance: str
    slo_rps: float
    waste: float
    waste_of_runs: float
    waste_waiting: float
    barrier_share: float
    predicted_cv: float
    predicted_waste: float
    batch_cv: float
    perfect_rps: float

    @property
    def normal_waste(self) -> float:
        """What the closed form gives for the variation that the batches really have."""
        return _waste(self.batch_cv, self.groups)

    @property
    def loss(self) -> float:
        """Share of the SLO throughput of perfect balance that imbalance costs."""
        return 1.0 - self.slo_rps / self.perfect_rps


def law(name: float | str) -> dict[str, Any]:
    """Changes to `[workload]`: by sigma a log-normal law of mean `MEAN` on 1 to `CAP` tokens, or one of `OTHERS`."""
    if name == "the paper's":
        return {}
    if isinstance(name, str):
        return {"lengths": {"trace": name}}
    if name == 0:
        return {"lengths": {"constant": MEAN}}
    low = np.log(MEAN) - name**2 / 2  # without the cap; the cap takes away from the mean
    mu = brentq(lambda mu: TruncatedLognormal(mu, name, 1, CAP).mean - MEAN, low - 0.01, np.log(CAP))
    return {"lengths": {"family": "lognormal", "mu": float(mu), "sigma": name}, "min_prompt_tokens": 1}


def system(name: float | str, groups: int, chunk: int, balance: str = "tokens") -> Scenario:
    """`paper-default`, or `paper-chunked`, with so many groups of four devices.

    A device gets the memory that the experts of a small instance take, so that only the number of groups changes.
    """
    base = Scenario.load("paper-chunked" if chunk else "paper-default")
    changes = {"D": groups, "E": base.layout.T * groups, "balance": balance, "cluster.memory_bytes": "256 GB"}
    return base.replace(**changes, **law(name))


def perfectly_balanced(scenario: Scenario, ready: Prepared) -> Scenario:
    """The system whose groups all have the same tokens and work at any time: one group that is D times as fast.

    Raises
    ------
    ValueError
        If the system is not synchronous.
    """
    if scenario.layout.kind != "sync":
        raise ValueError(f"system is {scenario.layout.kind}: give a synchronous one, the others have no barriers")
    D, costs, policy = scenario.layout.D, ready.costing.costs, scenario.policy
    a = costs.attention
    changes: dict[str, Any] = {
        "D": 1,
        "E": scenario.layout.T,
        "max_batch_tokens": policy.max_batch_tokens * D,
        "chunk_tokens": policy.chunk_tokens * D,
        "costs.attention": {"fixed": a.fixed, "per_token": a.per_token / D, "per_token2": a.per_token2 / D},
        "costs.moe": {"floor": costs.moe.floor, "per_token": costs.moe.per_token},
        "costs.layers": costs.layers,
        "costs.host_dispatch": costs.host_dispatch,
    }
    for name in _TRANSFERS:
        one = getattr(costs, name)
        changes[f"costs.{name}"] = {"fixed": one.fixed, "per_token": one.per_token / D}
    return scenario.replace(**changes)


def measure(name: float | str, groups: int, chunk: int, balance: str = "tokens", runs: bool = False) -> Row:
    """All numbers of one system; `runs`: also the waste of runs of the graph engine at the load."""
    scenario = system(name, groups, chunk, balance)
    ready = prepare(scenario)
    slo_rps = capacity(scenario, prepared=ready).slo_throughput_rps
    rate = LOAD * slo_rps
    waiting = ready.traffic.backlog(_WAITING)
    account = blame_of(scenario.layout, scenario.policy, ready.costing.costs, waiting)
    tokens, batch_cv = _batches(ready)
    predicted = _predicted_cv(ready, tokens)
    lengths = length_grid(scenario)
    own = [blame(scenario.replace(seed=k), rate).straggler_waste for k in range(1, _SEEDS + 1)] if runs else [np.nan]
    return Row(
        law=name if isinstance(name, str) else (f"log-normal, sigma {name:g}" if name else "constant"),
        sigma=np.nan if isinstance(name, str) else name,
        length_cv=float(lengths.std() / lengths.mean()),
        groups=groups,
        chunk=chunk,
        balance=balance,
        slo_rps=slo_rps,
        waste=evaluate(scenario, rate, prepared=ready).barrier_waste,
        waste_of_runs=float(np.mean(own)),
        waste_waiting=account.straggler_waste,
        barrier_share=float(account.devices["barrier"].sum() / account.devices.to_numpy().sum()),
        predicted_cv=predicted,
        predicted_waste=_waste(predicted, groups),
        batch_cv=batch_cv,
        perfect_rps=capacity(perfectly_balanced(scenario, ready)).slo_throughput_rps,
    )


def _batches(ready: Prepared) -> tuple[float, float]:
    """Mean tokens of a group's batch under a backlog, and the variation of its attention."""
    costs, waiting = ready.costing.costs, ready.traffic.backlog(_WAITING)
    found = form_iterations(ready.scenario.layout, ready.scenario.policy, costs, waiting)
    full = slice(int(_FULL * len(found.n)))
    times = costs.attention(found.n[full], found.w[full])
    return float(found.n[full].mean()), float(times.std() / times.mean())


def _predicted_cv(ready: Prepared, tokens: float) -> float:
    """Variation of a group's attention by the closed forms: independent prompts, or (chunks) independent tokens."""
    a, lengths = ready.costing.costs.attention, length_grid(ready.scenario)
    mean, square = float(lengths.mean()), float((lengths**2).mean())
    values = {
        "a0": a.fixed,
        "a1": a.per_token,
        "a2": a.per_token2,
        "n": tokens,
        "k": tokens / mean,
        "mu": mean,
        "v": square / mean**2,
        "q": square / mean,
        "V_a": _variance(a.per_token * lengths + a.per_token2 * lengths**2),
        "V_n": 0.0,  # chunks are full
        "V_r": _variance(lengths**2 - square / mean * lengths),
    }
    form = batch_cv_tokens() if ready.scenario.policy.chunk_tokens else batch_cv_prompts()
    return float(form.numeric(**values))


def _variance(values: NDArray[np.float64]) -> float:
    return float(np.var(values)) if np.ptp(values) > 0 else 0.0


def _waste(cv: float, groups: int) -> float:
    """Share of the slowest group's time that a group waits, ``1 - 1 / (1 + c kappa_D)``."""
    slowest = slowest_group().numeric(A_m=1.0, c_B=cv, kappa_D=expected_maximum(groups))
    return 1.0 - 1.0 / float(slowest)
