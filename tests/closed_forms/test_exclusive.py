"""From which length a prompt should be alone: against the bound it is derived from, and against the engine."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq

from asapmodel.closed_forms.exclusive import delay_group, delay_lone, expert_share, saving_group, saving_lone
from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.pair import pair_bound
from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import run
from asapmodel.policy import Policy
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import make_requests
from tests.closed_forms.cycles import ONE_GROUP, named

PARTNERS = (1024, 2048, 4096, 8192)


@cache
def paper() -> LayerCosts:
    return layer_costs(Scenario.load("paper-asap")).costs


def values(partner: int, epsilon: float = 0.05) -> dict[str, float]:
    c = paper()
    A, t1, t2, M, t4, t5 = c.phases(float(partner), float(partner) ** 2)
    a, s, r, b, e = c.attention, c.dispatch_send, c.dispatch_recv, c.combine_send, c.combine_recv
    return {
        "a0": a.fixed,
        "a1": a.per_token,
        "a2": a.per_token2,
        "g0": a.fixed + s.fixed + e.fixed,
        "g1": a.per_token + s.per_token + e.per_token,
        "o0": r.fixed + b.fixed,
        "o1": r.per_token + b.per_token,
        "m0": c.moe.floor,
        "m1": c.moe.per_token,
        "h": 0.0,
        "G_b": A + t1 + t5,
        "O_b": t2 + M + t4,
        "epsilon": epsilon,
    }


def threshold(x: dict[str, float], *forms: ClosedForm) -> float:
    return min(float(form.numeric(**x)) for form in forms)


def cycles(partner: int, s: float) -> tuple[float, float, float]:
    """Lone cycles of the long prompt and its partner, and the bound of the pair."""
    long, short = (np.array(paper().phases(float(n), float(n) ** 2)) for n in (s, partner))
    return long.sum(), short.sum(), float(pair_bound(True, False).numeric(**named(long), **named(short, "_b")))


CRITERIA: dict[str, tuple[tuple[ClosedForm, ...], Callable[[float, float, float], float]]] = {
    "partner first": (
        (delay_group("partner_first"), delay_lone("partner_first")),
        lambda long, short, pair: pair - short - long / 2,
    ),
    "either first": (
        (delay_group("either_first"), delay_lone("either_first")),
        lambda long, short, pair: pair - 0.75 * (long + short),
    ),
    "saving": ((saving_group(), saving_lone()), lambda long, short, pair: 0.05 - (long + short) / pair + 1),
}


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("partner", PARTNERS)
def test_threshold_is_where_the_bound_crosses(name: str, partner: int) -> None:
    """Root finding on the bound itself, all its branches, against the roots of the quadratics."""
    forms, criterion = CRITERIA[name]
    found = brentq(lambda s: criterion(*cycles(partner, s)), float(partner), 1e6, xtol=1e-7, rtol=1e-13)
    assert threshold(values(partner), *forms) == pytest.approx(found, rel=1e-9)


def ends(partner: int, s: int, alone: bool, long_first: bool = False, layers: int = 61) -> tuple[float, float]:
    """Mean and last end of the two prompts that arrive together, on the engine."""
    policy = Policy(
        min_batch_tokens=10**6, max_batch_tokens=1, exclusive_tokens=s - 1 if alone else 10**9, batch_window=1e-9
    )
    prompts = np.array([s, partner] if long_first else [partner, s])
    end = run(ONE_GROUP, policy, replace(paper(), layers=layers), make_requests(np.zeros(2), prompts)).outcome.end
    return float(end.mean()), float(end.max())


def crossing(pays: Callable[[int], bool], low: int, high: int = 120_000) -> int:
    """Smallest length at which being alone pays, by bisection."""
    assert not pays(low)
    assert pays(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def bracket(partner: int, name: str, weight: float) -> tuple[float, float]:
    """Thresholds with the cycle at most, `S_l` plus the partner's longer transfer, and at least, `S_l`."""
    x = values(partner)
    _, t1, *_, t5 = paper().phases(float(partner), float(partner) ** 2)
    group, lone = CRITERIA[name][0]
    slower = {**x, "O_b": x["O_b"] - max(t1, t5) / weight}
    return min(threshold(slower, lone), threshold(x, group)), threshold(x, group, lone)


@pytest.mark.parametrize("partner", PARTNERS)
def test_mean_ttft_on_the_engine(partner: int) -> None:
    """61 layers, exclusive above or below the length; 1 % for beginning and end of the chains."""
    low, high = bracket(partner, "partner first", 1.0)
    measured = crossing(lambda s: ends(partner, s, True)[0] < ends(partner, s, False)[0], partner)
    assert 0.99 * low < measured < 1.01 * high
    assert measured > 0.94 * high


@pytest.mark.parametrize("layers", [61, 600])
@pytest.mark.parametrize("partner", PARTNERS)
def test_either_first_on_the_engine(partner: int, layers: int) -> None:
    """In 61 layers beginning and end of the chains move the flat crossing by up to 4 %, in 600 by less than 1 %."""

    def alone_pays(s: int) -> bool:
        alone = ends(partner, s, True, False, layers)[0] + ends(partner, s, True, True, layers)[0]
        return alone < ends(partner, s, False, False, layers)[0] + ends(partner, s, False, True, layers)[0]

    low, high = bracket(partner, "either first", 0.75)
    measured = crossing(alone_pays, partner)
    ends_of_chains = 0.04 if layers == 61 else 0.01
    assert (1 - ends_of_chains) * low < measured < 1.01 * high
    assert measured > 0.92 * high


@pytest.mark.parametrize("partner", PARTNERS[:3])
def test_saving_on_the_engine(partner: int) -> None:
    predicted = threshold(values(partner), *CRITERIA["saving"][0])
    measured = crossing(lambda s: ends(partner, s, True)[1] < 1.05 * ends(partner, s, False)[1], 8000)
    assert predicted == pytest.approx(measured, rel=0.05)


def test_the_papers_threshold() -> None:
    """16384 lies between: the mean asks for 4,300 tokens with a partner of 2,048, throughput for 27,600."""
    x = values(2048)
    assert threshold(x, *CRITERIA["partner first"][0]) == pytest.approx(4301, abs=1)
    assert threshold(x, *CRITERIA["either first"][0]) == pytest.approx(6605, abs=1)
    assert threshold(x, *CRITERIA["saving"][0]) == pytest.approx(27557, abs=1)
    shares = [paper().moe(s) / paper().attention(s, s**2) for s in (16384.0, 29885.0)]
    assert shares == pytest.approx([0.221, 0.15], abs=0.001)
    assert float(expert_share().numeric(**x, theta=0.15)) == pytest.approx(29885, abs=1)
