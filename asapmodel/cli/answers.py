"""Answers as tables, readable at 80 columns: units in the headings, three digits, and words where numbers mislead."""

from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from asapmodel.cli.text import layout, number, percent, span, table, words
from asapmodel.result import Assumption, Capacity, Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.compare import Comparison

__all__ = ["basis", "capacity_answer", "comparison_answer", "evaluation_answer", "overload", "sweep_answer"]


def evaluation_answer(scenario: Scenario, result: Result) -> list[RenderableType]:
    """TTFT, objective, parts, utilisation and bottleneck at one rate."""
    slo = result.slo
    objective = f"{slo.statistic} TTFT <= {slo.ttft_s:g} s"
    verdict = f"{objective}: {'met' if slo.met else 'MISSED'} with {number(slo.value_s)} s"
    within = f"{percent(slo.attainment)} % of requests within {slo.ttft_s:g} s"
    warning = overload(scenario, result)
    return [
        f"[bold]{escape(result.scenario)}[/]: {layout(scenario)}, engine {result.engine}",
        f"{result.rate_rps:g} requests/s, {result.requests:,} requests; "
        f"serves at most {number(result.saturation_rps)} requests/s",
        *([f"[bold]{escape(warning)}[/]"] if warning else []),
        _ttft_table(result),
        f"Objective {verdict}; {within}.",
        _parts_table(result),
        _utilisation_table(result),
        f"Bottleneck: [bold]{words(result.bottleneck)}[/]. "
        f"{result.batches:,} batches of {number(result.batch_tokens_mean)} tokens on average.",
        basis(result.assumptions),
    ]


def overload(scenario: Scenario, result: Result) -> str | None:
    """What to know of the numbers where the rate is beyond what the system serves, or None."""
    if result.stable:
        return None
    duration = scenario.workload.duration
    run = f"a {duration:g} s run" if duration is not None else f"the whole trace of {result.requests:,} requests"
    return (
        f"Rate {result.rate_rps:g} is above what the system can serve ({number(result.saturation_rps)} "
        f"requests/s): the queue grows for as long as the run lasts; TTFT of {run} is shown."
    )


def basis(assumptions: Sequence[Assumption]) -> str:
    """Whether numbers are calibrated or predicted, and on what they rest."""
    kinds = Counter(one.kind for one in assumptions if one.kind != "derived")
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no"
    sort = "Calibrated" if kinds["fitted"] else "Predicted"
    return f"{sort} from {counts} numbers; `asapmodel show` lists them."


def _ttft_table(result: Result) -> Table:
    ttft = result.ttft
    out = table("mean", "95 % interval", "std", "p50", "p90", "p95", "p99", title="TTFT (s)")
    shown = (ttft.std_s, ttft.p50_s, ttft.p90_s, ttft.p95_s, ttft.p99_s)
    out.add_row(number(ttft.mean_s), span(ttft.mean_interval_s), *map(number, shown))
    return out


def _parts_table(result: Result) -> Table:
    parts = result.parts
    rows = {
        "waiting for a batch": parts.queueing_s,
        "own batches alone": parts.kernel_s,
        "waiting inside": parts.waiting_s,
    }
    latency = result.ttft.mean_s - sum(rows.values())
    if latency > 1e-9:
        rows["latency outside"] = latency
    out = table("Mean TTFT is", "s", "%")
    for name, value in rows.items():
        out.add_row(name, number(value), percent(value / result.ttft.mean_s))
    return out


def _utilisation_table(result: Result) -> Table:
    out = table("Resource", "busy (%)")
    out.add_column("")
    for name, share in sorted(result.utilisation.items(), key=lambda item: -item[1]):
        bar = ProgressBar(total=1.0, completed=min(share, 1.0), width=40)
        out.add_row(words(name), percent(share), bar)
    return out


def capacity_answer(scenario: Scenario, capacity: Capacity) -> list[RenderableType]:
    """SLO throughput with what is known of its accuracy, and what limits it."""
    objective = f"{capacity.statistic} TTFT <= {capacity.slo_ttft_s:g} s"
    rows = {
        "SLO throughput": number(capacity.slo_throughput_rps),
        "  95 % interval": span(capacity.interval_rps),
        "  bracket": span(capacity.bracket_rps, 4),
        "  std of a single run": number(capacity.run_std_rps),
        "  per device": number(capacity.slo_throughput_rps / capacity.devices),
        "Stability limit": number(capacity.stability_limit_rps),
    }
    out = table("", "requests/s", title=f"Objective: {objective}")
    for name, value in rows.items():
        out.add_row(name, value)
    points = table("rate (requests/s)", f"{capacity.statistic} TTFT (s)")
    for rate, seconds in capacity.points:
        points.add_row(number(rate, 4), number(seconds))
    return [
        f"[bold]{escape(capacity.scenario)}[/]: {layout(scenario)}, engine {capacity.engine}, "
        f"{capacity.replications} replication{'s' if capacity.replications > 1 else ''}",
        out,
        f"Limited by: [bold]{words(capacity.limited_by)}[/].",
        *([_ABOVE_LIMIT] if capacity.slo_throughput_rps > capacity.stability_limit_rps else []),
        points,
        basis(capacity.assumptions),
    ]


_ABOVE_LIMIT = (
    "The objective is still met a little above the stability limit because a run is finite: "
    "over a longer one the queue would grow past it."
)


def comparison_answer(scenarios: Sequence[Scenario], comparison: Comparison) -> list[RenderableType]:
    """Scenarios side by side."""
    first = comparison.capacities[0]
    title = f"Rate (requests/s) that keeps {first.statistic} TTFT <= {first.slo_ttft_s:g} s"
    out = table("Scenario", "rate", "95 % interval", "per device", "gain", "limited by", title=title)
    for scenario, one in zip(scenarios, comparison.capacities, strict=True):
        out.add_row(
            f"[bold]{escape(one.scenario)}[/]\n{layout(scenario)}",
            number(one.slo_throughput_rps),
            span(one.interval_rps),
            number(one.slo_throughput_rps / one.devices),
            f"{one.slo_throughput_rps / first.slo_throughput_rps:.2f}x",
            words(one.limited_by),
        )
    return [
        out,
        *([_rates_table(comparison)] if comparison.results else []),
        *_bases(comparison.capacities),
    ]


def _bases(capacities: Sequence[Capacity]) -> list[str]:
    """What the numbers rest on: once where it is the same for all."""
    texts = [basis(one.assumptions) for one in capacities]
    if len(set(texts)) == 1:
        return texts[:1]
    return [f"{escape(one.scenario)}: {text}" for one, text in zip(capacities, texts, strict=True)]


def _rates_table(comparison: Comparison) -> Table:
    overloaded = any(not one.stable for row in comparison.results for one in row)
    note = "* above what the system can serve: grows with the length of the run" if overloaded else None
    names = [one.scenario for one in comparison.capacities]
    out = table("rate (requests/s)", *map(escape, names), title="Mean TTFT (s)", caption=note)
    for row in comparison.results:
        cells = (number(one.ttft.mean_s) + ("" if one.stable else "*") for one in row)
        out.add_row(f"{row[0].rate_rps:g}", *cells)
    return out


def sweep_answer(scenario: Scenario, results: Sequence[Result]) -> list[RenderableType]:
    """One row a rate."""
    slo = results[0].slo
    title = f"TTFT (s); objective: {slo.statistic} <= {slo.ttft_s:g} s"
    overloaded = any(not one.stable for one in results)
    note = "* above what the system can serve: TTFT grows with the length of the run" if overloaded else None
    heading = ("rate\n(req/s)", "mean", "p50", "p90", "p99", "objective", "within\n(%)", "bottleneck")
    out = table(*heading, title=title, caption=note)
    for one in results:
        shown = (one.ttft.mean_s, one.ttft.p50_s, one.ttft.p90_s, one.ttft.p99_s)
        rate = f"{one.rate_rps:g}" + ("" if one.stable else "*")
        verdict = "met" if one.slo.met else "missed"
        out.add_row(rate, *map(number, shown), verdict, percent(one.slo.attainment), words(one.bottleneck))
    return [
        f"[bold]{escape(scenario.name)}[/]: {layout(scenario)}, engine {results[0].engine}",
        out,
        basis(results[0].assumptions),
    ]
