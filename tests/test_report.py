import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert

import asapmodel as am
from asapmodel.engines import queueing
from asapmodel.engines.analysis import Point, TtftLaw
from asapmodel.errors import InputError, NoAnswer
from asapmodel.html import data, words
from asapmodel.html.data import Group, choose_rates, collect, same_traffic, unique_labels
from asapmodel.html.page import page
from asapmodel.html.style import PART_COLOURS, SYSTEM_COLOURS, system_colour
from asapmodel.html.tables import (
    assumption_rows,
    bin_rows,
    cdf_rows,
    curve_rows,
    length_rows,
    measured_rows,
    share_rows,
)
from asapmodel.verbs.evaluate import prepare
from tests.verbs import stand_in

Groups = tuple[Group, ...]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
QUIET += " --disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=10000"


def short(shipped: str, **changes: object) -> am.Scenario:
    return am.Scenario.load(shipped).replace(duration=20, **changes)


@pytest.fixture(scope="module")
def scenarios() -> list[am.Scenario]:
    odd = short("paper-asap", lengths={"constant": 3000}, statistic="p95", name='<b>"odd" & long</b>')
    return [short("paper-default"), short("paper-asap", **{"costs.moe.floor": 1e-3}), odd]


@pytest.fixture(scope="module")
def groups(scenarios: list[am.Scenario]) -> Groups:
    return collect(scenarios, "graph")


@pytest.fixture(scope="module")
def written(scenarios: list[am.Scenario], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    said: list[str] = []
    path = am.report(scenarios, tmp_path_factory.mktemp("report") / "report.html", engine="graph", progress=said.append)
    return path, said


@pytest.fixture(scope="module")
def text(written: tuple[Path, list[str]]) -> str:
    return written[0].read_text("utf-8")


def specs(text: str) -> dict[str, Any]:
    """The specifications inside a page."""
    found = re.search(r"const charts = (\{.*\});", text)
    assert found
    charts: dict[str, Any] = json.loads(found.group(1))
    return charts


def test_one_file_is_written_and_work_is_reported(
    written: tuple[Path, list[str]], scenarios: list[am.Scenario]
) -> None:
    path, said = written
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]
    for scenario in scenarios:
        assert any(scenario.name in line for line in said)


def test_it_states_every_slo_throughput(text: str, groups: Groups) -> None:
    for group in groups:
        for _, one in group.answered:
            assert f"<b>{words.rate_text(one.slo_throughput_rps)}</b>" in text
            assert one.slo_throughput_rps == am.capacity(_scenario(group, one), "graph").slo_throughput_rps


def _scenario(group: Group, one: am.Capacity) -> am.Scenario:
    return next(system.scenario for system in group.systems if system.capacity is one)


def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    page_itself = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert not re.search(r"https?://", page_itself)
    assert not re.search(r"<(script|img|iframe)[^>]*\ssrc|<link|@import|url\(", page_itself)
    assert "default-src 'none'" in text
    assert text.count("<script>") == text.count("</script>") == 2


def test_every_chart_is_valid_and_has_its_place(text: str) -> None:
    found = specs(text)
    assert {name.partition("-")[0] for name in found} == {"part1", "part2"}
    assert len(found) > 20
    for name, spec in found.items():
        assert text.count(f'id="{name}"') == 1
        vl_convert.vegalite_to_vega(spec)


def test_same_input_same_bytes(text: str, groups: Groups) -> None:
    assert page(groups, "graph") == text


def test_names_are_escaped(text: str) -> None:
    assert "<b>&quot;odd&quot;" not in text
    assert "&lt;b&gt;&quot;odd&quot; &amp; long&lt;/b&gt;" in text


def test_overrides_stand_out_and_every_assumption_is_there_once(text: str, groups: Groups) -> None:
    assert text.count('<tr class="override">') == 1
    rows = [assumption for assumption, _ in assumption_rows(groups)]
    assert len(rows) == len(set(rows))
    assert {a for group in groups for one in group.systems for a in one.detail.assumptions} == set(rows)


def test_an_existing_file_is_not_touched_and_nothing_is_computed(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        am.report([short("paper-asap")], path, progress=pytest.fail)
    assert path.read_text() == "mine"


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no scenario"):
        am.report([], tmp_path / "report.html")
    with pytest.raises(InputError, match="no engine"):
        am.report([short("paper-asap")], tmp_path / "report.html", engine="steam")
    assert not list(tmp_path.iterdir())


def test_force_replaces_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("asapmodel.html.data.collect", lambda *_: ())
    monkeypatch.setattr("asapmodel.html.page.page", lambda *_: "new")
    assert am.report([short("paper-asap")], path, force=True) == path
    assert path.read_text() == "new"


def test_scenarios_are_grouped_by_traffic_and_objective(scenarios: list[am.Scenario]) -> None:
    assert same_traffic(scenarios) == [[0, 1], [2]]
    assert same_traffic([scenarios[0], scenarios[2], scenarios[1], scenarios[0].replace(ttft=3)]) == [[0, 2], [1], [3]]
    assert unique_labels(["a", "a", "a (2)"]) == ["a", "a (2)", "a (2) (2)"]


def test_a_system_keeps_its_colour_under_other_traffic() -> None:
    shipped = [am.Scenario.load(f"{traffic}-{name}") for traffic in ("paper", "trace") for name in ("default", "asap")]
    assert data._looks(shipped) == [0, 1, 0, 1]
    assert data._looks(shipped[:1] * 2) == [0, 1]


@pytest.mark.parametrize("throughputs", [[6.7, 10.5, 20.0], [3.0], [0.1, 50.0], [5.0, 5.01]])
def test_rates_span_low_load_to_a_little_above_the_best(throughputs: list[float]) -> None:
    rates, detail = choose_rates(throughputs, 300.0)
    assert list(rates) == sorted(set(rates))
    assert detail in rates
    assert detail < min(throughputs)
    assert max(throughputs) < rates[-1] < 1.1 * max(throughputs)
    assert 8 <= len(rates) <= 12 + 2 * len(throughputs)


def test_tables_agree_with_the_results(groups: Groups) -> None:
    group = groups[0]
    for system in group.systems:
        judged = [row for row in curve_rows(group) if row["system"] == system.label and row["statistic"] == "mean"]
        assert [row["rate"] for row in judged if row["point"]] == list(group.rates)
        means = [row["ttft"] for row in judged if row["point"]]
        np.testing.assert_allclose(means, [one.judged_s for one in system.curve], rtol=1e-4)
        bars = bin_rows(group)[system.label]
        total = sum(row["requests"] * row["value"] for row in bars)
        assert system.records is not None
        np.testing.assert_allclose(total, system.records.ttft_s.sum(), rtol=1e-3)
        np.testing.assert_allclose(sum(r["value"] for r in share_rows(group) if r["system"] == system.label), 100, 1e-3)
        assert sum(row["system"] == system.label for row in cdf_rows(group)) <= 200


def test_the_curve_passes_through_the_slo_throughput(groups: Groups) -> None:
    for group in groups:
        for system, one in group.answered:
            rates, values = zip(*((point.rate_rps, point.judged_s) for point in system.curve), strict=True)
            at = np.interp(one.slo_throughput_rps, rates, values)
            assert at == pytest.approx(group.slo.ttft, rel=0.1)


def test_a_system_without_an_answer_does_not_stop_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [short(name).replace(duration=6) for name in ("paper-chunked", "paper-default")]

    def capacity(scenario: am.Scenario, *args: Any, **options: Any) -> am.Capacity:
        if scenario.name == "paper-chunked":
            raise NoAnswer(f"{scenario.source}: missed at every rate")
        return am.capacity(scenario, *args, **options)

    monkeypatch.setattr(data, "capacity", capacity)
    text = page(collect(scenarios, "graph"), "graph")
    assert "none: missed at every rate" in text
    assert "paper-default sustains" in text
    for spec in specs(text).values():
        vl_convert.vegalite_to_vega(spec)
    with pytest.raises(NoAnswer, match="missed at every rate"):
        collect(scenarios[:1], "graph")


def test_the_answer_in_words(groups: Groups) -> None:
    assert re.match(r"paper-asap sustains most: [\d.]+ requests/s$", words.verdict(groups[0]))
    answer = words.answer(groups[0])
    assert re.search(r"That is [\d.]+ times paper-default \([\d.]+\)\. It is limited by ", answer)
    assert "mean TTFT within 5 s, on 32 devices" in answer
    assert words.verdict(groups[1]).endswith(" requests/s")
    assert "p95 of TTFT within 5 s" in words.answer(groups[1])
    assert words.interval_text((8.0972, 8.1036)) == "8.097 to 8.104"
    assert words.holds_for(["paper-default"], groups) == "sync"
    assert words.holds_for(["paper-default", "paper-asap"], groups) == "part 1"


@pytest.fixture(scope="module")
def laws(scenarios: list[am.Scenario]) -> Iterator[Groups]:
    """Groups of the queueing engine, which here is an M/M/1 queue that serves 10 requests/s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queueing, "analyse", stand_in.analyse)
        yield collect([*scenarios, short("trace-asap")], "queueing", graph_points=True)


def test_curves_of_laws_are_dense_and_end_at_the_stability_limit(laws: Groups) -> None:
    for group in laws:
        for system in group.systems:
            rates = [point.rate_rps for point in system.curve]
            assert rates == sorted(set(rates))
            assert len(rates) > 40
            assert min(9.9, 0.99 * group.rates[-1]) < rates[-1] < stand_in.SERVICE
            steps = np.diff(np.log([point.judged_s for point in system.curve]))
            assert steps.max() < 0.7
            assert system.records is None
            assert system.detail.rate_rps == group.detail_rate
    rows = curve_rows(laws[0])
    assert not any(row["beyond"] for row in rows)
    assert all(0.6 < row["ttft"] / stand_in_mean(row["rate"]) < 1.6 for row in rows if row["statistic"] == "mean")


def stand_in_mean(rate: float) -> float:
    return 1 / (stand_in.SERVICE - rate)


def test_points_of_the_graph_engine_stand_beside_the_curves(laws: Groups) -> None:
    drawn, _, replayed = laws
    rows = measured_rows(drawn)
    assert {row["system"] for row in rows} == {"paper-default", "paper-asap"}
    assert all(row["low"] < row["ttft"] < row["high"] for row in rows)
    assert all(row["low"] == row["high"] for row in measured_rows(replayed))


@pytest.fixture(scope="module")
def page_of_laws(laws: Groups) -> str:
    return page(laws, "queueing")


def test_axes_write_numbers_without_exponents(laws: Groups, page_of_laws: str) -> None:
    """A rate axis that ends between 10 and 12, as here, once had the tick "1e+1"."""
    assert any(10 <= group.rates[-1] < 12 for group in laws)
    for spec in specs(page_of_laws).values():
        labels = re.findall(r">([^<>]+)</text>", vl_convert.vegalite_to_svg(spec))
        assert not [label for label in labels if re.fullmatch(r"[\d.]+e[+-]?\d+", label)]


def test_the_page_of_laws(laws: Groups, page_of_laws: str) -> None:
    text = page_of_laws
    assert text == page(laws, "queueing")
    assert "95 % interval</th>" not in text
    assert "graph engine, mean of runs with 95 % interval" in text
    assert "a service that has run forever" in text
    assert "No curve passes its stability limit" in text
    assert "Points with bars: graph engine, 8 runs of 20 s each." in text
    assert "trace replaced by its laws" in text
    found = specs(text)
    assert not [name for name in found if "bins" in name]
    for spec in found.values():
        vl_convert.vegalite_to_vega(spec)
    total = sum(row["value"] for row in share_rows(laws[0]) if row["system"] == "paper-asap")
    assert total == pytest.approx(100, rel=1e-3)
    assert {row["statistic"] for row in length_rows(laws[0])} == {"mean", "p95"}


@pytest.mark.usefixtures("laws")
def test_a_report_of_finite_runs_shows_what_lies_beyond_the_limit(scenarios: list[am.Scenario], tmp_path: Path) -> None:
    text = am.report(scenarios[:2], tmp_path / "r.html", horizon="2 min").read_text("utf-8")
    assert "Pale: above the stability limit" in text
    assert "Run of 120 s that starts empty" in text
    assert "horizon = 120.0" in text


@pytest.mark.usefixtures("laws")
def test_a_system_whose_law_always_misses_does_not_stop_the_report(scenarios: list[am.Scenario]) -> None:
    slow, fast = scenarios[0].replace(name="slow"), scenarios[0]

    class Slow(stand_in.SingleServer):
        def at(self, rate: float) -> Point:
            point = super().at(rate)
            return replace(point, ttft=TtftLaw(point.ttft.time + 9, point.ttft.cdf, point.ttft.mean + 9, 1.0))

    readies = iter([Slow(prepare(slow).problem, 3.0), stand_in.analyse(prepare(fast).problem)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queueing, "analyse", lambda _, effort: next(readies))
        (group,) = collect([slow, fast], "queueing")
    assert [system.capacity is None for system in group.systems] == [True, False]
    assert group.detail_rate < 3.0
    text = page([group], "queueing")
    assert "none: mean TTFT &lt;= 5 s is missed at every rate" in text


def test_colours_repeat_rather_than_run_out() -> None:
    assert system_colour(len(SYSTEM_COLOURS)) == SYSTEM_COLOURS[0]
    assert len(set(SYSTEM_COLOURS)) == len(SYSTEM_COLOURS)
    assert not set(SYSTEM_COLOURS) & set(PART_COLOURS.values())


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the report in")
def test_a_browser_shows_every_chart_without_complaint(
    written: tuple[Path, list[str]], text: str, tmp_path: Path
) -> None:
    assert CHROMIUM
    command = [CHROMIUM, *QUIET.split(), f"--user-data-dir={tmp_path}", "--dump-dom", written[0].as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert done.stdout.count('<svg xmlns="http://www.w3.org/2000/svg"') >= len(specs(text))
