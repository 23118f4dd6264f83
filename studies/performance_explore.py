"""How fast is exploration? Whole explorations by number of worker processes; a part of `docs/performance.md`."""

import os
import time
from dataclasses import dataclass

from asapmodel.exploration.space import Space
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.verbs.explore import explore

__all__ = ["SIZES", "Timed", "exploration_table", "measure_exploration", "space_text"]

SIZES = {"small": 1, "10,000": 5, "100,000": 46}
"""Names of the spaces, and how many values `max_batch_tokens`-like keys have in each."""

_POLICIES = """
pairing = ["locked", "rolling"]
min_batch_tokens = [{sizes}]
exclusive_tokens = [8192, 16384, 32768]
batch_window = ["0 s", "0.05 s", "0.1 s"]
chunk_tokens = [4096, 8192, 16384]
"""


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
    """One exploration."""

    name: str
    workers: int
    points: int
    seconds: float

    def row(self) -> list[str]:
        """A row of the table."""
        each = self.workers * self.seconds / self.points
        return [self.name, f"{self.points:,}", str(self.workers), plain(self.seconds), plain(1e3 * each)]


def measure_exploration(name: str, workers: int) -> Timed:
    """Explore a space from nothing; the start of the workers counts."""
    space = Space.parse(space_text(SIZES[name]))
    start = time.perf_counter()
    found = explore(space, workers=workers)
    return Timed(name, workers, len(found.table), time.perf_counter() - start)


def exploration_table(large: bool) -> str:
    """Markdown table over spaces and workers, up to one a core; the largest space only if asked for."""
    cores = os.cpu_count() or 1
    runs = [measure_exploration("small", count) for count in sorted({1, 2, cores})]
    runs.append(measure_exploration("10,000", cores))
    if large:
        runs.append(measure_exploration("100,000", cores))
    header = ["space", "feasible points", "workers", "wall s", "ms a point and worker"]
    return markdown_table(header, [run.row() for run in runs], (1, 2, 3, 4))
