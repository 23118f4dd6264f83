"""Are the elasticities of `explain` right? Against differences between runs of the graph engine.

Run as ``python -m asapmodel.studies.elasticities [--output DIR] [--cases N]``, some minutes; writes
`docs/elasticities.md`. On random systems all costs of a part (attention, experts, transfers) are multiplied and divided
by 1.1, with the same prompts and arrivals.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.graph import run
from asapmodel.engines.queueing import analyse
from asapmodel.sensitivity.elasticities import STEP, Elasticity, Point, elasticities, rate_elasticity
from asapmodel.sensitivity.knobs import knobs_of, scaled_costs
from asapmodel.sensitivity.local import Curve
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.studies.engines_cases import HELD_OUT_SEED, Case, draw
from asapmodel.studies.engines_runs import requests_of
from asapmodel.studies.pages import markdown_table
from asapmodel.systems.arrays import Requests

__all__ = ["PARTS", "Row", "main", "measure", "page"]

Floats = NDArray[np.float64]
Answer = Callable[[Floats, Floats], float]
"""Of the ends and arrivals of a run's requests."""

PARTS = {
    "attention": ("attention",),
    "experts": ("moe",),
    "transfers": ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv"),
}
"""Laws of the layer costs that make a part."""

_LOAD = 0.7  # at which TTFT is looked at
_WALKS = 4
_PIECES = 8  # independent runs behind a difference of TTFT
_REQUESTS = {"sync": (60_000, 20_000), "asap": (12_000, 4_000)}  # of a backlog, and of each piece
_WARM = 0.1  # share of a piece that is left out
_SYSTEMS = {"sync": "synchronous", "asap": "asynchronous"}


@dataclass(frozen=True, slots=True)
class Row:
    """Elasticities of one part of one case: by the queueing engine, by runs, and standard errors of the TTFT's."""

    system: str
    index: int
    part: str
    limit: float
    limit_truth: float
    ttft: float
    ttft_error: float
    ttft_truth: float
    truth_error: float


def measure(case: Case, sizes: tuple[int, int] | None = None, pieces: int = _PIECES) -> tuple[list[Row], float]:
    """Elasticities of a case, a row per part; and the sum of those of TTFT over all times, less the rate's."""
    problem = case.problem
    curve = Curve(analyse(problem), lambda law: law.mean)
    rate = _LOAD * curve.limit
    where = Point(curve.at(0.85), 0.85 * curve.limit, rate)
    found = elasticities(problem, curve, where, knobs_of(problem), range(_WALKS))
    backlog, count = sizes or _REQUESTS[case.system]
    rows = []
    for part, laws in PARTS.items():
        own = [one for one in found if one.name.split(".")[1] in laws]
        truth = [_ttft(case, laws, requests_of(case, rate, count, piece)) for piece in range(pieces)]
        waiting = requests_of(case, 1.0, backlog, 10_000)
        rows.append(
            Row(
                case.system,
                case.index,
                part,
                sum(one.limit for one in own),
                -_difference(case, laws, waiting._replace(arrival=np.zeros(backlog)), _busy_time),
                sum(one.ttft for one in own),
                math.sqrt(sum(one.ttft_error**2 for one in own)),
                float(np.mean(truth)),
                float(np.std(truth, ddof=1)) / math.sqrt(pieces),
            )
        )
    return rows, _sum(found) - rate_elasticity(curve, rate)


def _sum(found: Sequence[Elasticity]) -> float:
    return sum(one.ttft for one in found if one.name.startswith("costs.") or one.name == "policy.batch_window")


def _scaled(problem: Problem, laws: Sequence[str], factor: float) -> Problem:
    names = [f"{law}.{field}" for law in laws for field in getattr(problem.costs, law).__slots__]
    return replace(problem, costs=scaled_costs(problem.costs, dict.fromkeys(names, factor)))


def _difference(case: Case, laws: Sequence[str], requests: Requests, answer: Answer) -> float:
    """`d ln(answer) / d ln(costs)` between runs of the same requests."""
    values = []
    for factor in (1 / STEP, STEP):
        other = _scaled(case.problem, laws, factor)
        done = run(other.layout, other.policy, other.costs, requests)
        values.append(answer(done.outcome.end, requests.arrival))
    return math.log(values[1] / values[0]) / (2 * math.log(STEP))


def _busy_time(end: Floats, arrival: Floats) -> float:
    """Seconds between the 10th and the 90th percentile of the completions of a backlog."""
    ends = np.sort(end)
    return float(ends[int(0.9 * len(ends))] - ends[int(0.1 * len(ends))])


def _ttft(case: Case, laws: Sequence[str], requests: Requests) -> float:
    latency = case.problem.costs.request_latency

    def mean(end: Floats, arrival: Floats) -> float:
        return float((end - arrival)[int(_WARM * len(end)) :].mean()) + latency

    return _difference(case, laws, requests, mean)


def page(rows: Sequence[Row], sums: dict[str, list[float]]) -> str:
    """The text of `docs/elasticities.md`."""
    template = files("asapmodel.studies").joinpath("data/elasticities_page.md").read_text(encoding="utf-8")
    table = []
    for system, word in _SYSTEMS.items():
        for part in (*PARTS, "all parts"):
            some = [row for row in rows if row.system == system and part in (row.part, "all parts")]
            limit = np.abs([row.limit - row.limit_truth for row in some])
            ttft = np.array([row.ttft - row.ttft_truth for row in some])
            noise = np.array([math.hypot(row.ttft_error, row.truth_error) for row in some])
            table.append(
                [
                    word,
                    part,
                    str(len(some)),
                    f"{np.median([row.limit_truth for row in some]):+.2f}",
                    f"{np.median(limit):.3f} / {np.quantile(limit, 0.95):.3f}",
                    f"{np.median([row.ttft_truth for row in some]):+.2f}",
                    f"{np.median(np.abs(ttft)):.2f} / {np.quantile(np.abs(ttft), 0.95):.2f}",
                    f"{np.mean(ttft):+.3f}",
                    f"{np.median(noise):.2f}",
                    f"{np.mean(np.abs(ttft) <= 2 * noise):.0%}",
                ]
            )
    header = ["system", "part", "cases", "limit: runs, median", "error: median / p95", "TTFT: runs, median"]
    header += ["error: median / p95", "bias", "noise", "within 2 noise"]
    words = [
        f"{_SYSTEMS[system]} {np.mean(found):.3f} on average, {np.min(found):.2f} to {np.max(found):.2f}"
        for system, found in sums.items()
        if found
    ]
    return template.format(
        seed=HELD_OUT_SEED,
        cases=len({(row.system, row.index) for row in rows}),
        load=_LOAD,
        walks=_WALKS,
        pieces=_PIECES,
        table=markdown_table(header, table, range(2, len(header))),
        sums="; ".join(words),
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    parser.add_argument("--cases", type=int, default=40)
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    sums: dict[str, list[float]] = {system: [] for system in _SYSTEMS}
    for case in draw(HELD_OUT_SEED, given.cases):
        try:
            found, total = measure(case)
        except QueueError:  # beyond the engine
            continue
        rows += found
        sums[case.system].append(total)
        print(case.index, *(f"{row.part} {row.ttft:+.2f} {row.ttft_truth:+.2f}" for row in found), flush=True)
    text = page(rows, sums)
    (given.output / "elasticities.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
