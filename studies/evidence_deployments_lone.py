"""What lone requests and steps behind others say of the two measured deployments, from calibrated cells only."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.replay import replay_of
from asapmodel.calibration.request_log import RequestLog, lone_requests
from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments_data import ASYNC, CALIBRATED_RATES, SCENARIOS, SYNC, log_of
from asapmodel.studies.evidence_deployments_fit import back_to_back

__all__ = ["behind_another", "lone_bias", "lone_numbers", "lone_times", "padding_slope", "slope_left"]

Array = NDArray[np.float64]

_LOGS = {ASYNC: ((4, 0), (6, 0), (4, 3)), SYNC: ((4, 0), (6, 0), (4, 2), (4, 3))}
"""Rates calibrated on, and usable repeats of them."""


def lone_times(system: str) -> tuple[Array, Array]:
    """Tokens and TTFT (seconds) of the requests that had a system to themselves."""
    tokens, times = [], []
    for rate, repeat in _LOGS[system]:
        log = log_of(system, rate, repeat=repeat)
        alone = lone_requests(log)
        tokens.append(log.requests.prompt[alone].astype(np.float64))
        times.append(log.ttft[alone])
    return np.concatenate(tokens), np.concatenate(times)


def padding_slope() -> float:
    """Time a token that padding adds to a lone request, seconds: `D - 1` groups compute as many tokens for nothing."""
    scenario = Scenario.load(SCENARIOS[SYNC])
    costs = layer_costs(scenario).costs
    return (scenario.layout.D - 1) * costs.moe_layers * costs.moe.per_token


def slope_left() -> tuple[float, float]:
    """Slope of TTFT of lone synchronous requests less the shipped costs without padding, seconds a token; its error.

    Least squares of the difference by `1` and the tokens. The hardest slice of a lone prompt makes `(2 - 1/T) n^2`.
    """
    tokens, times = lone_times(SYNC)
    scenario = Scenario.load(SCENARIOS[SYNC])
    costs, pace = layer_costs(scenario).costs, 2.0 - 1.0 / scenario.layout.T
    left = times - np.array([costs.alone(n, pace * n**2) for n in tokens.tolist()])
    design = np.column_stack([np.ones(len(tokens)), tokens])
    found, rest, _, _ = np.linalg.lstsq(design, left, rcond=None)
    variance = rest[0] / (len(tokens) - 2) * np.linalg.inv(design.T @ design)
    return float(found[1]), float(np.sqrt(variance[1, 1]))


def _scatter(system: str) -> float:
    """Standard deviation of lone TTFT about a parabola, seconds."""
    tokens, times = lone_times(system)
    law = np.polynomial.Polynomial.fit(tokens, times, 2)
    return float(np.sqrt(np.sum((times - law(tokens)) ** 2) / (len(tokens) - 3)))


def lone_bias() -> float:
    """How much longer the shipped synchronous system takes for lone requests than measured, relative, in the mean."""
    scenario = Scenario.load(SCENARIOS[SYNC])
    costs, errors = layer_costs(scenario).costs, []
    for rate, repeat in _LOGS[SYNC]:
        one = replay_of(log_of(SYNC, rate, repeat=repeat), scenario.layout, scenario.policy)
        errors.append(np.log(one.alone(costs) / one.log.ttft[one.lone]))
    return float(np.expm1(np.mean(np.concatenate(errors))))


def behind_another(log: RequestLog, law: np.polynomial.Polynomial) -> float:
    """Median of what `back_to_back` reads off, over requests whose predecessor in turn is known, seconds.

    With `D` groups in turn request `k` waits for `k - D` if that is still there when it arrives and is answered before
    it. Requests that share their step with `k + D` are left out.
    """
    turn = Scenario.load(SCENARIOS[ASYNC]).layout.D
    arrival, end = log.requests.arrival, log.requests.arrival + log.ttft
    mine, before = np.arange(turn, len(log) - turn), np.arange(len(log) - 2 * turn)
    behind = (end[before] > arrival[mine] + 0.05) & (end[before] < end[mine] - 0.02)
    behind &= np.abs(end[mine + turn] - end[mine]) > 0.02
    shorter = law(log.requests.prompt[mine].astype(np.float64)) - (end[mine] - end[before])
    near = (shorter > -0.06) & (shorter < 0.12)  # the others waited for more than one step
    return float(np.median(shorter[behind & near]))


def _readings() -> tuple[list[float], float]:
    """`behind_another` of the measured runs, and of the model's replays of those calibrated on; seconds."""
    scenario = Scenario.load(SCENARIOS[ASYNC])
    costs = layer_costs(scenario).costs
    law = np.polynomial.Polynomial.fit(*lone_times(ASYNC), 2)
    measured = [behind_another(log_of(ASYNC, rate, repeat=repeat), law) for rate, repeat in _LOGS[ASYNC]]
    runs = [replay_of(log_of(ASYNC, rate), scenario.layout, scenario.policy) for rate in CALIBRATED_RATES]
    tokens = np.concatenate([one.log.requests.prompt[one.lone] for one in runs]).astype(np.float64)
    own = np.polynomial.Polynomial.fit(tokens, np.concatenate([one.alone(costs) for one in runs]), 2)
    return measured, float(np.mean([behind_another(replace(one.log, ttft=one.ttft(costs)), own) for one in runs]))


def lone_numbers() -> dict[str, str]:
    """Numbers of the page."""
    slope, error = slope_left()
    measured, modelled = _readings()
    costs = layer_costs(Scenario.load(SCENARIOS[ASYNC])).costs
    return {
        "latency": f"{1e3 * back_to_back():.0f}",
        "readings": ", ".join(f"{1e3 * x:.0f}" for x in measured[:-1]) + f" and {1e3 * measured[-1]:.0f}",
        "latency_model": f"{1e3 * modelled:.0f}",
        "latency_true": f"{1e3 * costs.request_latency:.0f}",
        "lone_bias": f"{lone_bias():+.0%}",
        "slope": f"{1e6 * slope:.2f}",
        "slope_error": f"{1e6 * error:.2f}",
        "slope_padding": f"{1e6 * padding_slope():.2f}",
        "lone_sync": str(len(lone_times(SYNC)[0])),
        "scatter_sync": f"{1e3 * _scatter(SYNC):.0f}",
        "scatter_async": f"{1e3 * _scatter(ASYNC):.0f}",
    }
