"""Timelines: batches found in a log, files for trace viewers, pictures."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import VirtualRun, run_asynchronous
from asapmodel.reference.devices import make_model
from asapmodel.reference.random_systems import Drawn
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.steps import Phase
from asapmodel.reference.synchronous import run_synchronous
from asapmodel.reference.timeline import chrome_trace, make_spans, write_chrome_trace
from asapmodel.reference.timeline_picture import comparison_figure, timeline_figure
from asapmodel.reference.virtual_time import Busy
from asapmodel.reference.weights import Config
from asapmodel.studies.pages import save_figure
from tests.reference.strategies import asynchronous, synchronous

Event = dict[str, Any]

LENGTHS = [20, 12, 9, 30, 14, 8, 16, 11, 26, 9, 13, 7, 18, 10]
PROMPTS = tuple(Prompt(k, 0.0008 * k, length) for k, length in enumerate(LENGTHS))
POLICY = Policy(min_batch_tokens=12, max_batch_tokens=32, exclusive_tokens=28, batch_window=0.004)
TRANSFER = Affine(5e-5, 8e-6)
COSTS = LayerCosts(
    Quadratic(4e-4, 1.5e-5, 1.5e-6), TRANSFER, TRANSFER, Plateau(8e-4, 3e-5), TRANSFER, TRANSFER,
    layers=4, dense_layers=1, dense=Affine(1e-4, 1e-5), step_overhead=3e-4,
)  # fmt: skip


@cache
def small(kind: str, T: int = 1, overlap: bool = False) -> VirtualRun:
    model = make_model(Config(layers=4, dense_layers=1), PROMPTS, 1)
    if kind == "sync":
        return run_synchronous(model, Layout("sync", 2, T, 2 * T), POLICY, COSTS, PROMPTS)
    policy = replace(POLICY, overlap_attention=overlap)
    return run_asynchronous(model, Layout("asap", 2, T, 2), policy, COSTS, PROMPTS)


def of_kind(trace: dict[str, Any], *kinds: str) -> list[Event]:
    return [event for event in trace["traceEvents"] if event["ph"] in kinds]


def check_trace(log: Sequence[Busy]) -> dict[str, Any]:
    """Structure that viewers rely on; returns the trace as it is read back from JSON."""
    trace: dict[str, Any] = json.loads(json.dumps(chrome_trace(log), allow_nan=False))
    threads = {(event["pid"], event["tid"]) for event in trace["traceEvents"]}
    for event in trace["traceEvents"]:
        assert {"ph", "name", "ts", "pid", "tid"} <= set(event)
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
    for name in ("process_name", "thread_name", "process_sort_index", "thread_sort_index"):
        named = [(event["pid"], event["tid"]) for event in of_kind(trace, "M") if event["name"] == name]
        assert sorted(named) == sorted(threads)
    slices = of_kind(trace, "X")
    assert len(slices) == sum(one.phase.name != "barrier" for one in log)
    by_thread = defaultdict(list)
    for event in slices:
        assert event["dur"] >= 0
        by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for times in by_thread.values():  # exactly: a viewer drops phases that overlap by a nanosecond
        assert all(before[1] <= after[0] for before, after in pairwise(times))
        assert all(int(time * 1000) == time * 1000 for pair in times for time in pair)
    check_flows(trace)
    return trace


def check_flows(trace: dict[str, Any]) -> None:
    """Each flow starts, passes and ends once, in order, where phases of one batch and layer begin."""
    begins = defaultdict(set)
    for event in of_kind(trace, "X"):
        args = event["args"]
        batch = args["group"], args["layer"], args["batch"]
        begins[event["cat"], event["pid"], event["tid"], event["ts"]].add(batch)
    flows: dict[int, list[Event]] = defaultdict(list)
    for event in of_kind(trace, "s", "t", "f"):
        flows[event["id"]].append(event)
    assert list(flows) == list(range(1, len(flows) + 1))
    for start, step, finish in flows.values():
        assert (start["ph"], step["ph"], finish["ph"], finish["bp"]) == ("s", "t", "f", "e")
        assert start["ts"] <= step["ts"] <= finish["ts"]
        assert start["pid"] == finish["pid"] != step["pid"]
        stops = zip(("dispatch_send", "moe", "combine_recv"), (start, step, finish), strict=True)
        batches = [begins[name, event["pid"], event["tid"], event["ts"]] for name, event in stops]
        assert set.intersection(*batches)


def execute(drawn: Drawn) -> VirtualRun:
    runner = run_synchronous if drawn.layout.kind == "sync" else run_asynchronous
    return runner(drawn.model, drawn.layout, drawn.policy, drawn.costs, drawn.prompts)


@settings(max_examples=8)
@given(asynchronous())
def test_batches_and_flows_of_asynchronous_runs(drawn: Drawn) -> None:
    """Spans name the batches that the scheduler has released; each has a flow per layer, member and MoE device."""
    run = execute(drawn)
    released = defaultdict(list)
    for batch in run.journal.batches:
        released[batch.group].append(batch)
    for span in make_spans(run.log):
        phase = span.busy.phase
        batch = released[phase.group][span.batch]
        assert phase.n == batch.tokens
        assert phase.w == (batch.work if span.busy.worker[0] == "attention" else 0)
        assert run.journal.start[batch.number] <= span.busy.start <= span.busy.end <= run.journal.end[batch.number]
    count = len(run.journal.batches) * drawn.costs.moe_layers * drawn.layout.T * drawn.layout.E
    assert len(of_kind(check_trace(run.log), "s")) == count


@settings(max_examples=8)
@given(synchronous())
def test_iterations_of_synchronous_runs(drawn: Drawn) -> None:
    """Spans name the iterations, also of groups without a batch; there are no flows."""
    run = execute(drawn)
    starts = list(dict.fromkeys(run.journal.start.values()))
    works = {(run.journal.start[one.number], one.group): one.work for one in run.journal.batches}
    for span in make_spans(run.log):
        phase, start = span.busy.phase, starts[span.batch]
        assert span.batch + 1 == len(starts) or span.busy.end <= starts[span.batch + 1]
        assert start <= span.busy.start
        if phase.group >= 0:
            assert phase.w == works[start, phase.group]
    assert not of_kind(check_trace(run.log), "s", "t", "f")


def test_a_log_by_hand() -> None:
    """Every number of the trace of three phases, given out of order."""
    sender, receiver, pool = ("attention", 1, 0, "send"), ("attention", 1, 0, "receive"), ("moe", 0, "all")
    log = [
        Busy(receiver, Phase("combine_recv", 8, 64, 2, 1), 0.004, 0.0045),
        Busy(pool, Phase("moe", 8, 0, 2, 1), 0.003, 0.004),
        Busy(sender, Phase("dispatch_send", 8, 64, 1, 1), 0.0, 0.001),
        Busy(sender, Phase("dispatch_send", 8, 64, 2, 1), 0.0025, 0.003),
    ]
    trace = check_trace(log)
    names = [(e["pid"], e["tid"], e["args"]["name"]) for e in of_kind(trace, "M") if e["name"].endswith("_name")]
    assert names == [
        (1, 1, "group 1, member 0"), (1, 1, "send stream"),
        (1, 2, "group 1, member 0"), (1, 2, "receive stream"),
        (2, 3, "MoE device 0"), (2, 3, "all stream"),
    ]  # fmt: skip
    assert [(e["name"], e["ts"], e["dur"], e["args"]["waited_us"]) for e in of_kind(trace, "X")] == [
        ("dispatch_send 1", 0.0, 1000.0, 0.0),
        ("dispatch_send 2", 2500.0, 500.0, 1500.0),
        ("moe 2", 3000.0, 1000.0, 3000.0),
        ("combine_recv 2", 4000.0, 500.0, 4000.0),
    ]
    args = {"layer": 2, "group": 1, "batch": 0, "tokens": 8, "attention_work": 64, "waited_us": 1500.0}
    assert of_kind(trace, "X")[1]["args"] == args
    flow = [(e["ph"], e["id"], e["ts"], e["tid"]) for e in of_kind(trace, "s", "t", "f")]
    assert flow == [("s", 1, 2500.0, 1), ("t", 1, 3000.0, 3), ("f", 1, 4000.0, 2)]
    assert not of_kind(check_trace(log[1:]), "s", "t", "f")  # the end is not in the log


def test_waiting_and_phases_fill_every_stream() -> None:
    for run in (small("asap"), small("asap", T=2, overlap=True), small("sync")):
        filled: dict[Any, float] = defaultdict(float)
        last: dict[Any, float] = defaultdict(float)
        for span in make_spans(run.log):
            assert span.waited >= 0
            filled[span.busy.worker] += span.waited + span.busy.end - span.busy.start
            last[span.busy.worker] = max(last[span.busy.worker], span.busy.end)
        assert filled == pytest.approx(last)


def test_barriers_are_waiting() -> None:
    """As in processes, where they last: the trace has 2 ms of waiting, the picture nothing."""
    device = ("attention", 0, 0, "all")
    log = [
        Busy(device, Phase("step", 4, 16, 0), 0.0, 0.001),
        Busy(device, Phase("barrier", 0, 0, 0), 0.001, 0.003),
        Busy(device, Phase("moe", 4, 0, 0), 0.003, 0.004),
    ]
    found = [(event["name"], event["args"]["waited_us"]) for event in of_kind(check_trace(log), "X")]
    assert found == [("step 0", 0.0), ("moe 0", 2000.0)]
    (panel,) = timeline_figure(log, 0.0, 0.004)["vconcat"]
    assert [(row["start"], row["end"]) for row in panel["data"]["values"]] == [(0.0, 1.0), (3.0, 4.0)]


def test_the_file_is_the_trace(tmp_path: Path) -> None:
    log = small("asap").log
    write_chrome_trace(log, tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text()) == chrome_trace(log)


def lanes_of(panel: Event) -> list[str]:
    lanes: list[str] = panel["encoding"]["y"]["sort"]
    return lanes


def test_lanes() -> None:
    log = small("asap", T=2, overlap=True).log
    (panel,) = timeline_figure(log, 0.0, 0.02)["vconcat"]
    streams = ("compute", "send", "receive")
    groups = [f"group {i}, {stream}" for i in range(2) for stream in streams]
    assert lanes_of(panel) == groups + [f"MoE device 0, {stream}" for stream in ("receive", "compute", "send")]
    (panel,) = timeline_figure(log, 0.0, 0.02, every_device=True)["vconcat"]
    assert len(lanes_of(panel)) == 2 * 2 * 3 + 2 * 3
    assert lanes_of(panel)[3] == "group 0, member 1, compute"
    (panel,) = timeline_figure(small("asap").log, 0.0, 0.02)["vconcat"]
    assert lanes_of(panel)[:2] == ["group 0", "group 1"]
    (panel,) = timeline_figure(small("sync", T=2).log, 0.0, 0.02)["vconcat"]
    assert lanes_of(panel) == ["group 0", "group 1"]


def test_boxes_are_the_phases_cut_at_the_window() -> None:
    log, first, last = small("asap").log, 0.011, 0.017
    (panel,) = timeline_figure(log, first, last)["vconcat"]
    found = sorted((row["start"], row["end"]) for row in panel["data"]["values"] if row["lane"] == "group 1")
    mine = [(one.start, one.end) for one in log if one.worker == ("attention", 1, 0, "all")]
    expected = sorted((max(a, first) * 1e3, min(b, last) * 1e3) for a, b in mine if b > first and a < last)
    np.testing.assert_allclose(found, expected)
    assert (found[0][0], found[-1][1]) == (first * 1e3, last * 1e3)  # the window does cut phases


def test_labels_stand_where_there_is_room() -> None:
    log = [
        Busy(("attention", 0, 0, "all"), Phase("attention", 4, 16, 12, 0), 0.0, 0.010),
        Busy(("attention", 0, 0, "all"), Phase("attention", 4, 16, 3, 0), 0.010, 0.011),
        Busy(("moe", 0, "all"), Phase("moe", 4, 0, 12, 0), 0.012, 0.030),
    ]
    (panel,) = timeline_figure(log, 0.0, 0.1, width=500)["vconcat"]
    assert [row["label"] for row in panel["data"]["values"]] == ["12", "", "0:12"]


def test_figures_render(tmp_path: Path) -> None:
    logs = {"Synchronous": small("sync").log, "Asynchronous": small("asap", overlap=True).log}
    spec = comparison_figure(logs, 0.0, 0.05)
    domains = [panel["encoding"]["x"]["scale"]["domain"] for panel in spec["vconcat"]]
    assert domains == [[0.0, 50.0]] * 2
    save_figure(spec, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    for word in ("Synchronous", "Asynchronous", "MoE device 0, receive", "time (ms)", "combine", "1:3"):
        assert f">{word}<" in text


def test_an_empty_window_is_refused() -> None:
    log = small("asap").log
    with pytest.raises(ValueError, match=r"nothing happens from 5 to 6 s; the run ends at 0\.0"):
        timeline_figure(log, 5.0, 6.0)
    with pytest.raises(ValueError, match=r"last = 1 s is not after first = 2 s"):
        timeline_figure(log, 2.0, 1.0)
