"""`timeline`: what every stream of a system did in a window of a run."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asapmodel import units
from asapmodel.engines.graph import run
from asapmodel.errors import InputError
from asapmodel.files import atomic, check_writable
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.timelines.chrome import Event, threads_of, trace_events, write_trace
from asapmodel.timelines.free import free_tasks
from asapmodel.timelines.lockstep import lockstep_tasks, tasks_per_iteration
from asapmodel.timelines.picture import Panel, Spec, figure, to_png, to_svg
from asapmodel.timelines.tasks import StreamUse, Tasks, lane_name
from asapmodel.timelines.traffic import ARRIVALS, request_events
from asapmodel.verbs.evaluate import check_rate, rate_of
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = ["MOST_BOXES", "MOST_TASKS", "SUFFIXES", "Timeline", "check_output", "timeline"]

MOST_TASKS = 2_000_000
"""Tasks that a window may hold: their trace has some 600 MB, about as much as viewers read."""

MOST_BOXES = 400
"""Boxes that a lane of a picture may hold: with more they run together."""

SUFFIXES = (".json", ".json.gz", ".svg", ".png")
"""Of a trace, a compressed one, and two kinds of pictures."""

_WIDTH = 1400  # pixels of a picture's lanes


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What a system did from `start_s` to `end_s` of a run that ends at `run_end_s`.

    `tasks` has a row per task; `requests` and `outcome` are those of the whole run.
    """

    scenario: str
    system: str
    rate_rps: float
    start_s: float
    end_s: float
    run_end_s: float
    tasks: Tasks
    requests: Requests
    outcome: Outcome

    @property
    def streams(self) -> list[StreamUse]:
        """Shares of the window in which each stream was busy, blocked, and idle, and its tasks, from top to bottom."""
        return self.tasks.use(self.start_s, self.end_s)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("scenario", "system", "rate_rps", "start_s", "end_s", "run_end_s")
        return {name: getattr(self, name) for name in names} | {"streams": [asdict(one) for one in self.streams]}

    def events(self) -> Iterator[Event]:
        """The window as a trace; see `asapmodel.timelines.chrome.trace_events`.

        Slices of all tasks served in the window, whole; in free execution flows from dispatch-send over the experts to
        combine-receive; arrivals and the number of waiting requests.
        """
        window = self.start_s, self.end_s
        tracks = (ARRIVALS, *self.tasks.tracks)
        flows = self.tasks.flows(*window) if self.system == "asap" else ()
        traffic = request_events(self.requests, self.outcome, *window, threads_of(tracks)[ARRIVALS])
        return trace_events(tracks, self.tasks.spans(*window), flows, traffic)

    def picture(self) -> Spec:
        """The window as a picture, a Vega-Lite specification; see `asapmodel.timelines.picture`.

        Raises
        ------
        InputError
            If a lane would have more than `MOST_BOXES` boxes.
        """
        most = max(one.tasks for one in self.streams)
        if most > MOST_BOXES:
            length = self.end_s - self.start_s
            problem = f"{length:.4g} s are {most:,} boxes on a lane, more than a picture can show"
            remedy = f"give {_short(length * MOST_BOXES / most)} or less, or a trace (-o trace.json) for a viewer"
            raise InputError("--for", "", problem, remedy)
        lanes = {track: lane_name(track) for track in self.tasks.tracks}
        title = f"{self.scenario}, {self.rate_rps:g} requests/s"
        panel = Panel(title, lanes, self.tasks.spans(self.start_s, self.end_s))
        return figure([panel], self.start_s, self.end_s, _WIDTH)

    def write(self, path: str | Path, force: bool = False) -> None:
        """Write a trace or a picture, as the suffix says.

        Parameters
        ----------
        path : path-like
            With one of `SUFFIXES`.
        force : bool
            Whether an existing file may be replaced.

        Raises
        ------
        InputError
            If the suffix is another one, the file cannot be written, or the window has too much for a picture.
        """
        kind = check_output(path, force)
        if kind in (".json", ".json.gz"):
            with atomic(path, force) as stream:
                write_trace(stream, self.events())
            return
        spec = self.picture()
        data = to_png(spec) if kind == ".png" else to_svg(spec).encode()
        with atomic(path, force) as stream:
            stream.buffer.write(data)


def timeline(
    scenario: Scenario,
    rate: float | None = None,
    start: float | str = 0.0,
    duration: float | str | None = None,
    prepared: Prepared | None = None,
) -> Timeline:
    """Run a scenario's request sequence through the graph engine and tell what every stream did in a window.

    Parameters
    ----------
    scenario : Scenario
        What to run.
    rate : float, optional
        Requests per second; default the workload's rate, or the recorded rate of a replayed trace.
    start, duration : float or str
        The window: seconds, or text with a unit; default from the beginning, to the end of the run.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it between calls.

    Returns
    -------
    Timeline
        The requests are those of ``evaluate(scenario, rate, engine="graph")``.

    Raises
    ------
    InputError
        If there is no rate, or the window is empty, after the end of the run, or has more than `MOST_TASKS` tasks.
    """
    first = _seconds("--from", start)
    length = math.inf if duration is None else _seconds("--for", duration)
    if length == 0:
        raise InputError("--for", "", "is 0", "give a time greater than 0, e.g. 50ms")
    if rate is not None:
        check_rate(rate)
    ready = prepared or prepare(scenario)
    speed = rate_of(scenario, rate, ready)
    requests = ready.requests(speed)
    tasks, outcome, run_end = _run(ready, requests, first, first + length)
    return Timeline(
        scenario=scenario.name,
        system=scenario.layout.kind,
        rate_rps=speed,
        start_s=first,
        end_s=min(first + length, run_end),
        run_end_s=run_end,
        tasks=tasks,
        requests=requests,
        outcome=outcome,
    )


def check_output(path: str | Path, force: bool = False) -> str:
    """Return the one of `SUFFIXES` that a file has, if it can be written.

    Raises
    ------
    InputError
        If not.
    """
    for suffix in reversed(SUFFIXES):
        if str(path).endswith(suffix):
            check_writable(path, force)
            return suffix
    raise InputError(str(path), "", "is neither a trace nor a picture", "end the name in .json, .json.gz, .svg or .png")


def _run(ready: Prepared, requests: Requests, first: float, last: float) -> tuple[Tasks, Outcome, float]:
    """Tasks of the window, times of all requests, and the end of the run."""
    scenario, costs = ready.scenario, ready.costing.costs
    layout, policy = scenario.layout, scenario.policy
    done = run(layout, policy, costs, requests, MOST_TASKS + 1, (first, last))
    if first >= done.makespan_s:
        problem = f"{first:g} s is not before the end of the run, {done.makespan_s:.6g} s"
        raise InputError("--from", "", problem, "give an earlier time, or raise workload.duration")
    length = min(last, done.makespan_s) - first
    if layout.kind == "asap":
        if done.log.recorded[0] > MOST_TASKS:
            raise _too_much(length, float(done.log.start[-1]) - first)
        return free_tasks(layout, policy, costs, requests, done), done.outcome, done.makespan_s
    room = MOST_TASKS // tasks_per_iteration(layout, costs)
    tasks, count = lockstep_tasks(layout, policy, costs, requests, (first, last), room)
    if count > room:
        raise _too_much(length, length * room / count)
    return tasks, done.outcome, done.makespan_s


def _too_much(length: float, covered: float) -> InputError:
    """The refusal of a window of which only the part `covered`, seconds, could be kept."""
    problem = f"{length:.4g} s hold more than {MOST_TASKS:,} tasks"
    return InputError("--for", "", problem, f"give {_short(covered)} or less")


def _short(seconds: float) -> str:
    """A round time that is not longer.

    Examples
    --------
    >>> _short(0.0234), _short(0.999), _short(287.0)
    ('20ms', '900ms', '200s')
    """
    unit = 10.0 ** math.floor(math.log10(seconds))
    return units.si_time(math.floor(seconds / unit) * unit, 1).replace(" ", "")


def _seconds(option: str, value: float | str) -> float:
    try:
        seconds = units.seconds(value)
    except units.UnitError as error:
        raise InputError(option, "", error.problem, error.remedy) from None
    if seconds < 0:
        raise InputError(option, "", f"is {value}", "give a time that is not negative, e.g. 10s")
    return seconds
