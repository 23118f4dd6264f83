"""When asynchronous execution is worth it: the search, the maps, what gains are made of, the page."""

import math
from dataclasses import replace

import numpy as np
import pytest

from asapmodel.closed_forms.barriers import largest_normal
from asapmodel.scenario import Scenario
from asapmodel.studies import when_asynchronous, when_asynchronous_findings, when_asynchronous_maps
from asapmodel.studies.dp_imbalance_runs import law
from asapmodel.studies.paired_runs import Ratio
from asapmodel.studies.when_asynchronous_figure import Panel, factor_figure, map_figure
from asapmodel.studies.when_asynchronous_findings import PAPERS, Findings
from asapmodel.studies.when_asynchronous_laws import LawGain, law_gain, limits_ratio
from asapmodel.studies.when_asynchronous_maps import LOADS, Cell
from asapmodel.studies.when_asynchronous_published import (
    best_ratio,
    deployment,
    deployment_cells,
    like_for_like,
    measured_ttft,
    nearest,
    paper_loads,
)
from asapmodel.studies.when_asynchronous_search import Pair, System, best, label, measured, search
from asapmodel.studies.when_asynchronous_why import STEPS, Ladder, busiest, ladder


@pytest.fixture(scope="module")
def paper() -> Pair:
    return search({})


def test_best_of_the_search(paper: Pair) -> None:
    """The best is the best, both kinds fit, several instances count their share of the devices."""
    assert paper.best_sync.slo_rps == max(one.slo_rps for one in paper.sync)
    assert paper.single_sync.instances == 1
    assert paper.best_sync.slo_rps >= paper.single_sync.slo_rps
    for one in (*paper.sync, *paper.asap):
        assert one.instances * one.scenario.layout.devices <= 32
    kinds = {one.scenario.layout.kind for one in paper.asap}
    assert kinds == {"asap"}
    shipped = measured([Scenario.load("paper-asap"), Scenario.load("paper-chunked")])
    assert paper.gain > 0.2
    assert paper.best_asap.slo_rps >= shipped[0].slo_rps
    assert paper.best_sync.slo_rps >= shipped[1].slo_rps


def test_instances_share_the_traffic(paper: Pair) -> None:
    """Two instances serve twice the rate with the TTFT of one."""
    one = paper.single_sync
    two = replace(one, instances=2)
    assert two.slo_rps == pytest.approx(2 * one.slo_rps)
    assert two.limit_rps == pytest.approx(2 * one.limit_rps)
    assert two.ttft([8.0]) == pytest.approx(one.ttft([4.0]))
    assert math.isinf(one.ttft([2 * one.limit_rps])[0])


def test_ttft_ratio_at_full_load(paper: Pair) -> None:
    """At the SLO throughput the best synchronous TTFT is the objective at most, and gains grow with load."""
    ratios = paper.ttft_ratios((0.1, 0.4, 0.75, 1.0))
    assert np.all(np.diff(ratios) > 0)
    asap = min(float(one.ttft([paper.best_sync.slo_rps])[0]) for one in paper.asap)
    assert ratios[-1] * asap <= 5.0 * 1.01


def test_a_window_only_costs_at_low_load(paper: Pair) -> None:
    """Waiting for company raises TTFT there, so that the gain is smaller."""
    assert when_asynchronous_findings.windowed(paper) < paper.ttft_ratios((0.1,))[0]


def test_nothing_fits() -> None:
    """A search without a system says so."""
    with pytest.raises(ValueError, match="no system fits"):
        best(measured([Scenario.load("paper-asap").replace(**{"cluster.memory_bytes": 1e9})]))


def test_experts_decide_more_than_lengths(paper: Pair) -> None:
    """The page's main statement: balanced experts take away more of the gain than constant lengths do."""
    balanced = search({when_asynchronous_maps.SPREAD: 0.0})
    constant = search(law(0.0))
    assert balanced.gain < constant.gain
    assert paper.gain - balanced.gain > 0.15
    assert abs(paper.gain - constant.gain) < 0.15


def test_ladder_multiplies_to_the_gain(paper: Pair) -> None:
    """Factors are ratios of neighbours; what can only help or hurt does."""
    found = ladder(paper)
    assert math.prod(found.factors) == pytest.approx(1 + found.gain)
    assert found.gain == pytest.approx(paper.gain, abs=0.03)
    at = dict(zip(STEPS, found.factors, strict=True))
    assert len(found.factors) == len(STEPS)
    for name in ("attention barrier", "experts averaged over layers", "transfers hidden"):
        assert at[name] > 1
    for name in ("one instance", "own transfers", "experts and partner waited for"):
        assert at[name] < 1


def test_busiest_device() -> None:
    """In one layer 1 + v m(E) sqrt(E / E_total); over L layers the excess is smaller by sqrt(L)."""
    scenario = Scenario.load("paper-chunked")
    one, averaged = busiest(scenario, False), busiest(scenario, True)
    assert one == pytest.approx(1 + 2.3 * 2.06967 / math.sqrt(8), rel=1e-4)
    assert (one - 1) / (averaged - 1) == pytest.approx(math.sqrt(61))


def test_closed_forms_agree(paper: Pair) -> None:
    """Gain at saturation by formulas and by the engine; the break-even is where they would be alike."""
    found = law_gain({})
    assert found.ratio == pytest.approx(limits_ratio(paper), abs=0.06)
    assert (found.ratio > 1) == (found.batch_cv > found.break_even_cv)
    constant = law_gain(law(0.0))
    assert constant.batch_cv == 0.0
    assert float(largest_normal().numeric(D=2.0)) == pytest.approx(1 / math.sqrt(math.pi))


def test_published() -> None:
    """The measured deployment and the paper's ratios, from the numbers as they were published."""
    assert paper_loads()[8.0] == pytest.approx((8 / 10.5, 1 / 0.317))
    means = measured_ttft()
    assert best_ratio(means, 4.0) == pytest.approx(0.713310 / 0.465982)
    at = {(one.y, one.x): one.ratio for one in deployment_cells(means)}
    assert at[65536, 6.0] == pytest.approx(2.430762 / 0.579694)
    assert at[16384, 10.0] < 1 < at[16384, 8.0]
    rps = deployment()
    between = np.log(5 / 1.683721) / np.log(6.208912 / 1.683721)
    assert rps["sync"] == pytest.approx(10 + 2 * between)
    assert rps["async"] < rps["sync"]
    assert nearest(0.38) == 0.4
    likes = like_for_like()
    assert likes["default"].measured == pytest.approx(20 / 6.8)
    assert all(one.unit == "ratio" and one.predicted > 1 for one in likes.values())


def test_splits_mark_what_does_not_fit(paper: Pair) -> None:
    """Half of 32 devices fit as attention devices, more do not; the paper's split is the best that fits."""
    cells = {one.x: one for one in when_asynchronous_maps.splits({32: paper})}
    assert cells[0.5].fits
    assert not cells[0.625].fits
    assert cells[0.5].ratio == max(one.ratio for one in cells.values() if one.fits)
    assert cells[0.5].ratio == pytest.approx(1 + paper.gain, rel=0.02)


def _findings(paper: Pair) -> Findings:
    lengths = dict.fromkeys(when_asynchronous_maps.LAWS, paper)
    spreads = {(x, y): paper for x in when_asynchronous_maps.SPREADS for y in (0.0, 0.5, 1.0, PAPERS)}
    means = {(system, budget, rate): ttft for (system, budget, rate), ttft in measured_ttft().items()}
    steps = tuple(1.0 + 0.1 * k for k in range(len(STEPS) + 1))
    loads = [Cell(load, name, 1.5) for name in lengths for load in LOADS]
    return Findings(
        lengths=lengths,
        loads=loads,
        spreads=spreads,
        laws=dict.fromkeys(spreads, LawGain(1.5, 0.2, -0.5)),
        budgets=[Cell("the paper's", "chunks 8192", 1.4), Cell("2048", "chunks 8192", 1.5)],
        sizes=dict.fromkeys(when_asynchronous_maps.SIZES, paper),
        splits=[Cell(0.5, 32, 1.48), Cell(0.625, 32, 1.64, False)],
        networks={(x, y): paper for y in when_asynchronous_maps.BANDWIDTHS for x in when_asynchronous_maps.LATENCIES},
        ladders={"the paper's lengths": Ladder(steps), "constant lengths": Ladder(steps)},
        overlap_rps={0.0: 26.0, 2.3: 19.0},
        deployment=means,
        runs={"the paper's lengths": (0.5, Ratio(1.5, 1.4, 1.6))},
        windowed={PAPERS: 1.1, "azure2023_conv": 0.8},
        copied_rps=13.6,
    )


def test_page_and_figures(paper: Pair) -> None:
    """Everything is filled in, every number of a map is printed, published ones are boxed."""
    import vl_convert

    found = _findings(paper)
    text = when_asynchronous.page(found)
    assert "{" not in text
    assert "nan" not in text
    assert label(paper.best_asap.scenario) in text
    panels = when_asynchronous.panels(found)
    assert [len(one.published) for one in panels] == [8, 2, 2, 0, 0, 10]
    svg = vl_convert.vegalite_to_svg(map_figure(panels), vl_version="5.21")
    assert svg.count(">1.64*<") == 1
    assert svg.count(">1.48<") >= 1
    assert "all together" in vl_convert.vegalite_to_svg(factor_figure(found.ladders), vl_version="5.21")


def test_summary_for_the_evidence_page() -> None:
    """Rows and points of the summary speak of the same gains."""
    rows, points = when_asynchronous.summary(), when_asynchronous.points()
    assert sum(row.count for row in rows) == len(points) == 4
    assert rows[0].bias == pytest.approx(
        np.median([one.predicted / one.measured - 1 for one in points if "throughput" in one.family])
    )


def test_overlap_bound_is_a_bound(paper: Pair) -> None:
    """No system searched is above the synchronous system whose transfers are hidden, on the same side."""
    assert when_asynchronous_findings.overlapped(2.3) > paper.best_sync.slo_rps


def test_panel_defaults() -> None:
    """A panel without published points has none."""
    assert Panel("t", ("x", "y"), [Cell(1.0, 2.0, 1.5)]).published == ()


def test_label() -> None:
    """Words of both kinds."""
    assert label(Scenario.load("paper-asap")) == "D4 T4 E16, locked, batches of 2048, exclusive above 16384"
    assert label(Scenario.load("paper-chunked"), 2) == "2 x D8 T4, chunks of 8192"
    assert label(Scenario.load("paper-default").replace(balance="work")) == "D8 T4, whole, up to 8192, by work"
    assert isinstance(System(Scenario.load("paper-asap"), None).instances, int)  # type: ignore[arg-type]
