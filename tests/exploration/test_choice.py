"""Whether a choice survives: shares by what they must be, and a flip of two layouts at a known place."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.stats import norm

import asapmodel as am
from asapmodel.errors import InputError
from asapmodel.exploration.choice import best_shares, close_shares, front_shares
from asapmodel.exploration.drawn_choice import MOST
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space
from asapmodel.solvers.pareto import pareto_front
from tests.uncertainty.systems import SYNC

COSTS = st.sampled_from([-2.0, -1.0, 0.5, 0.505, 1.0, 3.0, np.inf, np.nan])
TABLES = st.integers(1, 5).flatmap(lambda n: arrays(np.float64, (n, 7), elements=COSTS))


@settings(max_examples=200, deadline=None)
@given(costs=TABLES)
def test_shares_are_of_draws(costs: np.ndarray) -> None:
    """By a loop over the draws in which anything has an answer."""
    best, close, count = np.zeros(len(costs)), np.zeros(len(costs)), 0
    for column in costs.T:
        known = [k for k in range(len(costs)) if np.isfinite(column[k])]
        if not known:
            continue
        count += 1
        least = min(column[k] for k in known)
        first = [k for k in known if column[k] == least]
        best[first] += 1 / len(first)
        close[[k for k in known if column[k] <= least + 0.02 * abs(least)]] += 1
    if count == 0:
        assert np.isnan(best_shares(costs)).all()
        return
    assert best_shares(costs) == pytest.approx(best / count)
    assert close_shares(costs) == pytest.approx(close / count)
    assert best_shares(costs).sum() == pytest.approx(1.0)


@settings(max_examples=100, deadline=None)
@given(costs=arrays(np.float64, (4, 6, 2), elements=COSTS))
def test_shares_of_the_front(costs: np.ndarray) -> None:
    found, count = np.zeros(4), 0
    for draw in range(6):
        known = [k for k in range(4) if np.isfinite(costs[k, draw]).all()]
        if known:
            count += 1
            found[np.array(known)[pareto_front(costs[known, draw])]] += 1
    if count:
        assert front_shares(costs) == pytest.approx(found / count)


OF_EXPERTS = SYNC.replace("per_token = 1e-7", "per_token = 1e-8")
OF_ATTENTION = SYNC.replace("per_token = 2e-7", "per_token = 2e-8").replace("per_token = 1e-7", "per_token = 3.5e-7")
UNSURE = '[uncertainty]\ncosts.moe = "15 %"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems that share an uncertain constant, which is nearly all of the first and little of the second."""
    there = tmp_path_factory.mktemp("flip")
    (there / "experts.toml").write_text(OF_EXPERTS + UNSURE)
    (there / "attention.toml").write_text(OF_ATTENTION + UNSURE)
    text = 'scenario = ["experts.toml", "attention.toml"]\n[vary]\nsystem.D = [2]\n[confirm]\ntop = 0\n'
    (there / "space.toml").write_text(text)
    return there


@pytest.fixture(scope="module")
def found(folder: Path) -> Exploration:
    return am.explore(folder / "space.toml", uncertainty=True, workers=1)


def throughput(folder: Path, name: str, factor: float) -> float:
    scenario = am.Scenario.load(folder / f"{name}.toml")
    moe = {"floor": 0.0, "per_token": factor * {"experts": 2e-7, "attention": 2e-8}[name]}
    return am.capacity(scenario.replace(**{"costs.moe": moe, "uncertainty": {}})).slo_throughput_rps


def test_the_order_flips_where_it_must(folder: Path, found: Exploration) -> None:
    """One factor f ~ N(1, 0.15) on both: the share is that of f on the near side of where the two are equal."""

    def apart(factor: float) -> float:
        return throughput(folder, "experts", factor) - throughput(folder, "attention", factor)

    flip = float(brentq(apart, 0.8, 1.3, xtol=1e-3))
    wanted = float(norm(1.0, 0.15).cdf(flip))
    assert 0.1 < wanted < 0.9
    choice = found.uncertainty
    assert choice is not None
    assert choice.constants == ("costs.moe",)
    names = dict(zip(found.table["point"], found.table["scenario"], strict=True))
    shares = {names[one.point]: one.standings[0].best for one in choice.contenders}
    assert shares["experts"] == pytest.approx(wanted, abs=0.02)
    assert shares["experts"] + shares["attention"] == pytest.approx(1.0)


def test_the_lead_agrees_with_the_contenders(found: Exploration) -> None:
    choice = found.uncertainty
    assert choice is not None
    first, second = choice.contenders
    lead = choice.lead
    assert lead is not None
    assert (lead.point, lead.rival) == (first.point, second.point)
    assert lead.better == first.standings[0].best
    assert lead.ratio.value == pytest.approx(first.standings[0].interval.value / second.standings[0].interval.value)
    assert lead.measure is not None
    assert lead.measure.name == "expert kernels"
    assert lead.ratio.low < lead.measure.low < lead.measure.high < lead.ratio.high
    assert first.standings[0].interval.value == found.best["slo_throughput_per_device_rps"].iloc[0]


def test_without_errors_everything_is_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SYNC + '[uncertainty]\ncosts.moe = "0.0000001 %"\n')
    (tmp_path / "space.toml").write_text('scenario = "a.toml"\n[vary]\nD = [1, 2]\n[confirm]\ntop = 0\n')
    choice = am.explore(tmp_path / "space.toml", uncertainty=True, samples=16, workers=1).uncertainty
    assert choice is not None
    for one in choice.contenders:
        interval = one.standings[0].interval
        assert interval.low == pytest.approx(interval.value, rel=2e-3)  # the short walks' own, taken off in part
        assert interval.width <= 1e-6 * interval.value
    assert [one.standings[0].best for one in choice.contenders] == [1.0, 0.0]


def test_a_bounded_number_of_points_with_every_layout_first() -> None:
    text = 'scenario = "paper-chunked"\n[vary]\nD = [4, 6, 8]\nchunk_tokens = [4096, 6144, 8192, 12288]\n'
    space = Space.parse(text + "[confirm]\ntop = 0\n")
    found = am.explore(space, uncertainty=True, samples=16, workers=1)
    choice = found.uncertainty
    assert choice is not None
    drawn = found.table.set_index("point").loc[[one.point for one in choice.contenders]]
    assert len(drawn) == MOST
    assert set(drawn["D"]) == {4, 6, 8}
    assert found.table["best_share"].notna().sum() == MOST
    assert found.table["best_share"].sum() == pytest.approx(1.0)


def test_refusals(tmp_path: Path) -> None:
    plain = 'scenario = "paper-chunked"\n[vary]\nD = [8]\n'
    with pytest.raises(InputError, match="has only 'devices', which is exact; add one that constants move"):
        am.explore(Space.parse('objectives = ["devices"]\n' + plain), uncertainty=True)
    (tmp_path / "finite.toml").write_text(SYNC.replace("[workload]", '[workload]\nhorizon = "60 s"'))
    with pytest.raises(InputError, match="cannot be combined with an uncertainty"):
        am.explore(Space.parse('scenario = "finite.toml"\n[vary]\nD = [1, 2]\n', base=tmp_path), uncertainty=True)
    with pytest.raises(InputError, match="--samples: is 3"):
        am.explore(Space.parse(plain), uncertainty=True, samples=3)
