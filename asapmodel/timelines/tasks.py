"""All that the streams of a run did in a window, as columns: a window may hold a million tasks.

A task is *ready* when its batch has come to it, *due* when its stream has come to it as well, and starts then unless
something that it needs is not free: a buffer (free execution), or the others at a barrier (lockstep). So::

    ready <= due <= start <= end        waited = start - ready        blocked = start - due
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.timelines.spans import Span, Track

__all__ = ["PHASES", "Batches", "StreamUse", "Tasks", "group_track", "lane_name", "pool_track"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PHASES = (
    "step",
    "dense",
    "attention",
    "dispatch_send",
    "dispatch_recv",
    "moe",
    "combine_send",
    "combine_recv",
)
"""What a task may be; the column `phase` holds places in this tuple."""


def group_track(group: int, stream: str) -> Track:
    """A stream of an attention group: ``"all"``, ``"compute"``, ``"send"`` or ``"receive"``."""
    return Track(f"group {group}", f"{stream} stream")


def pool_track(stream: str) -> Track:
    """A stream of the pool of MoE devices."""
    return Track("MoE devices", f"{stream} stream", shared=True)


def lane_name(track: Track) -> str:
    """Device and stream in one line; the stream only where the device has several.

    Examples
    --------
    >>> lane_name(group_track(2, "all")), lane_name(pool_track("send"))
    ('group 2', 'MoE devices, send')
    """
    return track.device if _plain(track) == "all" else f"{track.device}, {_plain(track)}"


def _plain(track: Track) -> str:
    return track.stream.removesuffix(" stream")


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """One entry per batch.

    `number` counts the batches of a run in order of release, in lockstep the iterations; `shade` is 0 or 1 and differs
    between batches of a group that are active at once or follow each other. `work` is attention work, tokens^2.
    """

    number: Ints
    group: Ints
    shade: Ints
    prompts: Ints
    tokens: Ints
    work: Floats


@dataclass(frozen=True, slots=True)
class StreamUse:
    """What a stream did in a window: shares of the window's length, and the tasks that were served in it.

    `stream` is ``"compute"``, ``"send"`` or ``"receive"``, or ``"all"`` where the device has one for everything.
    """

    device: str
    stream: str
    busy: float
    blocked: float
    idle: float
    tasks: int


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """One entry per task in order of starts.

    `track` and `batch` are places in `tracks` and in the columns of `batches`, `phase` is one in `PHASES`. Times are
    seconds. A task that overlaps a window only in being blocked is in it too.
    """

    tracks: tuple[Track, ...]
    batches: Batches
    track: Ints
    phase: Ints
    layer: Ints
    batch: Ints
    ready: Floats
    due: Floats
    start: Floats
    end: Floats

    def within(self, first: float, last: float) -> NDArray[np.bool_]:
        """Which tasks were served between `first` and `last`, seconds."""
        return (self.end > first) & (self.start < last)

    def use(self, first: float, last: float) -> list[StreamUse]:
        """What each stream did between `first` and `last`, seconds."""
        count, length = len(self.tracks), last - first

        def share(begin: Floats, end: Floats) -> Floats:
            inside = np.clip(end, first, last) - np.clip(begin, first, last)
            return np.bincount(self.track, inside, count) / length

        busy, blocked = share(self.start, self.end), share(self.due, self.start)
        tasks = np.bincount(self.track[self.within(first, last)], minlength=count)
        rows = zip(self.tracks, busy.tolist(), blocked.tolist(), tasks.tolist(), strict=True)
        # Not below 0: a stream that is always busy adds up to 1 up to rounding.
        return [StreamUse(one.device, _plain(one), b, s, max(1.0 - b - s, 0.0), n) for one, b, s, n in rows]

    def spans(self, first: float, last: float) -> Iterator[Span]:
        """Tasks between `first` and `last`, seconds, as traces and pictures show them, whole."""
        at = np.flatnonzero(self.within(first, last))
        row, known = self.batch[at], self.batches
        columns = (
            *(self.track[at], self.phase[at], self.layer[at], known.group[row], known.shade[row]),
            *(self.start[at], self.end[at], known.number[row], known.prompts[row], known.tokens[row], known.work[row]),
            *(_rounded(self.start[at] - self.ready[at]), _rounded(self.start[at] - self.due[at])),
        )
        for track, phase, layer, group, shade, start, end, *more in zip(*map(np.ndarray.tolist, columns), strict=True):
            args = dict(zip(_ARGS, more, strict=True))
            yield Span(self.tracks[track], PHASES[phase], layer, group, shade, start, end, args)

    def flows(self, first: float, last: float) -> Iterator[list[tuple[Track, float]]]:
        """Beginnings of dispatch-send, MoE and combine-receive of a batch's layer, where all are in the window."""
        inside = self.within(first, last)
        key = self.batch * (int(self.layer.max(initial=0)) + 1) + self.layer
        stops = [np.flatnonzero(inside & (self.phase == PHASES.index(name))) for name in _FLOW]
        common = key[stops[0]]
        for one in stops[1:]:
            common = np.intersect1d(common, key[one], assume_unique=True)
        places = [one[np.argsort(key[one])][np.searchsorted(np.sort(key[one]), common)] for one in stops]
        for triple in zip(*(place.tolist() for place in places), strict=True):
            yield [(self.tracks[self.track[k]], float(self.start[k])) for k in triple]


_ARGS = ("batch", "prompts", "tokens", "attention_work", "waited_us", "blocked_us")
_FLOW = ("dispatch_send", "moe", "combine_recv")


def _rounded(seconds: Floats) -> Floats:
    """Microseconds to three decimals."""
    return np.round(seconds * 1e6, 3)
