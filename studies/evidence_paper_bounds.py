"""Which of the paper's numbers cannot hold together, whatever the constants: bounds from below and above.

*Default at 4 requests/s.* Iterations are gated: who arrives during one waits for its end. The least an iteration can
last is what its slowest group would take with nobody else about, that is, contention, and the experts' work on other
groups' tokens, cost nothing. With the lone time scaled such that TTFT at 1 request/s is the stated one, TTFT at 4
requests/s in that system is a lower bound, for a shape of the lone law, a law of lengths and a window.

*ASAP at 20 requests/s.* Of a batch's six phases three occupy the group: with products at given shares of their peak, no
launches and no latencies, D groups pass at most ``D / (L E[attention + send + receive])`` prompts a second.
"""

from dataclasses import dataclass, replace

import numpy as np

from asapmodel.costing import Costing, layer_costs
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.studies.evidence_paper_assumptions import CHOSEN, SHIPPED
from asapmodel.studies.evidence_paper_systems import Systems
from asapmodel.workload import length_law

__all__ = ["Gated", "gated_bound", "most_of_attention"]

STATED_DEFAULT = 0.533  # s, mean TTFT at 1 request/s, section 5.2
_NOTHING = Affine(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Gated:
    """Lower bounds at 4 requests/s: mean TTFT in seconds, and the queueing share of prompts under 512 tokens."""

    sigma: float
    window: float
    ttft: float
    queue_share: float


class _Alone(Systems):
    """Default, each iteration as long as its slowest group alone would take, times `factor`."""

    factor = 1.0

    def costing(self, name: str) -> Costing:
        known = super().costing(name)
        return replace(known, costs=_alone(known.costs, self.factor))


def _alone(costs: LayerCosts, factor: float) -> LayerCosts:
    moves = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    a, experts = costs.attention, costs.moe
    lone = Quadratic(
        factor * (a.fixed + experts.floor + sum(one.fixed for one in moves)),
        factor * (a.per_token + experts.per_token + sum(one.per_token for one in moves)),
        factor * a.per_token2,
    )
    return replace(
        costs,
        attention=lone,
        moe=Plateau(0.0, 0.0),
        dispatch_send=_NOTHING,
        dispatch_recv=_NOTHING,
        combine_send=_NOTHING,
        combine_recv=_NOTHING,
    )


def gated_bound(values: dict[str, float], sigma: float, window: float) -> Gated:
    """The bound for lengths of a spread and a window of Default, the rest of the law as fitted."""
    from scipy.optimize import brentq

    def system(factor: float) -> _Alone:
        one = _Alone(values | {"sigma": sigma, "batch_window": window}, CHOSEN)
        one.factor = factor
        return one

    factor = float(brentq(lambda x: system(x).ttft("default", 1.0) - STATED_DEFAULT, 0.05, 4.0, xtol=1e-3))
    found = system(factor)
    parts = found.parts("default", 4.0, np.array([0.0, 512.0]))[:, 0]
    return Gated(sigma, window, found.ttft("default", 4.0), float(parts[0] / parts.sum()))


def most_of_attention(
    values: dict[str, float], sigma: float, shares: dict[str, float] | None = None
) -> tuple[float, float]:
    """Mean length below the cut, tokens, and the most prompts a second that ASAP's groups can pass, at full peak.

    Lengths are log-normal to 100k tokens with a mean of 5k.
    """
    systems = Systems(values | {"sigma": sigma}, replace(SHIPPED, lengths="one law"))
    given = shares or dict.fromkeys(("core", "indexer", "gemm", "link", "memory"), 1.0)
    scenario = systems.scenario("asap").replace(**{f"cluster.profile.{key}": value for key, value in given.items()})
    costs, law = layer_costs(scenario).costs, length_law(scenario.workload)
    first, second = law.moment(1), law.moment(2)
    per_token = costs.attention.per_token + costs.dispatch_send.per_token + costs.combine_recv.per_token
    prompt = per_token * first + costs.attention.per_token2 * second
    return first, scenario.layout.D / (costs.layers * prompt)
