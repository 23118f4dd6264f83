"""Logs replayed by the graph engine, and cost coefficients by the names they have in `[costs]`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.request_log import RequestLog, lone_requests
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests, make_requests

__all__ = ["Replay", "coefficient", "replay_of", "with_coefficients"]

Array = NDArray[np.float64]

_COPIES = {"asap": 1, "sync": 8}  # replays to average over
_SHIFT = 0.01  # seconds by which their arrivals differ
_PHASES = 32  # of the empty iterations that a lone request may meet


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A log with the system that served it; `copies` are its requests with their arrivals slightly shifted."""

    log: RequestLog
    layout: Layout
    policy: Policy
    lone: NDArray[np.int64]
    copies: tuple[Requests, ...]

    def ttft(self, costs: LayerCosts) -> Array:
        """TTFT of every request of the replayed run, seconds; the mean over the copies."""
        ends = [run(self.layout, self.policy, costs, one).outcome.end - one.arrival for one in self.copies]
        out: Array = np.mean(ends, axis=0) + costs.request_latency
        return out

    def alone(self, costs: LayerCosts) -> Array:
        """TTFT of the lone requests, each in an idle system, seconds; the mean over the phases of empty iterations."""
        phases = np.zeros(1)
        if self.policy.idle_steps:
            empty = costs.step_overhead + costs.moe_layers * sum(costs.phases(0.0, 0.0)[1:])
            phases = (np.arange(_PHASES) + 0.5) / _PHASES * empty
        out: Array = np.mean([self._apart(costs, phase) for phase in phases], axis=0) + costs.request_latency
        return out

    def _apart(self, costs: LayerCosts, phase: float) -> Array:
        """Arrival to end of lone requests far apart, `phase` seconds later behind one at 0: all find an idle engine."""
        requests, rows = self.log.requests, np.append(self.lone[:1], self.lone)
        arrival = np.arange(len(rows), dtype=np.float64) * (2.0 * float(np.nanmax(self.log.ttft)) + 100.0)
        arrival[1:] += phase
        chosen = make_requests(arrival, requests.prompt[rows], requests.cached[rows])
        out: Array = run(self.layout, self.policy, costs, chosen).outcome.end - chosen.arrival
        return out[1:]


def replay_of(log: RequestLog, layout: Layout, policy: Policy) -> Replay:
    """A log with its system."""
    rng, requests = np.random.default_rng(0), log.requests
    shifts = [_SHIFT * rng.random(len(log)) * (_COPIES[layout.kind] > 1) for _ in range(_COPIES[layout.kind])]
    copies = tuple(requests._replace(arrival=np.sort(requests.arrival + shift)) for shift in shifts)
    return Replay(log, layout, policy, lone_requests(log), copies)


def coefficient(costs: LayerCosts, key: str) -> float:
    """The coefficient that a key of `[costs]` names.

    Raises
    ------
    ValueError
        If there is none; the message lists them.
    """
    name, _, part = key.partition(".")
    value: Any = getattr(costs, name, None)
    if part and is_dataclass(value):
        value = getattr(value, part, None)
    if not isinstance(value, float) or isinstance(value, bool):
        raise ValueError(f"'{key}' is no cost coefficient; give one of {', '.join(_names(costs))}")
    return value


def with_coefficients(costs: LayerCosts, values: Mapping[str, float]) -> LayerCosts:
    """Put coefficients in place.

    Examples
    --------
    >>> from asapmodel.costs import Affine, Plateau, Quadratic
    >>> free = Affine(0.0, 0.0)
    >>> costs = LayerCosts(Quadratic(1e-4, 1e-7, 0.0), free, free, Plateau(0.0, 0.0), free, free)
    >>> with_coefficients(costs, {"attention.per_token": 1e-6, "step_overhead": 0.01}).attention
    Quadratic(fixed=0.0001, per_token=1e-06, per_token2=0.0)
    """
    for key, value in values.items():
        name, _, part = key.partition(".")
        law = getattr(costs, name)
        changed: Any = {name: replace(law, **{part: value}) if part else value}
        costs = replace(costs, **changed)
    return costs


def _names(costs: LayerCosts) -> list[str]:
    out = []
    for one in fields(costs):
        value = getattr(costs, one.name)
        if is_dataclass(value):
            out += [f"{one.name}.{part.name}" for part in fields(value)]
        elif isinstance(value, float):
            out.append(one.name)
    return out
