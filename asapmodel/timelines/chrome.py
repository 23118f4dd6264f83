"""Traces in the Chrome trace event format (JSON object format), which Perfetto (https://ui.perfetto.dev) opens.

A process for each device, a thread for each of its streams, a slice for each phase, and flows from slice to slice.
Events are made and written one by one: a trace may be larger than memory.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from asapmodel.timelines.spans import Span, Track

__all__ = ["Event", "counter_event", "instant_event", "microseconds", "threads_of", "trace_events", "write_trace"]

Event = dict[str, Any]
Stop = tuple[Track, float]

_TICKS = 8  # of a microsecond: eighths are exact in binary, so no viewer's rounding makes phases of a stream overlap


def microseconds(seconds: float) -> float:
    """Microseconds, rounded to eighths.

    Examples
    --------
    >>> microseconds(1.23456e-3)
    1234.5
    """
    return round(seconds * 1e6 * _TICKS) / _TICKS


def threads_of(tracks: Sequence[Track]) -> dict[Track, Event]:
    """Process and thread numbers by track, counted from 1 in their order."""
    devices = list(dict.fromkeys(track.device for track in tracks))
    return {track: {"pid": devices.index(track.device) + 1, "tid": k + 1} for k, track in enumerate(tracks)}


def trace_events(
    tracks: Sequence[Track], spans: Iterable[Span], flows: Iterable[Sequence[Stop]] = (), others: Iterable[Event] = ()
) -> Iterator[Event]:
    """All events of a trace.

    Parameters
    ----------
    tracks : sequence of Track
        From top to bottom, those of a device together.
    spans : iterable of Span
        In order of their starts.
    flows : iterable of sequences of (track, time)
        Where an arrow starts, passes and ends: at beginnings of spans; seconds.
    others : iterable of events
        Put between slices and flows; see `counter_event` and `instant_event`.

    Yields
    ------
    dict
        Names and places of devices and streams (`ph` "M"), slices ("X") with `ts` and `dur` in microseconds, others,
        and flows ("s", "t", "f").
    """
    threads = threads_of(tracks)
    for track in tracks:
        yield from _names(track, threads[track])
    for span in spans:
        yield _slice(span, threads[span.track])
    yield from others
    # Behind the slices: a viewer ties a flow to the slice that it has seen begin at this instant.
    for number, stops in enumerate(flows, start=1):
        last = len(stops) - 1
        for k, (track, time) in enumerate(stops):
            kind = "s" if k == 0 else "f" if k == last else "t"
            ends = {"bp": "e"} if kind == "f" else {}
            place = {"id": number, "ts": microseconds(time), **threads[track]}
            yield {"ph": kind, "name": "batch", "cat": "flow", **place, **ends}


def counter_event(name: str, seconds: float, value: float, thread: Event) -> Event:
    """The value of a counter from an instant on; counters belong to the thread's process."""
    return {"ph": "C", "name": name, "ts": microseconds(seconds), **thread, "args": {name: value}}


def instant_event(name: str, seconds: float, args: Mapping[str, float], thread: Event) -> Event:
    """Something that happens at an instant on a thread."""
    return {"ph": "i", "s": "t", "name": name, "ts": microseconds(seconds), **thread, "args": dict(args)}


def write_trace(stream: TextIO, events: Iterable[Event]) -> None:
    """Write a trace as JSON, an event a line."""
    stream.write('{"displayTimeUnit": "ms", "traceEvents": [')
    for k, event in enumerate(events):
        stream.write((",\n" if k else "\n") + json.dumps(event, allow_nan=False))
    stream.write("\n]}\n")


def _names(track: Track, thread: Event) -> list[Event]:
    """Metadata: names of device and stream, and their places from top to bottom."""
    texts = {"process_name": track.device, "thread_name": track.stream}
    places = {"process_sort_index": thread["pid"], "thread_sort_index": thread["tid"]}
    named = [{"name": name, "args": {"name": text}} for name, text in texts.items()]
    placed = [{"name": name, "args": {"sort_index": place}} for name, place in places.items()]
    return [{"ph": "M", "ts": 0.0, **event, **thread} for event in named + placed]


def _slice(span: Span, thread: Event) -> Event:
    start = microseconds(span.start)
    return {
        "ph": "X",
        "name": f"{span.phase} {span.layer}",
        "cat": span.phase,
        "ts": start,
        "dur": microseconds(span.end) - start,
        **thread,
        "args": {"layer": span.layer, "group": span.group, **span.args},
    }
