"""The same question to the closed forms: at which variability both systems saturate alike.

Synchronous: `lockstep_rate`, ``D k / (A_m (1 + c_B kappa_D) + tau + M_s)`` prompts a layer time, c_B the variation of a
group's attention for chunks of independent tokens. Asynchronous: the saturation bound of the mean batch. Their ratio is
the gain of the closed forms, and the c_B at which it is 1 the break-even. No engine is involved.
"""

from dataclasses import dataclass

import numpy as np

from asapmodel.closed_forms.advice import of_scenario
from asapmodel.closed_forms.catalogue import BY_NAME
from asapmodel.costing import layer_costs, length_grid
from asapmodel.models.imbalance import expected_maximum
from asapmodel.scenario import Scenario
from asapmodel.studies.when_asynchronous_search import (
    CHUNKS,
    DEVICES,
    POLICIES,
    Changes,
    Pair,
    policy_changes,
)

__all__ = ["LawGain", "law_gain", "limits_ratio"]

_WIDTHS = (2, 4, 8)  # T of the synchronous systems


@dataclass(frozen=True, slots=True)
class LawGain:
    """What the closed forms say.

    Attributes
    ----------
    ratio : float
        Asynchronous over synchronous saturation, each with its best degrees.
    batch_cv, break_even_cv : float
        c_B of the best synchronous system, and the one at which it would saturate like the asynchronous one; negative:
        the asynchronous system is ahead without any variability.
    """

    ratio: float
    batch_cv: float
    break_even_cv: float


def law_gain(changes: Changes) -> LawGain:
    """Closed forms for one instance of 32 devices, chunks of any size against D4 T4 E16 with large batches.

    Parameters
    ----------
    changes : mapping
        To both scenarios, say a law of lengths.
    """
    asap = Scenario.load("paper-asap").replace(**policy_changes(*POLICIES[-1]), **changes)
    advice = of_scenario(layer_costs(asap).costs, asap.layout, asap.policy, length_grid(asap))
    rate = float(advice["saturation_rps"])
    base = Scenario.load("paper-chunked").replace(**changes)
    found = []
    for T in _WIDTHS:
        for chunk in CHUNKS:
            one = base.replace(D=DEVICES // T, T=T, E=DEVICES, chunk_tokens=chunk)
            found.append(_lockstep(one, rate))
    best, values = max(found, key=lambda pair: pair[0])
    return LawGain(rate / best, values["c_B"], float(BY_NAME["break_even_cv"].numeric(**values)))


def _lockstep(scenario: Scenario, rate: float) -> tuple[float, dict[str, float]]:
    """Saturation in requests/s, and the letters of `break_even_cv` against `rate`."""
    costs, D, n = layer_costs(scenario).costs, scenario.layout.D, float(scenario.policy.chunk_tokens)
    lengths = length_grid(scenario)
    mean = float(lengths.mean())
    q = float((lengths**2).sum() / lengths.sum())
    transfers = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    a = costs.attention
    letters = {"a0": a.fixed, "a1": a.per_token, "a2": a.per_token2, "n": n, "mu": mean, "q": q, "V_n": 0.0}
    letters["V_r"] = float(np.var(lengths**2 - q * lengths)) if np.ptp(lengths) > 0 else 0.0
    values = {
        "A_m": float(a(n, q * n)),
        "c_B": float(BY_NAME["batch_cv_tokens"].numeric(**letters)),
        "kappa_D": expected_maximum(D),
        "tau": sum(float(one(n)) for one in transfers),
        "M_s": float(costs.moe(D * n)),
        "D": float(D),
        "k": n / mean,
        "X_a": rate * costs.moe_layers,
    }
    needed = ("A_m", "c_B", "kappa_D", "tau", "M_s", "D", "k")
    prompts = float(BY_NAME["lockstep_rate"].numeric(**{x: values[x] for x in needed}))
    return prompts / costs.moe_layers, values


def limits_ratio(pair: Pair) -> float:
    """Ratio of the stability limits that the engine finds, asynchronous over synchronous, one instance each."""
    sync = max(one.limit_rps for one in pair.sync if one.instances == 1 and one.scenario.policy.chunk_tokens)
    return max(one.limit_rps for one in pair.asap if one.instances == 1) / sync
