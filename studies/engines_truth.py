"""What the graph engine says of the random cases, as a table: the truth that an analytic engine is held against.

Run as ``python -m asapmodel.studies.engines_truth --seed development`` (half an hour of one core; rows are appended as
they come, and a restart continues). Per case the saturation throughput under a long backlog, then stationary runs at
shares of it (`engines_runs`). Lengths of runs depend on the speed of the machine, so that a second run gives other
digits within the stated half-widths.
"""

import argparse
from pathlib import Path

from asapmodel.studies.engines_cases import Case, draw
from asapmodel.studies.engines_rows import DATA, FILES, SEEDS, append_row, read_rows
from asapmodel.studies.engines_runs import measure, measure_saturation

__all__ = ["main", "utilisations"]

_SHARES = {0.3: 1.0, 0.6: 2.0, 0.8: 4.0, 0.9: 4.0, 0.95: 4.0}  # utilisation: share of a case's time


def utilisations(case: Case) -> tuple[float, ...]:
    """Shares of saturation at which a case is run: every third case also close to it."""
    return (0.3, 0.6, 0.8, 0.9, 0.95) if case.index % 3 == 0 else (0.3, 0.6, 0.8, 0.9)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is missing in a table of truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", choices=list(FILES), default="development")
    parser.add_argument("--count", type=int, default=150, help="cases")
    parser.add_argument("--seconds", type=float, default=6.0, help="CPU seconds of a case, at most")
    parser.add_argument("--folder", type=Path, default=DATA)
    given = parser.parse_args(arguments)
    path = given.folder / FILES[given.seed]
    there = {(row.index, row.utilisation): row.hash for row in read_rows(path)}
    for case in draw(SEEDS[given.seed], given.count):
        wanted = [share for share in utilisations(case) if there.get((case.index, share)) != case.hash]
        if not wanted:
            continue
        level = measure_saturation(case, (0.05 if case.system == "sync" else 0.2) * given.seconds)
        for share in wanted:
            row = measure(case, level, share, 0.8 * given.seconds * _SHARES[share] / sum(_SHARES.values()))
            append_row(path, row, case.seed)
            print(
                f"{case.index:4} {case.system} {share:4} mean {row.mean_s:8.3f} s +-{row.mean_half_width:6.2%} "
                f"p99 {row.p99_s:8.3f} +-{row.p99_half_width:6.2%} sat +-{row.saturation_error:.2%} "
                f"{row.requests:8} requests {row.cpu_s:5.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
