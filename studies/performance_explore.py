"""How fast is exploration, and how rough its screening? Whole explorations by number of worker processes.

A part of `docs/performance.md`; run as ``python -m asapmodel.studies.performance_explore [--large]`` it prints its
tables only. Every row is printed as soon as it is known.
"""

import argparse
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from asapmodel.engines.effort import CLOSE, QUICK, ROUGH, Effort
from asapmodel.exploration.designs import designs_of
from asapmodel.exploration.evaluation import Level, Task, evaluate
from asapmodel.exploration.space import Space
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.verbs.explore import explore

__all__ = ["SIZES", "Timed", "error_table", "exploration_table", "main", "measure_exploration", "space_text"]

SIZES = {"small": 1, "10,000": 5, "100,000": 42}
"""Names of the spaces, and how many values `max_batch_tokens`-like keys have in each."""

_POLICIES = """
pairing = ["locked", "rolling"]
min_batch_tokens = [{sizes}]
exclusive_tokens = [8192, 16384, 32768]
batch_window = ["0 s", "0.05 s", "0.1 s"]
chunk_tokens = [4096, 8192, 16384]
"""
_SAMPLE, _SEED, _RATE = 400, 20261130, 2.0  # of the error table; requests/s, below most stability limits


def space_text(steps: int) -> str:
    """A space of both systems on up to 64 devices with `steps` batch thresholds, some 2,500 points for each."""
    sizes = ", ".join(str(1024 + round(15360 * k / max(steps - 1, 1))) for k in range(steps))
    return f"""
scenario = ["paper-asap", "paper-chunked"]
objectives = ["slo_throughput_per_device", "devices"]
[vary]
D = {{ from = 1, to = 8, step = 1 }}
T = [1, 2, 4, 8]
E = {{ from = 8, to = 32, step = 4 }}
{_POLICIES.format(sizes=sizes)}
[constraints]
devices = {{ max = 64 }}
[confirm]
top = 0
"""


@dataclass(frozen=True, slots=True)
class Timed:
    """One exploration: seconds of wall, of all processes' CPU, and how many points were looked at again."""

    name: str
    workers: int
    points: int
    seconds: float
    cpu_seconds: float
    again: int
    full: int

    def row(self) -> list[str]:
        """A row of the table."""
        counts = [f"{self.points:,}", f"{self.again:,}", f"{self.full:,}", str(self.workers)]
        each = [plain(1e3 * value / self.points) for value in (self.workers * self.seconds, self.cpu_seconds)]
        return [self.name, *counts, plain(self.seconds), *each]


def _cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure_exploration(name: str, workers: int) -> Timed:
    """Explore a space from nothing; the start of the workers counts."""
    space = Space.parse(space_text(SIZES[name]))
    start, before = time.perf_counter(), _cpu()
    found = explore(space, workers=workers)
    efforts = found.table["effort"].value_counts()
    points, full = len(found.table), int(efforts.get("full", 0))
    again = points - int(efforts.get("rough", 0))
    return Timed(name, workers, points, time.perf_counter() - start, _cpu() - before, again, full)


def exploration_table(large: bool) -> str:
    """Markdown table over spaces and workers, up to one a core; the largest space only if asked for."""
    cores = os.cpu_count() or 1
    runs = [("small", count) for count in sorted({1, 2, cores})] + [("10,000", cores)]
    runs += [("100,000", cores)] if large else []
    rows = []
    for name, workers in runs:
        rows.append(measure_exploration(name, workers).row())
        print("exploration:", *rows[-1], sep="  ", flush=True)
    header = ["space", "feasible points", "looked at again", "in full", "workers", "wall s", "ms a point and worker"]
    return markdown_table([*header, "CPU ms a point"], rows, tuple(range(1, 8)))


def error_table() -> str:
    """Markdown table: what screening says of random points of the 10,000 against the full effort."""
    designs = designs_of(Space.parse(space_text(SIZES["10,000"])))
    numbers = np.random.default_rng(_SEED).choice(designs.count, _SAMPLE, replace=False)
    groups = tuple(designs.point(number) for number in sorted(numbers.tolist()))
    full = evaluate(Task(groups, "full", _RATE))
    rows = []
    levels: list[tuple[Level, Effort]] = [("rough", ROUGH), ("quick", QUICK), ("close", CLOSE)]
    for name, effort in levels:
        found = evaluate(Task(groups, name, _RATE))
        missed = int((found["slo_throughput_most_rps"] < full["slo_throughput_rps"]).sum())
        cells = [
            _spread(found[key] / full[key] - 1.0)
            for key in ("stability_limit_rps", "slo_throughput_rps", "ttft_mean_s")
        ]
        margins = f"{effort.limit_margin:g}, {effort.time_margin:g}"
        rows.append([name, *cells, margins, f"{missed} of {_SAMPLE}"])
        print("errors:", *rows[-1], sep="  ", flush=True)
    header = ["effort", "stability limit", "SLO throughput", f"mean TTFT at {_RATE:g} requests/s"]
    return markdown_table([*header, "margins", "higher in full than the margins allow"], rows, (1, 2, 3, 4, 5))


def _spread(errors: "pd.Series[float]") -> str:
    low, middle, high = np.nanquantile(errors.to_numpy(dtype=np.float64), [0.0, 0.5, 1.0]).tolist()
    return f"{100 * low:+.1f} / {100 * middle:+.1f} / {100 * high:+.1f} %"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="explore 100,000 points, too")
    given = parser.parse_args(arguments)
    for table in (error_table(), exploration_table(given.large)):
        print(table, flush=True)


if __name__ == "__main__":
    main()
