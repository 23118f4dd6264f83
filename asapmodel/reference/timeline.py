"""Who was busy with what and when: a run's log as spans with batches and waiting, and as a file for trace viewers.

The file's format: `asapmodel.timelines.chrome`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asapmodel.reference.system import Name
from asapmodel.reference.virtual_time import Busy
from asapmodel.timelines.chrome import trace_events, write_trace
from asapmodel.timelines.spans import Span as Drawn
from asapmodel.timelines.spans import Track

__all__ = [
    "Span",
    "chrome_trace",
    "device_of",
    "drawn",
    "lane_order",
    "make_spans",
    "stream_of",
    "track_of",
    "write_chrome_trace",
]

_STREAMS = {  # from top to bottom, devices and streams as a batch goes through them
    "attention": ("all", "compute", "send", "receive"),
    "moe": ("all", "receive", "compute", "send"),
}


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


def track_of(worker: Name) -> Track:
    """The track of a worker."""
    match device_of(worker):
        case ("attention", i, j):
            device = f"group {i}, member {j}"
        case (_, e):
            device = f"MoE device {e}"
    return Track(device, f"{stream_of(worker)} stream", shared=worker[0] == "moe")


def drawn(spans: Iterable[Span]) -> Iterator[Drawn]:
    """Spans as traces and pictures show them."""
    for span in spans:
        busy, phase = span.busy, span.busy.phase
        args = {
            "batch": span.batch,
            "tokens": phase.n,
            "attention_work": phase.w,
            "waited_us": round(span.waited * 1e6, 3),
        }
        shade = span.batch % 2
        yield Drawn(track_of(busy.worker), phase.name, phase.layer, phase.group, shade, busy.start, busy.end, args)


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
    tracks = [track_of(worker) for worker in sorted({busy.worker for busy in log}, key=lane_order)]
    flows = ([(track_of(busy.worker), busy.start) for busy in stops] for stops in _flows(spans))
    return {"traceEvents": list(trace_events(tracks, drawn(spans), flows)), "displayTimeUnit": "ms"}


def write_chrome_trace(log: Sequence[Busy], path: str | Path) -> None:
    """Write the log as a file for trace viewers; see `chrome_trace`."""
    with Path(path).open("w", encoding="utf-8") as stream:
        write_trace(stream, chrome_trace(log)["traceEvents"])


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
