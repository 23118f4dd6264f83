"""What are communication streams worth, on the MoE and on the attention devices? Writes `docs/studies/overlap.md`.

Run as ``python -m asapmodel.studies.overlap [--output DIR]``, about a minute.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from asapmodel.circuits.batches import Batches, form_batches
from asapmodel.circuits.bounds import regime_of, throughput_bounds
from asapmodel.circuits.group import group_cycle
from asapmodel.costing import layer_costs
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.errors import NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap_figure import overlap_figure
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import SEEDS, Ratio, fill, output_folder, ratio_of, slo_rates, write_page
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import Prepared, evaluate, prepare

__all__ = ["FACTORS", "STREAMS", "Row", "backlog", "main", "measure", "page", "paid_back", "scaled"]

FACTORS = (0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66, 8.0)
"""Multiples of the scenario's transfer times."""

STREAMS = {
    "neither": (False, False),
    "attention only": (False, True),
    "MoE only (the paper's)": (True, False),
    "both": (True, True),
}
"""Who has communication streams: `overlap_moe`, `overlap_attention`."""

_NEITHER, _ATTENTION, _PAPER, _BOTH = STREAMS
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_RATES = (1.0, 4.0)
_SHOWN = (0.5, 1.0, 2.0, 4.0, 8.0)
_PAPER_GAIN = 20.0 / 17.8  # section 5.5.2


@dataclass(frozen=True, slots=True)
class Row:
    """One system: requests/s, mean TTFT in s at 1 and 4 requests/s (NaN: beyond its limit), and what binds it.

    `bound_rps` is the smallest upper bound of the stability limit and `constraint` what it is of; `circuit` is the
    critical circuit of two mean batches in one group that has the pool for itself, `layer_s` its seconds a layer.
    """

    factor: float
    streams: str
    slo_rps: float
    limit_rps: float
    bound_rps: float
    constraint: str
    circuit: str
    layer_s: float
    ttft_s: tuple[float, ...]


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with latency and per-token time of all four transfers multiplied."""
    costs = layer_costs(scenario).costs
    changes: dict[str, Any] = {}
    for name in _TRANSFERS:
        one = getattr(costs, name)
        changes[f"costs.{name}"] = {"fixed": factor * one.fixed, "per_token": factor * one.per_token}
    return scenario.replace(**changes)


def backlog(ready: Prepared) -> Batches:
    """Batches that the scheduler forms from a backlog of the scenario's lengths, each equally often."""
    prompts = ready.problem.prompts
    order = even_deck(len(prompts.prompt), 2)
    waiting = make_requests(np.zeros(len(order)), prompts.prompt[order], prompts.cached[order])
    return form_batches(ready.scenario.layout, ready.scenario.policy, waiting)


def measure(scenario: Scenario, factor: float, streams: str) -> Row:
    """Solve one system with the queueing engine and bound it."""
    moe, attention = STREAMS[streams]
    variant = scaled(scenario, factor).replace(overlap_moe=moe, overlap_attention=attention)
    ready = prepare(variant)
    costs, batches = ready.costing.costs, backlog(ready)
    bounds = throughput_bounds(variant.layout, variant.policy, costs, batches)
    mean = costs.phases(float(batches.n.mean()), float(batches.w.mean()))
    cycle = group_cycle([mean, mean], attention, moe)
    found = capacity(variant, prepared=ready)
    return Row(
        factor=factor,
        streams=streams,
        slo_rps=found.slo_throughput_rps,
        limit_rps=found.stability_limit_rps,
        bound_rps=bounds.prompt_rates[1],
        constraint=regime_of(bounds).constraint,
        circuit=cycle.name,
        layer_s=cycle.layer_s,
        ttft_s=tuple(_ttft(ready, rate) for rate in _RATES),
    )


def _ttft(ready: Prepared, rate: float) -> float:
    try:
        return evaluate(ready.scenario, rate, prepared=ready).ttft.mean_s
    except NoAnswer:
        return float("nan")


def paid_back(scenario: Scenario, factor: float) -> float:
    """Relative slow-down of attention at which streams on the attention devices bring nothing.

    Section 4.3 reports that transfers beside the computation lengthen attention, without a number.
    """
    base = scaled(scenario, factor).replace(overlap_moe=True)
    law = layer_costs(base).costs.attention
    wanted = capacity(base.replace(overlap_attention=False)).slo_throughput_rps

    def difference(slower: float) -> float:
        attention = {name: (1 + slower) * getattr(law, name) for name in ("fixed", "per_token", "per_token2")}
        variant = base.replace(overlap_attention=True, **{"costs.attention": attention})
        return capacity(variant).slo_throughput_rps - wanted

    if difference(0.0) <= 0:
        return 0.0
    return float(brentq(difference, 0.0, 1.0, xtol=5e-4))


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    scenario = Scenario.load("paper-asap")
    rows = [measure(scenario, factor, streams) for factor in FACTORS for streams in STREAMS]
    slower = {factor: paid_back(scenario, factor) for factor in _SHOWN}
    runs = {
        name: slo_rates(scenario.replace(overlap_moe=moe, overlap_attention=attention))
        for name, (moe, attention) in STREAMS.items()
    }
    confirmed = {
        "MoE streams": ratio_of(runs[_PAPER], runs[_NEITHER]),
        "attention streams, beside MoE streams": ratio_of(runs[_BOTH], runs[_PAPER]),
        "attention streams alone": ratio_of(runs[_ATTENTION], runs[_NEITHER]),
    }
    save_figure(overlap_figure(rows), folder / "figures" / "study-overlap.svg")
    write_page(
        "overlap", page(rows, slower, confirmed, {name: float(one.mean()) for name, one in runs.items()}), folder
    )


def page(rows: Sequence[Row], slower: dict[float, float], confirmed: dict[str, Ratio], truth: dict[str, float]) -> str:
    """The text of the page."""
    at = {(row.factor, row.streams): row for row in rows}
    moe = {x: at[x, _PAPER].slo_rps / at[x, _NEITHER].slo_rps - 1 for x in _SHOWN}
    attention = {x: at[x, _BOTH].slo_rps / at[x, _PAPER].slo_rps - 1 for x in _SHOWN}
    low = [at[1.0, _PAPER].ttft_s[k] / at[1.0, _NEITHER].ttft_s[k] - 1 for k in range(len(_RATES))]
    alone = max(at[x, _ATTENTION].slo_rps / at[x, _NEITHER].slo_rps - 1 for x in _SHOWN)
    reached = [row.limit_rps / row.bound_rps for row in rows]
    return fill(
        "overlap",
        table=_table([row for row in rows if row.factor in _SHOWN]),
        gains=_gains(moe, attention, slower),
        runs=_runs(confirmed, truth),
        paper=f"{_PAPER_GAIN - 1:.1%}",
        moe=f"{moe[1.0]:.1%}",
        moe_runs=str(confirmed["MoE streams"]),
        moe_range=f"{min(moe.values()):.0%} to {max(moe.values()):.0%}",
        attention=f"{attention[1.0]:.1%}",
        attention_range=f"{min(attention.values()):.1%} to {max(attention.values()):.1%}",
        attention_runs=str(confirmed["attention streams, beside MoE streams"]),
        alone=f"{alone:.1%}",
        slower=f"{slower[1.0]:.1%}",
        one=f"{low[0]:+.1%}",
        four=f"{low[1]:+.1%}",
        neither=at[1.0, _NEITHER].constraint,
        with_moe=at[1.0, _PAPER].constraint,
        room=f"{at[1.0, _BOTH].bound_rps / at[1.0, _PAPER].bound_rps - 1:.1%}",
        reached=f"{min(reached):.0%} to {max(reached):.0%}",
    )


def _table(rows: Sequence[Row]) -> str:
    lines = [
        [
            f"{row.factor:g}",
            row.streams,
            plain(row.slo_rps),
            *(plain(time) if time == time else "beyond its limit" for time in row.ttft_s),
            plain(row.limit_rps),
            plain(row.bound_rps),
            row.constraint,
            f"{1e3 * row.layer_s:.2f}",
            row.circuit,
        ]
        for row in rows
    ]
    header = ["transfers x", "streams", "SLO req/s", *(f"TTFT at {rate:g}/s, s" for rate in _RATES)]
    header += ["limit req/s", "bound req/s", "bound is of", "pair, ms a layer", "its critical circuit"]
    return markdown_table(header, lines, (0, 2, 3, 4, 5, 6, 8))


def _gains(moe: dict[float, float], attention: dict[float, float], slower: dict[float, float]) -> str:
    lines = [[f"{x:g}", f"{moe[x]:+.1%}", f"{attention[x]:+.1%}", f"{slower[x]:.1%}"] for x in moe]
    header = ["transfers x", "MoE streams", "attention streams beside them", "paid back by attention slower by"]
    return markdown_table(header, lines, range(4))


def _runs(confirmed: dict[str, Ratio], truth: dict[str, float]) -> str:
    lines = [[name, str(one)] for name, one in confirmed.items()]
    means = ", ".join(f"{name} {value:.2f}" for name, value in truth.items())
    table = markdown_table(["gain in SLO throughput", "graph engine"], lines)
    return f"{table}\n\nMeans of the {len(SEEDS)} runs, requests/s: {means}."


if __name__ == "__main__":
    main()
