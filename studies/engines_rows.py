"""Tables of what the graph engine says of the random cases: their rows, reading and appending."""

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, EARLIER_SEED, HELD_OUT_SEED, RECENT_SEED

__all__ = ["DATA", "FILES", "SEEDS", "Row", "append_row", "read_rows"]

DATA = Path(__file__).parent / "data"
SEEDS = {
    "development": DEVELOPMENT_SEED,
    "earlier": EARLIER_SEED,
    "recent": RECENT_SEED,
    "held_out": HELD_OUT_SEED,
}
FILES = {name: f"engines_truth_{name}.csv" for name in SEEDS}


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one utilisation; seconds, half-widths relative."""

    index: int
    hash: str
    system: str
    utilisation: float
    rate_rps: float
    saturation_rps: float
    saturation_error: float  # relative standard error
    mean_s: float
    mean_half_width: float
    p99_s: float
    p99_half_width: float
    p50_s: float
    p90_s: float
    std_s: float
    queueing_s: float
    kernel_s: float
    waiting_s: float
    attention: float  # busy shares
    moe: float
    batch_tokens_mean: float
    barrier_waste: float
    requests: int
    cpu_s: float


_TYPES = {field.name: field.type for field in fields(Row)}


def read_rows(path: Path) -> list[Row]:
    """Rows of a table of truth."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    return [Row(**{name: _TYPES[name](text) for name, text in row.items()}) for row in rows]  # type: ignore[operator]


def append_row(path: Path, row: Row, seed: int) -> None:
    """Append a row, with a header if the file is new."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        if new:
            stream.write(f"# Graph engine on the cases of seed {seed}; python -m asapmodel.studies.engines_truth\n")
        writer = csv.DictWriter(stream, list(_TYPES), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(asdict(row))
