"""The study of traffic: what is changed, what bursts and caching must do, and the page."""

import re
from pathlib import Path

import pytest

from asapmodel.costing import length_grid
from asapmodel.models.trace import read_trace
from asapmodel.scenario import Scenario
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio
from asapmodel.studies.traffic import page
from asapmodel.studies.traffic_figure import traffic_figure
from asapmodel.studies.traffic_runs import (
    CACHED,
    CVS,
    TRACES,
    Row,
    burst,
    cached,
    cached_lengths,
    replayed,
    solve,
)
from asapmodel.verbs.capacity import capacity


def test_a_share_of_every_prompt_is_cached(tmp_path: Path) -> None:
    trace = read_trace(Path(cached_lengths(0.5, tmp_path)["lengths"]["trace"]))
    grid = length_grid(Scenario.load("paper-asap"))
    assert trace.prompt_tokens.sum() == pytest.approx(grid.sum(), rel=1e-3)
    assert trace.cached_tokens.sum() / trace.prompt_tokens.sum() == pytest.approx(0.5, abs=1e-3)


def test_nothing_cached_and_poisson_are_the_papers_traffic() -> None:
    asap = capacity(Scenario.load("paper-asap")).slo_throughput_rps
    assert cached(0.0).asap == pytest.approx(asap, rel=0.01)
    assert solve(burst(1.0)).asap == pytest.approx(asap, rel=0.01)


def test_bursts_and_caching() -> None:
    calm, wild = solve(burst(1.0)), solve(burst(4.0))
    assert wild.chunked < calm.chunked
    assert wild.asap < calm.asap
    assert wild.gain > calm.gain
    none, most = cached(0.0), cached(0.9)
    assert most.chunked > 5 * none.chunked  # less than a tenth of the tokens
    assert most.gain < none.gain


def test_a_replay_is_of_the_trace() -> None:
    row = replayed("afd_prefill")
    assert 3.0 < row.chunked < row.asap < row.tuned < 6.0


def test_page_and_figure(tmp_path: Path) -> None:
    laws = {trace: Row(10.0, 12.0 - 3 * k, 15.0) for k, trace in enumerate(TRACES)}
    replays = {trace: Row(10.0, 12.0, 15.0) for trace in TRACES}
    bursts = {cv: Row(10.0 - cv, 14.0 - cv, 18.0) for cv in CVS}
    shares = {share: Row(10.0 + share, 13.0, 16.0) for share in CACHED}
    text = page(laws, replays, bursts, shares, {"cv 4": ("+49.0%", Ratio(1.5, 1.4, 1.6))}, ("attention", "moe"))
    assert not re.search(r"[{}]|nan", text)
    assert "  lengths of mooncake_conversation +20%, with those of afd_prefill" in text
    assert "the gain goes\n  from +44% to +67%" in text
    assert text.count("| replay |") == 3
    save_figure(traffic_figure(laws, bursts, shares), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
