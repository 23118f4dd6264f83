"""Study of the baselines: the bound on two-batch overlap, the search, what the page claims."""

import json
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asapmodel.costing import layer_costs
from asapmodel.errors import NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.studies import baselines_systems
from asapmodel.studies.baselines import SPREADS, confirm, page
from asapmodel.studies.baselines_figures import baselines_figure, draw_figure
from asapmodel.studies.baselines_systems import Best, best, families, overlap_bound
from asapmodel.verbs.capacity import capacity

Found = dict[float, dict[str, Best]]


@pytest.fixture(scope="module")
def found() -> Found:
    """The shipped spread of the experts' load in full, and perfect balance; fewer systems than the page searches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines_systems, "CHUNKS", (4096, 8192, 16384))
        patch.setattr(baselines_systems, "_EXCLUSIVE", (16384, 32768))
        patch.setattr(baselines_systems, "_BATCHES", (2048, 16384))
        return {
            spread: families({"cluster.profile.expert_load_cv": spread}, everything=spread == 2.3)
            for spread in (0.0, 2.3)
        }


def test_overlap_bound_has_no_transfers_and_two_halves() -> None:
    scenario = Scenario.load("paper-chunked")
    own, bound = layer_costs(scenario).costs, layer_costs(overlap_bound(scenario)).costs
    for name in ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv"):
        assert getattr(bound, name)(1000.0) == 0
    assert bound.attention.fixed == 2 * own.attention.fixed
    assert bound.moe(8.0) == 2 * own.moe(8.0)
    n, w = 3000.0, 2e7  # two halves of this on a device
    assert bound.attention(n, w) == pytest.approx(2 * own.attention(n / 2, w / 2))
    assert bound.moe(n) == pytest.approx(2 * own.moe(n / 2))
    assert capacity(overlap_bound(scenario)).slo_throughput_rps > capacity(scenario).slo_throughput_rps


def test_search_takes_the_best_that_fits() -> None:
    chunked = Scenario.load("paper-chunked")
    too_large = chunked.replace(D=4, T=1, E=4)
    slow = chunked.replace(chunk_tokens=1024)
    one = best("any", [slow, too_large, chunked])
    assert one.scenario is chunked
    assert one.tried == 3
    assert one.slo_rps == capacity(chunked).slo_throughput_rps
    assert one.layout == "D8 T4, chunks 8192, by tokens"
    with pytest.raises(NoAnswer, match="none of 1 systems"):
        best("none", [too_large])


def test_families_contain_one_another(found: Found) -> None:
    rps = {name: one.slo_rps for name, one in found[2.3].items()}
    tolerance = 0.98  # the search is with the quick effort
    for larger, smaller in [
        ("Default, any budget", "Default"),
        ("Default, any split", "Default"),
        ("chunks of any size", "ChunkedPrefill"),
        ("chunks and split, best", "chunks of any size"),
        ("ASAP, switches tuned", "ASAP"),
        ("ASAP, batches too", "ASAP, switches tuned"),
        ("ASAP, tuned, one stream", "ASAP"),
    ]:
        assert rps[larger] >= tolerance * rps[smaller], (larger, smaller)
    assert rps["two-batch overlap, bound"] > rps["chunks and split, best"]


def test_what_the_page_claims(found: Found) -> None:
    own, even = found[2.3], found[0.0]

    def gain(some: Mapping[str, Best], of: str, over: str) -> float:
        return some[of].slo_rps / some[over].slo_rps - 1

    best_sync, bound = "chunks and split, best", "two-batch overlap, bound"
    assert gain(own, "Default, any budget", "Default") > 0.2  # Default is weak
    assert gain(own, best_sync, "ChunkedPrefill") < 0.06  # ChunkedPrefill is not
    assert abs(gain(own, "ChunkedPrefill, by work", "ChunkedPrefill")) < 0.02
    assert 0 < gain(own, "ASAP", bound) < gain(own, "ASAP", best_sync) < gain(own, "ASAP", "ChunkedPrefill")
    assert gain(own, "ASAP, batches too", best_sync) > 1.5 * gain(own, "ASAP", best_sync)
    assert gain(even, "ASAP", "ChunkedPrefill") < 0.15 < 0.3 < gain(own, "ASAP", "ChunkedPrefill")
    assert gain(even, "ASAP", bound) < 0
    light = min(one.ttft_s[0] for one in own.values() if one.scenario.layout.kind == "sync" and not one.bound)
    assert light < own["ASAP"].ttft_s[0]  # groups of eight devices
    for k in (1, 2):
        assert all(one.ttft_s[k] > own["ASAP"].ttft_s[k] for one in own.values() if one.scenario.layout.kind == "sync")


def test_page_and_figure(found: Found, tmp_path: Path) -> None:
    everything = {spread: found[0.0 if spread < 2 else 2.3] for spread in SPREADS}
    short = {
        name: Best(one.family, one.scenario.replace(duration=40), one.slo_rps, one.ttft_s, one.tried, one.bound)
        for name, one in found[2.3].items()
    }
    runs = confirm(short, 2)
    assert len(runs) == 9
    text = page(everything, runs)
    assert "{" not in text
    assert "nan" not in text
    assert text.count("| ASAP, switches tuned") == 3
    draw_figure(found[2.3], everything, tmp_path / "figure.svg")
    ElementTree.parse(tmp_path / "figure.svg")
    json.dumps(baselines_figure(found[2.3], everything))
