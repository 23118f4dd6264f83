"""The verb: windows of real scenarios as numbers, traces and pictures."""

import gzip
import json
import math
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asapmodel as am
from asapmodel.verbs import timeline as module
from asapmodel.verbs.evaluate import prepare
from asapmodel.verbs.prepared import Prepared
from asapmodel.verbs.timeline import Timeline

Event = dict[str, Any]


@cache
def ready(name: str, **changes: Any) -> Prepared:
    return prepare(am.Scenario.load(name).replace(duration="30 s", **changes))


def window(name: str, start: float, duration: float | None, **changes: Any) -> Timeline:
    what = ready(name, **changes)
    return am.timeline(what.scenario, 8.0, start, duration, what)


def of_kind(events: list[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event["ph"] in kinds]


def read_back(found: Timeline, path: Path) -> list[Event]:
    """Write the trace; what is in the file, after checks of what viewers rely on."""
    found.write(path)
    trace = json.loads(path.read_text())
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    events: list[Event] = trace["traceEvents"]
    named = {(event["pid"], event["tid"]) for event in of_kind(events, "M")}
    for event in events:
        assert {"ph", "name", "ts", "pid", "tid"} <= set(event)
        assert math.isfinite(event["ts"])
        assert (event["pid"], event["tid"]) in named
    by_thread = defaultdict(list)
    for event in of_kind(events, "X"):
        by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for times in by_thread.values():
        assert all(start <= end for start, end in times)
        assert all(before[1] <= after[0] for before, after in pairwise(times))
    return events


@pytest.mark.parametrize("name", ["paper-asap", "paper-default", "paper-chunked"])
def test_the_whole_run_is_that_of_evaluate(name: str) -> None:
    found = window(name, 0.0, None)
    result = am.evaluate(ready(name).scenario, 8.0, "graph", ready(name))
    assert found.run_end_s == found.end_s == result.duration_s
    assert result.records is not None
    assert np.array_equal(found.outcome.end, result.records.end_s)
    elapsed = found.run_end_s - found.requests.arrival[0]
    busy = {one.device: one.busy * found.run_end_s / elapsed for one in found.streams if "group" in one.device}
    if found.system == "asap":
        assert np.mean(list(busy.values())) == pytest.approx(result.utilisation["attention"])
        (experts,) = (one.busy for one in found.streams if one.stream == "compute")
        assert experts * found.run_end_s / elapsed == pytest.approx(result.utilisation["moe"])
    else:
        parts = sum(result.utilisation[part] for part in ("attention", "transfers", "moe"))
        assert np.mean(list(busy.values())) == pytest.approx(parts)
        blocked = np.mean([one.blocked for one in found.streams]) * found.run_end_s / elapsed
        assert blocked == pytest.approx(result.utilisation["barrier"])


@pytest.mark.parametrize("changes", [{}, {"overlap_attention": True}, {"overlap_moe": False, "dual_batch": False}])
def test_trace_of_free_execution(tmp_path: Path, changes: dict[str, bool]) -> None:
    found = window("paper-asap", 10.0, 1.5, **changes)
    events = read_back(found, tmp_path / "trace.json")
    names = [event["args"]["name"] for event in of_kind(events, "M") if event["name"] == "process_name"]
    assert list(dict.fromkeys(names)) == ["requests", *(f"group {k}" for k in range(4)), "MoE devices"]
    slices = of_kind(events, "X")
    assert len(slices) == sum(one.tasks for one in found.streams) > 100
    assert all(event["ts"] < 11.5e6 and event["ts"] + event["dur"] > 10e6 for event in slices)
    places = {}
    for event in slices:
        args = event["args"]
        key = event["cat"], args["batch"], args["layer"]
        assert key not in places
        places[key] = event
        assert args["waited_us"] >= args["blocked_us"] >= 0
        assert event["name"] == f"{event['cat']} {args['layer']}"
    flows = defaultdict(list)
    for event in of_kind(events, "s", "t", "f"):
        flows[event["id"]].append(event)
    stops = ("dispatch_send", "moe", "combine_recv")
    expected = {key[1:] for key in places if all((name, *key[1:]) in places for name in stops)}
    joined = set()
    for three in flows.values():
        assert [event["ph"] for event in three] == ["s", "t", "f"]
        at = [(event["pid"], event["tid"], event["ts"]) for event in three]
        (batch,) = (
            key for key in expected if [tuple(places[n, *key][k] for k in ("pid", "tid", "ts")) for n in stops] == at
        )
        joined.add(batch)
    assert joined == expected
    assert len(flows) == len(expected) > 20


def test_args_of_a_slice_are_the_batch(tmp_path: Path) -> None:
    """Prompts, tokens and work: of the requests that were formed into a batch when its first task became ready."""
    found = window("paper-asap", 10.0, 3.0)
    events = read_back(found, tmp_path / "trace.json")
    seen = {}
    for event in of_kind(events, "X"):
        args = event["args"]
        if event["name"] == "attention 0":
            seen[args["batch"]] = args, event["ts"] - args["waited_us"]
    assert len(seen) > 5
    bounds = np.concatenate([[0], np.cumsum(found.tasks.batches.prompts)])
    for batch, (args, released) in seen.items():
        own = slice(bounds[batch], bounds[batch + 1])
        tokens = found.requests.prompt[own]
        assert args["prompts"] == len(tokens)
        assert args["tokens"] == tokens.sum()
        assert args["attention_work"] == (tokens.astype(float) ** 2).sum()
        assert released == pytest.approx(found.outcome.start[own][0] * 1e6, abs=0.2)


@pytest.mark.parametrize("name", ["paper-asap", "paper-chunked"])
def test_requests_in_a_trace(tmp_path: Path, name: str) -> None:
    found = window(name, 10.0, 4.0)
    events = read_back(found, tmp_path / "trace.json")
    inside = np.flatnonzero((found.requests.arrival >= 10.0) & (found.requests.arrival < 14.0))
    arrivals = of_kind(events, "i")
    assert [event["args"]["request"] for event in arrivals] == inside.tolist()
    assert [event["args"]["prompt_tokens"] for event in arrivals] == found.requests.prompt[inside].tolist()
    counts = of_kind(events, "C")
    assert counts[0]["ts"] == 10e6
    for event, after in pairwise([*counts, {"ts": 14e6}]):
        moment = (event["ts"] + after["ts"]) / 2e6
        waiting = (found.requests.arrival <= moment) & (found.outcome.start > moment)
        if after["ts"] - event["ts"] > 1:  # rounding apart
            assert event["args"] == {"waiting requests": np.count_nonzero(waiting)}
    assert max(event["args"]["waiting requests"] for event in counts) > 0


def test_trace_of_lockstep_execution(tmp_path: Path) -> None:
    """Barriers are gaps as long as the next slice says it waited."""
    found = window("paper-default", 10.0, 2.0)
    events = read_back(found, tmp_path / "trace.json")
    assert not of_kind(events, "s", "t", "f")
    gaps = waits = 0.0
    for one in range(len(found.tasks.tracks)):
        mine = [event for event in of_kind(events, "X") if event["tid"] == one + 2]
        iterations = defaultdict(list)
        for event in mine:
            iterations[event["args"]["batch"]].append(event)
        for some in iterations.values():
            gaps += sum(after["ts"] - before["ts"] - before["dur"] for before, after in pairwise(some))
            waits += sum(event["args"]["waited_us"] for event in some[1:])
    assert gaps > 1e6
    assert gaps == pytest.approx(waits, rel=1e-4)


def test_compressed_traces_are_the_same(tmp_path: Path) -> None:
    found = window("paper-asap", 10.0, 0.2)
    found.write(tmp_path / "a.json")
    found.write(tmp_path / "a.json.gz")
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()


@pytest.mark.parametrize("name", ["paper-asap", "paper-default"])
@pytest.mark.parametrize("start", [0.0, 10.0])
def test_a_picture_has_every_lane(tmp_path: Path, name: str, start: float) -> None:
    """Also where nothing happens, as before the first arrival."""
    found = window(name, start, 0.04 if start else 1e-4)
    (panel,) = found.picture()["vconcat"]
    pool = [f"MoE devices, {one}" for one in ("receive", "compute", "send")] if name == "paper-asap" else []
    lanes = [f"group {k}" for k in range(4 if pool else 8)] + pool
    assert panel["encoding"]["y"]["sort"] == lanes
    assert len(panel["data"]["values"]) == sum(one.tasks for one in found.streams)
    assert (len(panel["data"]["values"]) > 0) == (start > 0)
    found.write(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert all(f">{lane}<" in text for lane in lanes)
    found.write(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_windows_are_clipped_and_may_be_text() -> None:
    found = window("paper-asap", 25.0, 1e9)
    assert (found.start_s, found.end_s) == (25.0, found.run_end_s)
    what = ready("paper-asap")
    texts = am.timeline(what.scenario, 8.0, "10 s", "200 ms", what).to_dict()
    assert texts == window("paper-asap", 10.0, 0.2).to_dict()
    assert json.loads(json.dumps(texts)) == texts
    assert texts["streams"][0].keys() == {"device", "stream", "busy", "blocked", "idle", "tasks"}


@pytest.mark.parametrize(
    ("start", "duration", "message"),
    [
        (1e3, None, r"--from: 1000 s is not before the end of the run, 3\d\.\d+ s; give an earlier time, or raise"),
        (-1.0, None, r"--from: is -1\.0; give a time that is not negative"),
        ("5 GB", None, r"--from: '5 GB' is a size, not a time"),
        (0.0, 0.0, r"--for: is 0; give a time greater than 0"),
        (0.0, math.nan, r"--for: is nan, not a finite time"),
        (0.0, -2, r"--for: is -2; give a time that is not negative"),
    ],
)
def test_windows_that_are_refused(start: float | str, duration: float | None, message: str) -> None:
    what = ready("paper-asap")
    with pytest.raises(am.InputError, match=message):
        am.timeline(what.scenario, 8.0, start, duration, what)


@pytest.mark.parametrize("name", ["paper-asap", "paper-default"])
def test_a_window_with_too_much_names_one_that_is_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module, "MOST_TASKS", 20_000)
    with pytest.raises(am.InputError, match=r"--for: .* s hold more than 20,000 tasks; give \d+m?s or less") as error:
        window(name, 5.0, None)
    window(name, 5.0, float(error.value.remedy.split()[1].removesuffix("s")))


def test_a_picture_with_too_much_names_a_window_that_is_not() -> None:
    found = window("paper-asap", 10.0, 3.0)
    with pytest.raises(am.InputError, match=r"--for: 3 s are [\d,]+ boxes on a lane, .*; give \d+ms or less, or a tra"):
        found.picture()
