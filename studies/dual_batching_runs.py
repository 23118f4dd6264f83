"""Runs of the study of dual batching: one batch a group at a time, locked pairs, rolling pairs.

Three steps from a formula to the system. *Form*: `dual_gain` for two equal batches that are the mean of those that a
backlog forms. *Pairs*: the exact cycle of every pair that a backlog forms, one after another, on a group that has the
MoE devices to itself; exclusive prompts go alone, and gain nothing. Both count what a layer takes::

    gain = (sum S + X) / (sum P + X),   S of a batch, P of a pair, X = sum S of exclusive prompts

*Limits*: the rates at which the system serves a backlog, by the queueing engine, for one group and for more, all with
the costs of the paper's layout, so that only the load of the MoE devices changes.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from asapmodel.circuits.batches import form_batches
from asapmodel.circuits.group import group_cycle
from asapmodel.closed_forms.interleaving import dual_gain, halving_gain
from asapmodel.costing import layer_costs, length_grid
from asapmodel.costs import LayerCosts
from asapmodel.scenario import Scenario
from asapmodel.studies.dp_imbalance_runs import law
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = ["MODES", "Curve", "Mode", "Row", "curve", "gain_of_prompts", "measure", "system"]

Mode = Literal["single", "locked", "rolling"]
MODES: tuple[Mode, ...] = ("single", "locked", "rolling")

_WAITING = 1000  # prompts whose pairs are followed
_LETTERS = ("A", "t1", "t2", "M", "t4", "t5")
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_LIGHT = 1.0  # requests/s: the paper's low load


@dataclass(frozen=True, slots=True)
class Row:
    """One length law, batch size, exclusive threshold and number of groups; by mode requests/s and s."""

    law: str
    min_batch_tokens: int
    exclusive_tokens: int
    groups: int
    slo_rps: dict[Mode, float]
    limit_rps: dict[Mode, float]
    light_ttft_s: dict[Mode, float]
    moe_load: float
    form: float
    pairs: float
    exclusive_share: float

    def gain(self, mode: Mode) -> float:
        """SLO throughput over that of one batch at a time, less 1."""
        return self.slo_rps[mode] / self.slo_rps["single"] - 1.0

    def limit_gain(self, mode: Mode) -> float:
        """The same of the stability limits."""
        return self.limit_rps[mode] / self.limit_rps["single"] - 1.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Gains of two equal batches, less 1: closed form, exact cycle, and over one batch of twice the tokens."""

    tokens: int
    form: float
    exact: float
    halving: float


def system(
    name: float | str, tokens: int = 2048, exclusive: int = 16384, groups: int = 4, mode: Mode = "locked"
) -> Scenario:
    """`paper-asap` with these prompts and switches; more or fewer groups than four have the costs of four."""
    changes: dict[str, Any] = {
        "min_batch_tokens": tokens,
        "exclusive_tokens": exclusive,
        "dual_batch": mode != "single",
    }
    changes["pairing"] = "rolling" if mode == "rolling" else "locked"
    scenario = Scenario.load("paper-asap").replace(**changes, **law(name))
    if groups == scenario.layout.D:
        return scenario
    return scenario.replace(D=groups, **_given(layer_costs(scenario).costs))


def _given(costs: LayerCosts) -> dict[str, Any]:
    a = costs.attention
    changes: dict[str, Any] = {
        "costs.attention": {"fixed": a.fixed, "per_token": a.per_token, "per_token2": a.per_token2},
        "costs.moe": {"floor": costs.moe.floor, "per_token": costs.moe.per_token},
        "costs.layers": costs.layers,
        "costs.host_dispatch": costs.host_dispatch,
    }
    for name in _TRANSFERS:
        one = getattr(costs, name)
        changes[f"costs.{name}"] = {"fixed": one.fixed, "per_token": one.per_token}
    return changes


def measure(name: float | str, tokens: int = 2048, exclusive: int = 16384, groups: int = 4) -> Row:
    """All numbers of one system in its three modes."""
    slo, limit, light = {}, {}, {}
    moe_load = float("nan")
    for mode in MODES:
        ready = prepare(system(name, tokens, exclusive, groups, mode))
        found = capacity(ready.scenario, prepared=ready)
        slo[mode], limit[mode] = found.slo_throughput_rps, found.stability_limit_rps
        point = ready.point(_LIGHT, None)
        light[mode] = point.ttft.mean if point else float("nan")
        if mode == "single":
            busy = ready.point(0.98 * limit[mode], None)
            moe_load = busy.utilisation["moe"] if busy else float("nan")
    form, pairs, share = _of_batches(name, tokens, exclusive)
    word = name if isinstance(name, str) else (f"log-normal, sigma {name:g}" if name else "constant")
    return Row(word, tokens, exclusive, groups, slo, limit, light, moe_load, form, pairs, share)


@cache
def _of_batches(name: float | str, tokens: int, exclusive: int) -> tuple[float, float, float]:
    """Gain by the closed form, by exact pairs, and the share of exclusive prompts in the time of lone batches."""
    ready = prepare(system(name, tokens, exclusive))
    costs = ready.costing.costs
    batches = form_batches(ready.scenario.layout, ready.scenario.policy, ready.traffic.backlog(_WAITING))
    phases = np.array(costs.phases(batches.n, batches.w)).T
    alone = float(phases[batches.exclusive].sum())
    both = phases[~batches.exclusive]
    both = both[: len(both) // 2 * 2]
    if not len(both):
        return 0.0, 0.0, 1.0
    single = float(both.sum())
    paired = sum(group_cycle(pair).layer_s for pair in both.reshape(-1, 2, len(_LETTERS)))
    equal = float(dual_gain().numeric(**dict(zip(_LETTERS, both.mean(axis=0), strict=True))))
    total = single + alone
    return total / (single / equal + alone) - 1, total / (paired + alone) - 1, alone / total


def curve(tokens: int) -> Curve:
    """Gains of equal batches of the paper's prompts; work of a batch in proportion to its tokens, or of one prompt."""
    scenario = system("the paper's")
    costs, lengths = layer_costs(scenario).costs, length_grid(scenario)
    per_token = min(float((lengths**2).sum() / lengths.sum()), float(tokens))
    phases = costs.phases(float(tokens), per_token * tokens)
    named = dict(zip(_LETTERS, phases, strict=True))
    a, send, receive = costs.attention, costs.dispatch_send, costs.dispatch_recv
    back, end = costs.combine_send, costs.combine_recv
    lines = {
        "g0": a.fixed + send.fixed + end.fixed,
        "g1": a.per_token + a.per_token2 * per_token + send.per_token + end.per_token,
        "o0": receive.fixed + back.fixed,
        "o1": receive.per_token + back.per_token,
        "m0": costs.moe.floor,
        "m1": costs.moe.per_token,
        "h": 0.0,
        "n": float(tokens),
    }
    exact = 2 * sum(phases) / group_cycle([phases, phases]).layer_s
    form, halving = dual_gain().numeric(**named), halving_gain().numeric(**lines)
    return Curve(tokens, float(form) - 1, exact - 1, float(halving) - 1)


def gain_of_prompts(tokens: int) -> float:
    """Gain of a pair of two single prompts of so many tokens, less 1: `dual_gain` with ``w = n^2``."""
    phases = layer_costs(system("the paper's")).costs.phases(float(tokens), float(tokens) ** 2)
    return float(dual_gain().numeric(**dict(zip(_LETTERS, phases, strict=True)))) - 1
