"""How far is the queueing engine from the graph engine? Both on 450 random systems; writes `docs/engines.md`.

Run as ``python -m asapmodel.studies.engines [--output DIR]``, minutes: the graph engine's answers are in the
tables of truth (`engines_truth`). The cases of two seeds were in view while the queueing engine was made, those of the
last not.
"""

import argparse
import math
import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np

from asapmodel.engines.effort import EFFORTS, EffortName
from asapmodel.engines.queueing import analyse
from asapmodel.solvers.queue_errors import QueueError, UnstableError
from asapmodel.studies.engines_cases import Case
from asapmodel.studies.engines_errors import EQUAL_RATE_UP_TO, Error, case_errors, group, load, spread
from asapmodel.studies.engines_figures import draw_figures
from asapmodel.studies.engines_rows import FILES, SEEDS
from asapmodel.studies.engines_speed import Speed, measure_speed, speed_table
from asapmodel.studies.pages import markdown_table, plain

__all__ = ["TARGETS", "main", "target_rows"]

Errors = Sequence[Error]

TARGETS: dict[str, tuple[str, Callable[[Error], float], bool, tuple[float, float]]] = {
    "mean TTFT, up to 0.8": ("mean", lambda e: e.mean, False, (0.04, 0.10)),
    "p99 TTFT, up to 0.8": ("p99", lambda e: e.p99, False, (0.06, 0.15)),
    "mean TTFT, above 0.8": ("mean", lambda e: e.mean, True, (0.08, 0.20)),
    "p99 TTFT, above 0.8": ("p99", lambda e: e.p99, True, (0.12, 0.30)),
    "SLO throughput": ("mean", lambda e: e.slo, False, (0.02, 0.05)),
}
"""Quantity: what its truth must be known of, the error, whether above utilisation 0.8, targets of median and p95."""

_BISTABLE = {("development", 143): "bistable: TTFT stays near 0.37 s or near 0.59 s for thousands of requests"}

_WALKS = 5  # others that an answer among the worst is compared with

_KNOWN = {"mean": 0.05, "p99": 0.15}  # half-widths up to which a row of truth counts as established
_SYSTEMS = {"sync": "synchronous", "asap": "asynchronous"}


def main(arguments: list[str] | None = None) -> None:
    """Compare, time, and write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    parser.add_argument("--seeds", nargs="+", choices=list(FILES), default=list(FILES), help="verdicts: of the last")
    given = parser.parse_args(arguments)
    folder = given.output
    errors = {seed: collect(seed) for seed in given.seeds}
    every = [error for some in errors.values() for error in some]
    speeds = [measure_speed(system, _cases(every, system)) for system in _SYSTEMS]
    chosen = draw_figures(errors[given.seeds[-1]], folder / "figures")
    text = page(errors, collect(given.seeds[-1], "quick"), speeds, chosen)
    (folder / "engines.md").write_text(text, encoding="utf-8")
    print(text)


def collect(seed: str, effort: EffortName = "full") -> list[Error]:
    """Errors on all cases of a table of truth."""
    engine = partial(analyse, effort=EFFORTS[effort])
    found: list[Error] = []
    for case, rows in load(seed):
        try:
            found += case_errors(case, rows, engine, slo=True)[0]
        except QueueError:  # no answer at all: as wrong as can be
            found += [Error(case, row, math.inf, math.inf, math.inf, math.inf, math.nan, None) for row in rows]
    return found


def _cases(errors: Errors, system: str) -> list[Case]:
    return list({id(e.case): e.case for e in errors if e.case.system == system and e.point is not None}.values())


def _known(errors: Errors, what: str) -> list[Error]:
    return [error for error in errors if getattr(error.row, f"{what}_half_width") <= _KNOWN[what]]


def target_rows(errors: Errors) -> dict[str, tuple[float, float, int]]:
    """Median and 95th percentile of absolute errors and their number, for each target."""
    table = {}
    for name, (what, pick, above, _) in TARGETS.items():
        band = errors if pick is TARGETS["SLO throughput"][1] else _band(errors, above)
        values = [pick(error) for error in _known(band, what)]
        table[name] = (*spread(values), sum(not math.isnan(value) for value in values))
    return table


def _band(errors: Errors, above: bool) -> list[Error]:
    return [error for error in errors if (error.row.utilisation > EQUAL_RATE_UP_TO) == above]


def _targets(errors: dict[str, list[Error]]) -> str:
    rows = []
    for system, word in _SYSTEMS.items():
        sets = {seed: target_rows([e for e in some if e.case.system == system]) for seed, some in errors.items()}
        for name, (_, _, _, (median, p95)) in TARGETS.items():
            row = [word, name, f"{median:.0%} / {p95:.0%}"]
            for table in sets.values():
                found = table[name]
                row += [f"{_share(found[0])} / {_share(found[1])}", str(found[2])]
            held = list(sets.values())[-1][name]
            row.append("met" if held[0] <= median and held[1] <= p95 else "**missed**")
            rows.append(row)
    header = ["system", "quantity, utilisation", "target: median / p95"]
    header += [text for seed in errors for text in (f"{seed.replace('_', ' ')} cases", "rows")] + ["verdict"]
    return markdown_table(header, rows, range(2, 3 + 2 * len(errors)))


def _quick(errors: Errors) -> str:
    """Errors of the quick effort; no targets were set for it."""
    tables = [target_rows([e for e in errors if e.case.system == system]) for system in _SYSTEMS]
    rows = [
        [name, *(f"{_share(table[name][0])} / {_share(table[name][1])}" for table in tables)]  # as the targets' table
        for name in TARGETS
    ]
    return markdown_table(["quantity, utilisation", *_SYSTEMS.values()], rows, (1, 2))


def _share(value: float) -> str:
    return "no answer" if math.isinf(value) else "-" if math.isnan(value) else f"{value:.1%}"


def _regimes(errors: Errors) -> str:
    """Median / p95 by utilisation and regime."""
    rows = []
    for system, word in _SYSTEMS.items():
        own = [error for error in errors if error.case.system == system]
        if not own:
            continue
        for name in ("utilisation", *own[0].case.regime):
            for value, some in group(own, name).items():
                row = [word, value if name != "utilisation" else f"utilisation {value}", str(len(some))]
                for above in (False, True):
                    band = _band(some, above)
                    for what in ("mean", "p99"):
                        pair = spread([getattr(error, what) for error in _known(band, what)])
                        row.append(f"{_share(pair[0])} / {_share(pair[1])}" if band else "")
                pair = spread([error.slo for error in _known(some, "mean")])
                row.append("" if math.isnan(pair[0]) else f"{_share(pair[0])} / {_share(pair[1])}")
                rows.append(row)
    header = ["system", "regime", "rows", "mean, up to 0.8", "p99, up to 0.8", "mean, above", "p99, above", "SLO"]
    return markdown_table(header, rows, (2, 3, 4, 5, 6, 7))


def _known_trouble(seed: str, case: Case) -> list[str]:
    """What is known of a case beyond its limit and the walk."""
    found = [text for key, text in _BISTABLE.items() if key == (seed, case.index)]
    if case.system == "sync" and case.law == "constant" and case.scenario.policy.chunk_tokens:
        found.append("one length in chunks (see Truth)")
    return found


def _worst(errors: Errors) -> str:
    """The ten rows with the largest errors of the mean; what of them is the limit's, and the walk's."""
    rows = []
    for error in sorted(_known(errors, "mean"), key=lambda e: -abs(e.mean))[:10]:
        seed = next(name for name, value in SEEDS.items() if value == error.case.seed)
        row = error.row
        others = [
            case_errors(error.case, [row], partial(analyse, walk=walk))[0][0].mean for walk in range(1, _WALKS + 1)
        ]
        rows.append(
            [
                f"{seed.replace('_', ' ')} {error.case.index}",
                _SYSTEMS[error.case.system],
                f"{row.utilisation:g}",
                ", ".join([*error.case.regime.values(), *_known_trouble(seed, error.case)]),
                plain(row.mean_s),
                "none" if math.isinf(error.mean_s) else plain(error.mean_s),
                "" if math.isinf(error.mean) else f"{error.mean:+.0%}",
                f"{error.saturation:+.1%}",
                f"{np.mean(others):+.0%} ({np.std(others, ddof=1):.0%})",
            ]
        )
    header = ["case", "system", "utilisation", "regime", "graph, s", "queueing, s", "error", "limit", "other walks"]
    return markdown_table(header, rows, (2, 4, 5, 6, 7, 8))


def _others(errors: Errors) -> str:
    """What else a point says: parts as a share of mean TTFT, utilisations and batch sizes relative."""

    def busy(name: str) -> Callable[[Error], float]:
        return lambda e: e.point.utilisation.get(name, math.nan) / getattr(e.row, name) - 1 if e.point else math.inf

    def part(name: str) -> Callable[[Error], float]:
        return lambda e: (getattr(e.point, name) - getattr(e.row, name)) / e.row.mean_s if e.point else math.inf

    picks: dict[str, Callable[[Error], float]] = {
        "saturation throughput": lambda e: e.saturation,
        "queueing, share of mean TTFT": part("queueing_s"),
        "kernel, share of mean TTFT": part("kernel_s"),
        "waiting inside, share of mean TTFT": part("waiting_s"),
        "busy share of attention": busy("attention"),
        "busy share of experts": busy("moe"),
        "tokens of a batch": lambda e: e.point.batch_tokens_mean / e.row.batch_tokens_mean - 1 if e.point else math.inf,
        "median TTFT": lambda e: e.point.ttft.quantile(0.5) / e.row.p50_s - 1 if e.point else math.inf,
    }
    rows = []
    for name, pick in picks.items():
        row = [name]
        for system in _SYSTEMS:
            some = [e for e in _band(_known(errors, "mean"), False) if e.case.system == system]
            row.append(" / ".join(_share(value) for value in spread([pick(e) for e in some])))
        rows.append(row)
    return markdown_table(["median / p95 of the error, up to 0.8", *_SYSTEMS.values()], rows, (1, 2))


def _unstable(errors: Errors) -> tuple[int, int]:
    """Cases, and those of them with an answer at or just above the engine's own stability limit."""
    wrong, cases = 0, {id(e.case): e for e in errors if e.point is not None}
    for error in cases.values():
        analysis = analyse(error.case.problem)
        for factor in (1.0, 1.001, 1.5):
            try:
                wrong += math.isfinite(analysis.at(factor * analysis.saturation_rps).ttft.mean)
            except UnstableError:
                continue
    return len(cases), wrong


def page(errors: dict[str, list[Error]], quick: Errors, speeds: Sequence[Speed], chosen: Errors) -> str:
    """The text of `docs/engines.md`."""
    every = [error for some in errors.values() for error in some]
    widths = {what: np.array([getattr(e.row, f"{what}_half_width") for e in every]) for what in ("mean", "p99")}
    light = np.array([e.row.utilisation <= EQUAL_RATE_UP_TO for e in every])
    cases, wrong = _unstable(every)
    template = files("asapmodel.studies").joinpath("data/engines_page.md").read_text(encoding="utf-8")
    return template.format(
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        judged=list(errors)[-1].replace("_", " "),
        cases=len({(e.case.seed, e.case.index) for e in every}),
        rows=len(every),
        seeds=" and ".join(f"{value} ({name.replace('_', ' ')})" for name, value in SEEDS.items()),
        mean_light=f"{np.median(widths['mean'][light]):.1%}",
        mean_heavy=f"{np.median(widths['mean'][~light]):.1%}",
        p99_light=f"{np.median(widths['p99'][light]):.1%}",
        p99_heavy=f"{np.median(widths['p99'][~light]):.1%}",
        mean_out=int(np.sum(widths["mean"] > _KNOWN["mean"])),
        p99_out=int(np.sum(widths["p99"] > _KNOWN["p99"])),
        unanswered=sum(math.isinf(e.mean_s) for e in every),
        targets=_targets(errors),
        regimes=_regimes(every),
        quick=_quick(quick),
        worst=_worst(every),
        others=_others(every),
        limit_cases=cases,
        limit_wrong=wrong,
        speed=speed_table(speeds),
        laws=", ".join(f"{e.case.index} ({_SYSTEMS[e.case.system]})" for e in chosen),
    )


if __name__ == "__main__":
    main()
