"""Who was busy with what and when: a run's log as spans with batches and waiting, and as a file for trace viewers.

The file has the Chrome trace event format (JSON object format), which Perfetto (https://ui.perfetto.dev) opens: a
process for each device, a thread for each of its streams, a slice for each phase.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asapmodel.reference.system import Name
from asapmodel.reference.virtual_time import Busy

__all__ = ["Span", "chrome_trace", "device_of", "lane_order", "make_spans", "stream_of", "write_chrome_trace"]

Event = dict[str, Any]

_STREAMS = {  # from top to bottom, devices and streams as a batch goes through them
    "attention": ("all", "compute", "send", "receive"),
    "moe": ("all", "receive", "compute", "send"),
}
_TICKS = 8  # of a microsecond: eighths are exact in binary, so no viewer's rounding makes phases of a stream overlap


@dataclass(frozen=True, slots=True)
class Span:
    """A phase of a run.

    Attributes
    ----------
    busy : Busy
        Who, what and when.
    batch : int
        Batches of a group are counted from 0 in order of release; in a synchronous run iterations are.
    waited : float
        Seconds since the previous phase of the same stream, or since time 0.
    """

    busy: Busy
    batch: int
    waited: float


def device_of(worker: Name) -> Name:
    """The device a worker runs on.

    Examples
    --------
    >>> device_of(("attention", 1, 0, "send")), device_of(("moe", 2, "all"))
    (('attention', 1, 0), ('moe', 2))
    """
    return worker[:-1]


def stream_of(worker: Name) -> str:
    """The stream of its device that a worker is; "all" where the device has one for everything."""
    return str(worker[-1])


def lane_order(worker: Name) -> tuple[Any, ...]:
    """Sorting key: attention devices before MoE devices, the streams of a device as a batch goes through them."""
    device, stream = device_of(worker), stream_of(worker)
    return list(_STREAMS).index(device[0]), device[1:], _STREAMS[device[0]].index(stream)


def make_spans(log: Sequence[Busy]) -> list[Span]:
    """Phases in order of their starts, each with its batch and the time its stream had nothing to do before.

    Barriers of synchronous runs are left out: they are waiting.

    The log does not name batches, and need not. No batch of a group overtakes another: streams serve first come, first
    served, and a group's rows at a MoE device hold one batch at a time. So the k-th time that a device is busy with a
    phase of a layer for a group, it is so for the group's k-th batch.
    """
    counts: defaultdict[Name, int] = defaultdict(int)
    iterations: defaultdict[Name, int] = defaultdict(int)
    ends: dict[Name, float] = {}
    found = []
    for busy in sorted(log, key=lambda one: one.start):
        phase = busy.phase
        if phase.name == "barrier":
            continue
        if phase.name == "step" and phase.group < 0:  # of an iteration, also where a group has no batch in it
            iterations[busy.worker] += 1
        if busy.worker in iterations:
            batch = iterations[busy.worker] - 1
        else:
            key = (device_of(busy.worker), phase.name, phase.group, phase.layer)
            batch = counts[key]
            counts[key] += 1
        found.append(Span(busy, batch, busy.start - ends.get(busy.worker, 0.0)))
        ends[busy.worker] = busy.end
    return found


def chrome_trace(log: Sequence[Busy]) -> dict[str, Any]:
    """The log in the Chrome trace event format.

    Parameters
    ----------
    log : sequence of Busy
        Of a run in virtual time or in processes.

    Returns
    -------
    dict
        To be written as JSON. `traceEvents` has names and order of devices and streams (`ph` "M"); phases ("X") with
        `ts` and `dur` in microseconds, rounded to eighths, and in `args` layer, group (-1: all groups together), batch,
        tokens `n`, attention work `w` and microseconds waited; and in asynchronous runs a flow ("s", "t", "f") from
        every dispatch-send over each MoE device to the combine-receive of the same layer and batch.

    Examples
    --------
    >>> from asapmodel.reference.steps import Phase
    >>> busy = Busy(("moe", 0, "all"), Phase("moe", 64, 0, 3, 1), 0.002, 0.003)
    >>> event = chrome_trace([busy])["traceEvents"][-1]
    >>> event["name"], event["ts"], event["dur"], event["args"]["tokens"]
    ('moe 3', 2000.0, 1000.0, 64)
    """
    spans = make_spans(log)
    workers = sorted({busy.worker for busy in log}, key=lane_order)
    devices = list(dict.fromkeys(device_of(worker) for worker in workers))
    threads = {worker: {"pid": devices.index(device_of(worker)) + 1, "tid": k + 1} for k, worker in enumerate(workers)}
    events = [event for worker in workers for event in _names(worker, threads[worker])]
    events += [_slice(span, threads[span.busy.worker]) for span in spans]
    # Behind the slices: a viewer ties a flow to the slice that it has seen begin at this instant.
    for number, stops in enumerate(_flows(spans), start=1):
        for kind, busy in zip("stf", stops, strict=True):
            ends = {"bp": "e"} if kind == "f" else {}
            place = {"id": number, "ts": _microseconds(busy.start), **threads[busy.worker]}
            events.append({"ph": kind, "name": "batch", "cat": "flow", **place, **ends})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_chrome_trace(log: Sequence[Busy], path: str | Path) -> None:
    """Write the log as a file for trace viewers; see `chrome_trace`."""
    Path(path).write_text(json.dumps(chrome_trace(log)), encoding="utf-8")


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6 * _TICKS) / _TICKS


def _names(worker: Name, thread: Event) -> list[Event]:
    """Metadata: names of device and stream, and their places from top to bottom."""
    match device_of(worker):
        case ("attention", i, j):
            device = f"group {i}, member {j}"
        case (_, e):
            device = f"MoE device {e}"
    texts = {"process_name": device, "thread_name": f"{stream_of(worker)} stream"}
    places = {"process_sort_index": thread["pid"], "thread_sort_index": thread["tid"]}
    named = [{"name": name, "args": {"name": text}} for name, text in texts.items()]
    placed = [{"name": name, "args": {"sort_index": place}} for name, place in places.items()]
    return [{"ph": "M", "ts": 0.0, **event, **thread} for event in named + placed]


def _slice(span: Span, thread: Event) -> Event:
    busy, phase = span.busy, span.busy.phase
    start = _microseconds(busy.start)
    return {
        "ph": "X",
        "name": f"{phase.name} {phase.layer}",
        "cat": phase.name,
        "ts": start,
        "dur": _microseconds(busy.end) - start,
        **thread,
        "args": {
            "layer": phase.layer,
            "group": phase.group,
            "batch": span.batch,
            "tokens": phase.n,
            "attention_work": phase.w,
            "waited_us": round(span.waited * 1e6, 3),
        },
    }


def _flows(spans: Sequence[Span]) -> Iterator[tuple[Busy, Busy, Busy]]:
    """Dispatch-send of an attention device, a MoE device's phase and the combine-receive of the former, per batch."""
    experts: defaultdict[Name, list[Busy]] = defaultdict(list)
    back: dict[Name, Busy] = {}
    for span in spans:
        key = (span.busy.phase.group, span.busy.phase.layer, span.batch)
        if span.busy.worker[0] == "moe" and span.busy.phase.name == "moe":
            experts[key].append(span.busy)
        elif span.busy.phase.name == "combine_recv":
            back[device_of(span.busy.worker), *key] = span.busy
    for span in spans:
        if span.busy.phase.name == "dispatch_send":
            key = (span.busy.phase.group, span.busy.phase.layer, span.batch)
            end = back.get((device_of(span.busy.worker), *key))
            if end is not None:  # a log may be a part of one
                yield from ((span.busy, one, end) for one in experts[key])
