"""Errors of an analytic engine on the random cases, from the tables of truth: no run of the graph engine.

For a look while developing::

    python -m asapmodel.studies.engines_errors --system asap --cases 0:60 --utilisation 0.3,0.6,0.8

prints a line per case and utilisation (errors of mean, p99, saturation), then medians and 95th percentiles by
utilisation and regime, and the worst ten. Up to utilisation 0.8 engines are compared at the same rate, above it at the
same utilisation, each of its own saturation throughput.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from asapmodel.engines import queueing
from asapmodel.engines.analysis import Analysis, Point, Problem
from asapmodel.solvers.queue_errors import UnstableError
from asapmodel.studies.engines_cases import Case, draw
from asapmodel.studies.engines_rows import DATA, FILES, SEEDS, Row, read_rows

__all__ = ["Builder", "Error", "case_errors", "group", "load", "slo_rate", "spread"]

Builder = Callable[[Problem], Analysis]

EQUAL_RATE_UP_TO = 0.8
_SLO_FROM = 0.6  # below it mean TTFT hardly depends on the rate, and a rate cannot be read off it


@dataclass(frozen=True, slots=True, eq=False)
class Error:
    """One case at one utilisation: truth, answer, relative errors (infinite: stable in truth, unstable here)."""

    case: Case
    row: Row
    mean_s: float
    p99_s: float
    saturation_rps: float
    slo_rps: float  # rate at which the answer's mean is the true one
    seconds: float  # of the point
    point: Point | None

    @property
    def mean(self) -> float:
        """Relative error of mean TTFT."""
        return self.mean_s / self.row.mean_s - 1

    @property
    def p99(self) -> float:
        """Relative error of the 99th percentile."""
        return self.p99_s / self.row.p99_s - 1

    @property
    def saturation(self) -> float:
        """Relative error of the saturation throughput."""
        return self.saturation_rps / self.row.saturation_rps - 1

    @property
    def slo(self) -> float:
        """Relative error of the SLO throughput when the objective is the true mean."""
        return self.slo_rps / self.row.rate_rps - 1


def load(seed: str, system: str | None = None, cases: slice = slice(None)) -> list[tuple[Case, list[Row]]]:
    """Cases with the rows of the table of truth that are there.

    Raises
    ------
    ValueError
        If a row is of another version of the generator.
    """
    rows: dict[int, list[Row]] = {}
    for row in read_rows(DATA / FILES[seed]):
        rows.setdefault(row.index, []).append(row)
    found = []
    for case in draw(SEEDS[seed], max(rows, default=-1) + 1)[cases]:
        some = rows.get(case.index, [])
        if any(row.hash != case.hash for row in some):
            raise ValueError(f"{FILES[seed]}: case {case.index} is of another version of the generator")
        if some and system in (None, case.system):
            found.append((case, some))
    return found


def _point(analysis: Analysis, rate: float) -> Point | None:
    try:
        return analysis.at(rate)
    except UnstableError:
        return None


def case_errors(
    case: Case, rows: Iterable[Row], analyse: Builder = queueing.analyse, slo: bool = False
) -> tuple[list[Error], float]:
    """Errors of one case, and the seconds that preparing it took.

    Parameters
    ----------
    case, rows
        As `load` returns them.
    analyse : callable, optional
        Makes an `Analysis` of a problem; default the queueing engine.
    slo : bool
        Whether to look for SLO throughputs (a dozen points each).
    """
    problem = case.problem
    start = time.thread_time()
    analysis = analyse(problem)
    _point(analysis, 0.5 * analysis.saturation_rps)  # what is computed when first asked for
    prepared = time.thread_time() - start
    found = []
    for row in rows:
        own = row.rate_rps if row.utilisation <= EQUAL_RATE_UP_TO else row.utilisation * analysis.saturation_rps
        start = time.thread_time()
        point = _point(analysis, own)
        seconds = time.thread_time() - start
        mean, p99 = (math.inf, math.inf) if point is None else (point.ttft.mean, point.ttft.quantile(0.99))
        rate = slo_rate(analysis, row.mean_s) if slo and row.utilisation >= _SLO_FROM else math.nan
        found.append(Error(case, row, mean, p99, analysis.saturation_rps, rate, seconds, point))
    return found, prepared


def slo_rate(analysis: Analysis, objective: float) -> float:
    """Largest rate below saturation with a mean TTFT of at most `objective` seconds; 0 if there is none.

    Bisection with the secant of `1 / mean`, which is nearly straight close to saturation.
    """
    low, high = 0.0, analysis.saturation_rps
    for share in (0.999, 0.99, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.03):
        point = _point(analysis, share * analysis.saturation_rps)
        if point is not None and point.ttft.mean <= objective:
            low = share * analysis.saturation_rps
            break
        high = share * analysis.saturation_rps
    if low == 0.0:
        return 0.0
    while high - low > 2e-4 * high:
        middle = (low + high) / 2
        point = _point(analysis, middle)
        low, high = (middle, high) if point is not None and point.ttft.mean <= objective else (low, middle)
    return (low + high) / 2


def spread(errors: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile of absolute errors."""
    size = np.abs(np.array([one for one in errors if not math.isnan(one)]))
    if size.size == 0:
        return math.nan, math.nan
    ordered = np.sort(size)  # not interpolated: infinities may be among them
    return float(np.median(ordered)), float(ordered[max(math.ceil(0.95 * len(ordered)) - 1, 0)])


def group(errors: Sequence[Error], name: str) -> dict[str, list[Error]]:
    """Errors by ``"utilisation"``, ``"system"`` or a word of `Case.regime`."""
    table: dict[str, list[Error]] = {}
    for error in errors:
        key = {"utilisation": f"{error.row.utilisation:g}", "system": error.case.system} | error.case.regime
        table.setdefault(key[name], []).append(error)
    return dict(sorted(table.items()))


def _line(error: Error) -> str:
    words = " ".join(f"{word:11}" for word in error.case.regime.values())
    row = error.row
    slo = "" if math.isnan(error.slo) else f"  slo {error.slo:+6.2%}"
    return (
        f"{error.case.index:4} {error.case.system} {row.utilisation:4} {words} "
        f"mean {row.mean_s:8.3f} {error.mean_s:8.3f} {error.mean:+7.1%}  "
        f"p99 {row.p99_s:8.3f} {error.p99_s:8.3f} {error.p99:+7.1%}  "
        f"sat {error.saturation:+6.2%}{slo}  (truth +-{row.mean_half_width:.1%} +-{row.p99_half_width:.1%})"
    )


def _summary(part: Sequence[Error]) -> str:
    """Medians and 95th percentiles."""
    mean, p99 = spread([e.mean for e in part]), spread([e.p99 for e in part])
    bias = float(np.median([e.mean for e in part]))
    saturation = spread(list({e.case.index: e.saturation for e in part}.values()))
    slo = spread([e.slo for e in part])
    last = "" if math.isnan(slo[0]) else f"  slo {slo[0]:6.2%} {slo[1]:6.2%}"
    return (
        f"{len(part):4}  mean {mean[0]:6.1%} {mean[1]:6.1%} bias {bias:+6.1%}  p99 {p99[0]:6.1%} {p99[1]:6.1%}  "
        f"sat {saturation[0]:6.2%} {saturation[1]:6.2%}{last}"
    )


def report(errors: Sequence[Error]) -> str:
    """Medians and 95th percentiles by utilisation and regime, and the worst ten."""
    lines = []
    for system, some in group(errors, "system").items():
        sets = [("all", {"": some}), *((name, group(some, name)) for name in ("utilisation", *some[0].case.regime))]
        for name, table in sets:
            for word, part in table.items():
                lines.append(f"{system} {name:11} {word:12} {_summary(part)}")
    lines.append("worst ten by mean:")
    lines += [_line(error) for error in sorted(errors, key=lambda e: -abs(e.mean))[:10]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Print errors on the development cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=["sync", "asap"])
    parser.add_argument("--cases", default=":", help="range of case indices, as 0:60")
    parser.add_argument("--utilisation", help="as 0.3,0.6,0.8")
    parser.add_argument("--seed", choices=list(FILES), default="development")
    parser.add_argument("--slo", action="store_true", help="also SLO throughputs")
    parser.add_argument("--quiet", action="store_true", help="only the summary")
    given = parser.parse_args(arguments)
    low, _, high = given.cases.partition(":")
    shares = {float(text) for text in given.utilisation.split(",")} if given.utilisation else None
    errors, prepared = [], []
    for case, rows in load(given.seed, given.system, slice(int(low or 0), int(high) if high else None)):
        wanted = [row for row in rows if shares is None or row.utilisation in shares]
        found, seconds = case_errors(case, wanted, slo=given.slo)
        errors += found
        prepared.append(seconds)
        if not given.quiet:
            print("\n".join(_line(error) for error in found), flush=True)
    if not errors:
        print("no rows of truth for that")
        return
    print(report(errors))
    points = np.array([error.seconds for error in errors])
    first, rest = prepared[0], np.array(prepared[1:] or prepared)
    print(
        f"prepare: first {first:.2f} s, then median {np.median(rest) * 1e3:.1f} ms, max {rest.max() * 1e3:.1f} ms; "
        f"point: median {np.median(points) * 1e3:.2f} ms, max {points.max() * 1e3:.1f} ms (the first may compile)"
    )


if __name__ == "__main__":
    main()
