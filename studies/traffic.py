"""Does the gain of asynchrony survive other traffic? Writes `docs/studies/traffic.md`.

Run as ``python -m asapmodel.studies.traffic [--output DIR]``, about a minute.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from asapmodel.costing import length_grid
from asapmodel.scenario import Scenario
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import Ratio, fill, output_folder, ratio_of, slo_rates, write_page
from asapmodel.studies.traffic_figure import traffic_figure
from asapmodel.studies.traffic_runs import (
    CACHED,
    CVS,
    TRACES,
    Row,
    burst,
    cached,
    cached_lengths,
    lengths_of,
    limited,
    replayed,
    solve,
)

__all__ = ["confirm", "main", "page"]

_DRIFTS = "azure2023_conv"  # its rate varies over the hour, which a stationary law does not know
_SEEDS = range(6, 10)


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    laws = {trace: solve(lengths_of(trace)) for trace in TRACES}
    replays = {trace: replayed(trace) for trace in TRACES}
    bursts = {cv: solve(burst(cv)) for cv in CVS}
    shares = {share: cached(share) for share in CACHED}
    save_figure(traffic_figure(laws, bursts, shares), folder / "figures" / "study-traffic.svg")
    write_page(
        "traffic", page(laws, replays, bursts, shares, confirm(), (limited(CACHED[0]), limited(CACHED[-1]))), folder
    )


def confirm() -> dict[str, tuple[str, Ratio]]:
    """Gains by runs for the burstiest arrivals and for half of every prompt cached, beside how to find the law's."""
    with tempfile.TemporaryDirectory() as folder:
        cases = {f"cv {CVS[-1]:g}": burst(CVS[-1]), "50 % cached": cached_lengths(0.5, Path(folder))}
        found = {}
        for name, changes in cases.items():
            rates = [slo_rates(Scenario.load(f"paper-{one}").replace(**changes), _SEEDS) for one in ("asap", "chunked")]
            found[name] = (f"{solve(changes).gain:+.1%}", ratio_of(*rates))
    return found


def page(
    laws: Mapping[str, Row],
    replays: Mapping[str, Row],
    bursts: Mapping[float, Row],
    shares: Mapping[float, Row],
    runs: Mapping[str, tuple[str, Ratio]],
    limits: tuple[str, str],
) -> str:
    """The text of the page; `limits`: what limits the paper's ASAP with nothing and with most of a prompt cached."""
    best, worst = (pick(laws, key=lambda name: laws[name].gain) for pick in (max, min))
    poisson, burstiest = bursts[1.0], bursts[max(bursts)]
    none, most = shares[0.0], shares[max(shares)]
    lengths = length_grid(Scenario.load("paper-asap").replace(**lengths_of(worst)))
    return fill(
        "traffic",
        traces=_trace_table(laws, replays),
        bursts=_table("cv", {f"{cv:g}": row for cv, row in bursts.items()}),
        cached=_table("cached", {f"{share:.0%}": row for share, row in shares.items()}),
        runs=markdown_table(
            ["case", "queueing engine", "runs (95 % interval)"],
            [[name, law, str(ratio)] for name, (law, ratio) in runs.items()],
            (1, 2),
        ),
        best_trace=best,
        best_gain=f"{laws[best].gain:+.0%}",
        worst_trace=worst,
        worst_gain=f"{laws[worst].gain:+.0%}",
        worst_tuned=f"{laws[worst].tuned_gain:+.0%}",
        worst_mean=f"{lengths.mean():.0f}",
        top_cv=f"{max(bursts):g}",
        burst_chunked=f"{1 - burstiest.chunked / poisson.chunked:.0%}",
        burst_asap=f"{1 - burstiest.asap / poisson.asap:.0%}",
        gain_poisson=f"{poisson.gain:+.0%}",
        gain_burst=f"{burstiest.gain:+.0%}",
        top_cached=f"{max(shares):.0%}",
        gain_none=f"{none.gain:+.0%}",
        gain_cached=f"{most.gain:+.0%}",
        limit_none=limits[0],
        limit_cached=limits[1],
        tuned_none=f"{none.tuned_gain:+.0%}",
        tuned_cached=f"{most.tuned_gain:+.0%}",
        **_replay_fields(laws, replays),
    )


def _replay_fields(laws: Mapping[str, Row], replays: Mapping[str, Row]) -> dict[str, str]:
    """How far the law is from the trace itself."""
    offs = [
        getattr(laws[name], system) / getattr(replays[name], system) - 1
        for name in laws
        if name != _DRIFTS
        for system in ("chunked", "asap", "tuned")
    ]
    law, replay = laws[_DRIFTS], replays[_DRIFTS]
    return {
        "off_least": f"{min(offs):+.0%}",
        "off_most": f"{max(offs):+.0%}",
        "drift_trace": _DRIFTS,
        "drift_chunked": f"{law.chunked / replay.chunked - 1:.0%}",
        "drift_asap": f"{law.asap / replay.asap - 1:.0%}",
        "drift_law": f"{law.gain:+.0%}",
        "drift_replay": f"{replay.gain:+.0%}",
    }


def _cells(row: Row) -> list[str]:
    rates = [plain(value) for value in (row.chunked, row.asap, row.tuned)]
    return [*rates, f"{row.gain:+.0%}", f"{row.tuned_gain:+.0%}"]


_HEADER = ["chunked", "asap", "tuned", "asap over chunked", "tuned over chunked"]


def _table(name: str, rows: Mapping[str, Row]) -> str:
    return markdown_table([name, *_HEADER], [[key, *_cells(row)] for key, row in rows.items()], range(6))


def _trace_table(laws: Mapping[str, Row], replays: Mapping[str, Row]) -> str:
    lines = []
    for name in laws:
        lines += [[name, "law", *_cells(laws[name])], [name, "replay", *_cells(replays[name])]]
    return markdown_table(["trace", "as", *_HEADER], lines, range(2, 7))


if __name__ == "__main__":
    main()
