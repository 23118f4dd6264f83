"""Pictures of runs, as Vega-Lite specifications; how they look: `asapmodel.timelines.picture`."""

from collections.abc import Mapping, Sequence

from asapmodel.reference.system import Name
from asapmodel.reference.timeline import device_of, drawn, lane_order, make_spans, stream_of, track_of
from asapmodel.reference.virtual_time import Busy
from asapmodel.timelines.picture import Panel, Spec, figure
from asapmodel.timelines.spans import Track

__all__ = ["comparison_figure", "timeline_figure"]


def timeline_figure(
    log: Sequence[Busy], first: float, last: float, *, every_device: bool = False, title: str = "", width: int = 860
) -> Spec:
    """A picture of a part of a run.

    Parameters
    ----------
    log : sequence of Busy
        Of a run in virtual time or in processes.
    first, last : float
        From when to when, seconds.
    every_device : bool
        Whether to show all devices; else the first of every attention group, and the first MoE device.
    title : str
        Above the lanes.
    width : int
        Of the lanes, pixels.

    Returns
    -------
    dict
        Vega-Lite specification.

    Raises
    ------
    ValueError
        If nothing happens in that time.
    """
    return comparison_figure({title: log}, first, last, every_device=every_device, width=width)


def comparison_figure(
    logs: Mapping[str, Sequence[Busy]], first: float, last: float, *, every_device: bool = False, width: int = 860
) -> Spec:
    """Pictures of several runs below each other with the same time axis.

    Parameters
    ----------
    logs : mapping of title to log
        From top to bottom.
    first, last, every_device, width
        As for `timeline_figure`.

    Returns
    -------
    dict
        Vega-Lite specification.

    Raises
    ------
    ValueError
        If nothing happens in a run in that time.
    """
    panels = []
    for title, log in logs.items():
        lanes = _lanes(log, every_device)
        spans = [one for one in drawn(make_spans(log)) if one.track in lanes and one.start < last and one.end > first]
        if not spans and last > first:
            end = max((busy.end for busy in log), default=0.0)
            raise ValueError(
                f"nothing happens from {first:g} to {last:g} s; the run ends at {end:g} s: choose a time before that"
            )
        panels.append(Panel(title, lanes, spans))
    return figure(panels, first, last, width)


def _lanes(log: Sequence[Busy], every_device: bool) -> dict[Track, str]:
    """Names of the lanes of the workers to show, from top to bottom."""
    workers = sorted({busy.worker for busy in log}, key=lane_order)
    shown = [worker for worker in workers if every_device or _is_first(worker)]
    return {track_of(worker): _lane(worker, workers, every_device) for worker in shown}


def _is_first(worker: Name) -> bool:
    """Whether its device is the first of its group, or of the MoE devices."""
    return bool(device_of(worker)[-1] == 0)


def _lane(worker: Name, workers: Sequence[Name], every_device: bool) -> str:
    """Name of a lane; of a stream only where its device has several."""
    device = device_of(worker)
    streams = sum(device_of(other) == device for other in workers)
    stream = f", {stream_of(worker)}" if streams > 1 else ""
    if device[0] == "moe":
        return f"MoE device {device[1]}{stream}"
    return f"group {device[1]}" + (f", member {device[2]}" if every_device else "") + stream
