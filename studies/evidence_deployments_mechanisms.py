"""What acted in the two measured deployments: rules tried on calibrated cells, steps waited, order of requests."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.request_log import lone_requests
from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments_ahead import AT_START
from asapmodel.studies.evidence_deployments_data import (
    ASYNC,
    BUDGETS,
    CALIBRATED_RATES,
    SCENARIOS,
    SYNC,
    cells,
    disturbed,
    log_of,
    replays,
    statistics,
)
from asapmodel.studies.evidence_deployments_steps import shared_evenly
from asapmodel.studies.pages import markdown_table, plain

__all__ = [
    "agreement",
    "constants",
    "hypotheses",
    "lone_count",
    "repeats",
    "split",
    "steps_waited",
    "waited",
]

Array = NDArray[np.float64]

_AHEAD: dict[str, Any] = {}
_PLAIN = {"schedule_ahead": False}
_RULES: dict[str, dict[str, Any]] = {
    "formed ahead; fewest requests, exact (shipped)": _AHEAD,
    "... without padding": {"pad_groups": False},
    "... without idle iterations": {"idle_steps": False},
    "... with neither": {"pad_groups": False, "idle_steps": False},
    "... attention shared evenly by the devices of a group": {"context_parallel": False},
    "formed ahead; fewest requests as of the last step": {"counts": "step"},
    "formed ahead; round robin": {"routing": "round_robin", "counts": "exact"},
    "formed at the start; fewest requests, exact": _PLAIN,
    "formed at the start; fewest requests as of the last step": {**_PLAIN, "counts": "step"},
    "formed at the start; round robin": {**_PLAIN, "routing": "round_robin"},
}
_APART = 0.12  # seconds between the answers of two steps


def constants() -> str:
    """The constants of both scenarios."""
    laws = {system: layer_costs(Scenario.load(name)).costs for system, name in SCENARIOS.items()}
    fitted = {
        ASYNC: ("attention.per_token", "attention.per_token2", "step_overhead", "request_latency"),
        SYNC: ("step_overhead",),
    }
    units = {"attention.per_token": (1e6, "us/token"), "attention.per_token2": (1e12, "ps/token^2")}
    units |= {"moe.per_token": (1e6, "us/token"), "dense.per_token": (1e6, "us/token")}
    names = ("attention.per_token", "attention.per_token2", "step_overhead", "request_latency", "host_dispatch")
    rows = []
    for name in (*names, "moe.floor", "moe.per_token", "dense.per_token"):
        scale, unit = units.get(name, (1e3, "ms"))
        row = [f"`{name}` ({unit})"]
        for system in (ASYNC, SYNC):
            first, _, part = name.partition(".")
            value = getattr(laws[system], first)
            value = getattr(value, part) if part else value
            kind = "fitted" if name in fitted[system] else "as left" if name in fitted[ASYNC] else "fixed"
            if system == SYNC and first == "attention":
                kind = "lone"
            row += [plain(value * scale), kind]
        rows.append(row)
    return markdown_table(["coefficient", "asynchronous", "", "synchronous", ""], rows, right=[1, 3])


def hypotheses() -> str:
    """Rules of the synchronous system on its calibrated cells, with the costs that are shipped."""
    known = {(x.budget, x.rate): x for x in cells() if x.system == SYNC and x.prefix == 0.0}
    rows, even = [], shared_evenly()
    for name, rule in _RULES.items():
        row = [name]
        for budget in BUDGETS:
            for rate in CALIBRATED_RATES:
                found = statistics(
                    replays(SYNC, budget, rate, None if rule.get("context_parallel", True) else even, **rule)
                )
                row.append(f"{found.mean_s / known[budget, rate].mean_s - 1.0:+.0%}")
        rows.append(row)
    heads = [f"{budget}, {rate}/s" for budget in BUDGETS for rate in CALIBRATED_RATES]
    return markdown_table(["batches, routing", *heads], rows, right=range(1, 5))


def waited(arrival: Array, ttft: Array) -> Array:
    """Steps that ended between a request's arrival and its answer, its own included: groups of answers in time."""
    end = np.sort(arrival + ttft)
    last = np.append(end[:-1][np.diff(end) > _APART], end[-1])
    steps = np.searchsorted(last, arrival + ttft) - np.searchsorted(last, arrival) + 1
    return steps.astype(np.float64)


def steps_waited() -> str:
    """Share of requests by the number of steps until their answer, budget 65536, 4 requests/s."""
    log = log_of(SYNC, 4)
    runs: Mapping[str, list[Array]] = {
        "measured": [log.ttft],
        "repeats": [log_of(SYNC, 4, repeat=k).ttft for k in (2, 3)],
        "model, formed ahead": replays(SYNC, 65536, 4),
        "model, formed at the start": replays(SYNC, 65536, 4, schedule_ahead=False),
    }
    rows = []
    for name, runs_of in runs.items():
        steps = np.concatenate([waited(log.requests.arrival, one) for one in runs_of])
        shares = [float(np.mean(steps == k)) for k in (1, 2, 3)] + [float(np.mean(steps >= 4))]
        rows.append([name, *(f"{share:.0%}" for share in shares), f"{steps.mean():.2f}"])
    return markdown_table(["steps until the answer", "1", "2", "3", "4 or more", "mean"], rows, right=range(1, 6))


def _rank_correlation(one: Array, other: Array) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def agreement() -> str:
    """Spearman correlation of per-request TTFT with the model, beside that of runs, and of replays, with each other."""
    rows = []
    for system, name in ((ASYNC, "asynchronous"), (SYNC, "synchronous")):
        for rate in (4, 6, 8, 10):
            ttft = log_of(system, rate).ttft
            model = [_rank_correlation(one, ttft) for one in replays(system, 65536, rate)]
            with_repeats = [
                _rank_correlation(log_of(system, rate, repeat=k).ttft, ttft) for k in _REPEATS.get((system, rate), ())
            ]
            repeat = f"{np.mean(with_repeats):.2f}" if with_repeats else ""
            replayed = [_mutual(disturbed(system, rate, seconds)) for seconds in _DISTURBANCES]
            rows.append([name, str(rate), f"{np.mean(model):.2f}", repeat, *(f"{x:.2f}" for x in replayed)])
    heads = [f"two replays, {1e3 * seconds:.0f} ms off" for seconds in _DISTURBANCES]
    return markdown_table(["system", "requests/s", "model", "repeat of the run", *heads], rows, right=range(1, 6))


def _mutual(runs: list[Array]) -> float:
    return float(np.mean([_rank_correlation(*pair) for pair in combinations(runs, 2)]))


_DISTURBANCES = (0.01, 0.03)  # seconds: far less and a little more than the overhead of a step


_REPEATS = {(ASYNC, 4): (3,), (ASYNC, 10): (3,), (SYNC, 4): (2, 3), (SYNC, 10): (2, 3)}


def repeats() -> str:
    """Mean TTFT of repeats against the run, lowest and highest."""
    shares = [
        log_of(system, rate, repeat=k).ttft.mean() / log_of(system, rate).ttft.mean() - 1.0
        for (system, rate), numbers in _REPEATS.items()
        for k in numbers
    ]
    return f"{min(shares):+.0%} to {max(shares):+.0%}"


def split() -> dict[str, str]:
    """Mean TTFT of the model as one system turns into the other: a table, and shares of the gain at budget 65536."""
    stages: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("synchronous, as measured", SYNC, {}),
        ("... batches formed at the start of a step", SYNC, _PLAIN),
        ("... and round robin", SYNC, {**_PLAIN, "routing": "round_robin"}),
        ("asynchronous, as measured", ASYNC, {}),
        ("... steps formed when they start", ASYNC, AT_START),
        ("... fewest requests", ASYNC, {"routing": "fewest_requests"}),
        ("... least work", ASYNC, {"routing": "least_work"}),
    )
    found = {
        name: [statistics(replays(system, budget, rate, **rule)).mean_s for budget in BUDGETS for rate in (4, 8)]
        for name, system, rule in stages
    }
    heads = [f"{budget}, {rate}/s" for budget in BUDGETS for rate in (4, 8)]
    rows = [[name, *(f"{x:.2f}" for x in values)] for name, values in found.items()]
    first, start, _, last, _, router, _ = (np.array(values[2:]) for values in found.values())
    ahead, routed = (first - start) / (first - last), (last - router) / (first - last)
    return {
        "split": markdown_table(["model, mean TTFT (s)", *heads], rows, right=range(1, 5)),
        "share_ahead": f"{ahead[0]:.0%} at 4 and {ahead[1]:.0%} at 8 requests/s",
        "share_barrier": f"{1 - ahead[0]:.0%} and {1 - ahead[1]:.0%}",
        "share_router": f"{routed[0]:.0%} and {routed[1]:.0%}",
    }


def lone_count() -> tuple[str, str]:
    """Requests of the asynchronous logs calibrated on that were alone, and all."""
    logs = [log_of(ASYNC, rate) for rate in CALIBRATED_RATES]
    return str(sum(len(lone_requests(one)) for one in logs)), f"{sum(len(one) for one in logs):,}"
