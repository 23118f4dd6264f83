"""How fast is it? Measures the graph engine and the command line on this machine; writes `docs/performance.md`.

Run as ``python -m asapmodel.studies.performance [--large]``, some minutes on a quiet machine; what is measured is
printed as it comes. Times are medians;
processes and explorations are timed from outside, engines by CPU time of one thread, so that other load on the machine
matters little.
"""

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from asapmodel.scenario import Scenario
from asapmodel.studies.engines_speed import judged
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.studies.performance_explore import error_table, exploration_table
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.blame import blame
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import Prepared, prepare
from asapmodel.verbs.explain import explain
from asapmodel.verbs.plan import plan
from asapmodel.verbs.tune import tune

__all__ = ["EngineSpeed", "engine_speed", "main", "process_seconds"]

_MILLION = 1_000_000
_SHORT = {"max_prompt_tokens": 4096, "max_batch_tokens": 4096}  # or the buffers of 32 groups would not fit
_COMMAND = [sys.executable, "-m", "asapmodel"]


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """CPU seconds of one run (median of several) and what it did."""

    name: str
    requests: int
    tasks: int
    seconds: float

    def row(self) -> list[str]:
        """A row of the table."""
        return [
            self.name,
            f"{self.requests:,}",
            f"{self.tasks:,}",
            f"{self.seconds:.3f}",
            f"{self.tasks / self.seconds / 1e6:.1f}",
            f"{self.seconds / self.requests * 1e6:.1f}",
        ]


def engine_speed(name: str, ready: Prepared, rate: float, rounds: int = 7) -> EngineSpeed:
    """Time runs of one request sequence after a warm-up."""
    requests = ready.requests(rate)
    tasks = ready.run(requests).tasks
    seconds = _median_cpu(lambda: ready.run(requests), rounds)
    return EngineSpeed(name, len(requests.arrival), tasks, seconds)


def _median_cpu(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def process_seconds(arguments: Sequence[str], rounds: int = 5) -> tuple[float, float]:
    """Median wall and CPU seconds of a whole process, after one run that is not counted."""
    wall, cpu = [], []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for k in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if k:
            wall.append(time.perf_counter() - start)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def million() -> tuple[EngineSpeed, float]:
    """A million requests of the paper's lengths at 14 requests/s; also the peak memory of this process, bytes."""
    ready = prepare(Scenario.load("paper-asap"))
    rng = np.random.default_rng(1)
    prompt = ready.traffic.backlog(50_000).prompt
    arrival = np.cumsum(rng.exponential(size=_MILLION)) / 14.0
    requests = make_requests(arrival, prompt[rng.integers(0, len(prompt), size=_MILLION)])
    start = time.process_time()
    tasks = ready.run(requests).tasks
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return EngineSpeed("asap, a million requests at 14 requests/s", _MILLION, tasks, seconds), peak


def _wall(call: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def questions() -> str:
    """Markdown table of wall times of the slower verbs, warm."""
    scenario = Scenario.load("paper-asap")
    default = Scenario.load("paper-default")
    calls: dict[str, tuple[str, Callable[[], object], int]] = {
        "capacity of paper-asap": ("", lambda: capacity(scenario), 5),
        "explain paper-asap": ("1", lambda: explain(scenario), 5),
        "explain paper-default": ("1", lambda: explain(default), 5),
        "explain paper-asap, with other choices": ("", lambda: explain(scenario, choices=True), 3),
        "blame of paper-asap at 8 requests/s": ("", lambda: blame(scenario, 8.0), 3),
        "tune paper-asap": ("", lambda: tune(scenario), 1),
        "plan three-classes": ("10", lambda: plan("three-classes"), 1),
    }
    rows = []
    for name, (target, call, rounds) in calls.items():
        rows.append([name, target, judged(plain(_wall(call, rounds)), target)])
        print("question:", *rows[-1], sep="  ", flush=True)
    return markdown_table(["question", "target s", "wall s"], rows, (1, 2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    parser.add_argument("--large", action="store_true", help="explore 100,000 points, too")
    given = parser.parse_args(arguments)
    folder = given.output
    asap = prepare(Scenario.load("paper-asap"))
    wide = prepare(Scenario.load("paper-asap").replace(D=32, E=64, **_SHORT))
    speeds = [
        engine_speed("paper-asap at 4 requests/s, 300 s", asap, 4.0),
        engine_speed("paper-asap at 18 requests/s, 300 s", asap, 18.0),
        engine_speed("asap with 32 groups at 40 requests/s, 300 s", wide, 40.0),
        engine_speed("paper-chunked at 10 requests/s, 300 s", prepare(Scenario.load("paper-chunked")), 10.0),
    ]
    long, peak = million()
    for speed in [*speeds, long]:
        print("engine:", *speed.row(), sep="  ", flush=True)
    engine = markdown_table(
        ["run", "requests", "task completions", "CPU s", "million tasks/s", "us per request"],
        [speed.row() for speed in [*speeds, long]],
        (1, 2, 3, 4, 5),
    )
    targets = {
        "--help": "0.5",
        "evaluate paper-asap --rate 4 --json": "3",
        "explain paper-asap": "1",
        "evaluate paper-asap --rate 4 --engine graph --json": "3",
        "capacity paper-asap": "",
        "capacity paper-chunked --engine graph": "",
        "capacity paper-asap --engine graph": "",
    }
    commands = {"python -c pass": ("", [sys.executable, "-c", "pass"])}
    for line, target in targets.items():
        commands[f"asapmodel {line}"] = target, [*_COMMAND, *line.split()]
    rows = []
    for name, (target, arguments) in commands.items():
        wall, cpu = process_seconds(arguments)
        rows.append([f"`{name}`", target, judged(plain(wall), target), plain(cpu)])
        print("command:", *rows[-1], sep="  ", flush=True)
    text = TEMPLATE.format(
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {version('numpy')}, numba {version('numba')}",
        engine=engine,
        processes=markdown_table(["command", "target s", "wall s", "CPU s"], rows, (1, 2, 3)),
        peak=plain(peak / 1e9),
        questions=questions(),
        exploration=exploration_table(given.large),
        errors=error_table(),
    )
    folder.mkdir(exist_ok=True)
    (folder / "performance.md").write_text(text, encoding="utf-8")
    print(text)


TEMPLATE = """\
# Performance

Written by `python -m asapmodel.studies.performance` on {machine}.
`make bench` repeats the engine's part with
pytest-benchmark. Compiled code is warm ([kept on disk](background/compiled-code.md) at its first use, which takes some
ten seconds once).

## Graph engine, one core

A task is one phase of one layer of one batch on one resource. In lockstep all layers of an iteration are one closed
form, so its tasks are counted, not simulated.

{engine}

Target: 5 million task completions per second on `paper-asap` at 18 requests/s; a million requests in under two minutes
and 4 GB. Peak memory of the process with the million requests: {peak} GB.

For comparison, an event-driven simulator without per-layer events was measured at 0.35 ms per request (Vidur, linear
predictor, cached; one machine of the same kind), and one with learned operator times at 12 ms (Frontier).

## Command line, whole processes, second run

{processes}

Some 0.4 s are packages being loaded; numba is not among them.

## Questions in a running process

{questions}

## Exploration

Whole explorations of both systems on up to 64 devices (layouts x policies), from nothing, with the start of the worker
processes. Every feasible point is screened roughly; what could be in the front by the margins of the effort is looked
at again, and in full what then still could.

{exploration}

Target: 10,000 points in under 60 s on 2 cores, 100,000 in under 480 s. Workers on a machine with other load, or on two
threads of one core, take more CPU time for the same work.

What screening says against the full effort on random points of the space of 10,000: smallest, median and largest
relative error. *Margins*: by what factors a rate near the stability limit may be higher, and a TTFT lower, in full.

{errors}

Where the TTFT hardly rises with the load, the rate at which it meets an objective is uncertain: there the SLO
throughput of a rough row may be far off, and its upper bound (`slo_throughput_most_rps`) is what counts.

Of published tools, per evaluated point on one machine of the same kind:

| tool | ms a point | what a point is |
| --- | --: | --- |
| light-llm-simulator | 1.1 | closed form of decode steps, no arrivals |
| InferSim | 1.1 | closed form of one step, no arrivals |
| aiconfigurator 0.12, look-ups memoised | 9.6 | one mean TTFT, queueing as a constant factor |
| GenZ 0.0.16 | 75 | roofline of one step |
| aiconfigurator 0.12, as it is | 619 | the same |
| msmodeling | 8,700 | one forward pass, operator by operator |

None has a distribution of TTFT, or searches asynchronous systems.
"""

if __name__ == "__main__":
    main()
