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
from asapmodel.verbs.validate import Validation

__all__ = [
    "basis",
    "capacity_answer",
    "comparison_answer",
    "evaluation_answer",
    "overload",
    "sweep_answer",
    "validation_answer",
]


def evaluation_answer(scenario: Scenario, result: Result) -> list[RenderableType]:
    """TTFT, objective, parts, utilisation and bottleneck at one rate."""
    slo = result.slo
    objective = f"{slo.statistic} TTFT <= {slo.ttft_s:g} s"
    verdict = f"{objective}: {'met' if slo.met else 'MISSED'} with {number(slo.value_s)} s"
    within = f"{percent(slo.attainment)} % of requests within {slo.ttft_s:g} s"
    warning = overload(scenario, result)
    batches = f"{number(result.batch_tokens_mean)} tokens on average."
    return [
        f"[bold]{escape(result.scenario)}[/]: {layout(scenario)}, engine {result.engine}",
        f"{result.rate_rps:.4g} requests/s, {_extent(result)}; "
        f"serves at most {number(result.saturation_rps)} requests/s",
        *([f"[bold]{escape(warning)}[/]"] if warning else []),
        _ttft_table(result),
        f"Objective {verdict}; {within}.",
        _parts_table(result),
        _utilisation_table(result),
        f"Bottleneck: [bold]{words(result.bottleneck)}[/]. "
        + (f"Batches of {batches}" if result.batches is None else f"{result.batches:,} batches of {batches}"),
        basis(result.assumptions),
    ]


def _extent(result: Result) -> str:
    """What the numbers are of."""
    if result.requests is not None:
        return f"{result.requests:,} requests"
    return "stationary law" if result.law == "stationary" else f"law of a {result.law}"


def overload(scenario: Scenario, result: Result) -> str | None:
    """What to know of the numbers where the rate is beyond what the system serves, or None."""
    if result.stable:
        return None
    if result.requests is not None and scenario.workload.duration is None:
        run = f"the whole trace of {result.requests:,} requests"
    else:
        run = f"a {result.law.removeprefix('run of ')} run"
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
    shown = [number(one) for one in (ttft.std_s, ttft.p50_s, ttft.p90_s, ttft.p95_s, ttft.p99_s)]
    if result.records is None:  # a law has no noise
        out = table("mean", "std", "p50", "p90", "p95", "p99", title="TTFT (s)")
        out.add_row(number(ttft.mean_s), *shown)
    else:
        out = table("mean", "95 % interval", "std", "p50", "p90", "p95", "p99", title="TTFT (s)")
        out.add_row(number(ttft.mean_s), span(ttft.mean_interval_s), *shown)
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
    rows = {"SLO throughput": number(capacity.slo_throughput_rps)}
    if capacity.replications:
        extent = f"{capacity.replications} replication{'s' if capacity.replications > 1 else ''}"
        rows["  95 % interval"] = span(capacity.interval_rps)
        rows["  bracket"] = span(capacity.bracket_rps, 4)
        rows["  std of a single run"] = number(capacity.run_std_rps)
    else:
        extent = "stationary law" if capacity.law == "stationary" else f"law of a {capacity.law}"
    rows["  per device"] = number(capacity.slo_throughput_rps / capacity.devices)
    rows["Stability limit"] = number(capacity.stability_limit_rps)
    out = table("", "requests/s")
    for name, value in rows.items():
        out.add_row(name, value)
    points = table("rate (requests/s)", f"{capacity.statistic} TTFT (s)")
    for rate, seconds in capacity.points:
        points.add_row(number(rate, 4), number(seconds))
    return [
        f"[bold]{escape(capacity.scenario)}[/]: {layout(scenario)}, engine {capacity.engine}, {extent}",
        "",
        f"Objective: {objective}",
        out,
        _limit(capacity),
        *([_ABOVE_LIMIT] if capacity.slo_throughput_rps > capacity.stability_limit_rps else []),
        *([points] if capacity.replications else []),
        basis(capacity.assumptions),
    ]


def _limit(capacity: Capacity) -> str:
    if capacity.limited_by != "stability":
        return f"Limited by: [bold]{words(capacity.limited_by)}[/]."
    share = percent(capacity.slo_throughput_rps / capacity.stability_limit_rps)
    return (
        f"Limited by: [bold]stability[/], which {words(capacity.bottleneck)} sets. "
        f"The objective is still met at {share} % of the limit."
    )


_ABOVE_LIMIT = (
    "The objective is still met a little above the stability limit because a run is finite: "
    "over a longer one the queue would grow past it."
)


def comparison_answer(scenarios: Sequence[Scenario], comparison: Comparison) -> list[RenderableType]:
    """Scenarios side by side."""
    first = comparison.capacities[0]
    title = f"Rate (requests/s) that keeps {first.statistic} TTFT <= {first.slo_ttft_s:g} s, {_kind(first)}"
    runs = first.replications > 0
    second = "95 % interval" if runs else "stable below"
    out = table("Scenario", "rate", second, "per device", "gain", "limited by", title=title)
    for scenario, one in zip(scenarios, comparison.capacities, strict=True):
        out.add_row(
            f"[bold]{escape(one.scenario)}[/]\n{layout(scenario)}",
            number(one.slo_throughput_rps),
            span(one.interval_rps) if runs else number(one.stability_limit_rps),
            number(one.slo_throughput_rps / one.devices),
            f"{one.slo_throughput_rps / first.slo_throughput_rps:.2f}x",
            words(one.limited_by if one.limited_by == one.bottleneck else f"{one.limited_by} ({one.bottleneck})"),
        )
    return [
        out,
        *([_rates_table(comparison)] if comparison.results else []),
        *_bases(comparison.capacities),
    ]


def _kind(answer: Capacity | Result) -> str:
    return f"engine {answer.engine}, {answer.law}"


def _bases(capacities: Sequence[Capacity]) -> list[str]:
    """What the numbers rest on: once where it is the same for all."""
    texts = [basis(one.assumptions) for one in capacities]
    if len(set(texts)) == 1:
        return texts[:1]
    return [f"{escape(one.scenario)}: {text}" for one, text in zip(capacities, texts, strict=True)]


def _rates_table(comparison: Comparison) -> Table:
    names = [one.scenario for one in comparison.capacities]
    note = _note([one for row in comparison.results for one in row])
    out = table("rate (requests/s)", *map(escape, names), title="Mean TTFT (s)", caption=note)
    for row in comparison.results:
        cells = (number(one.ttft.mean_s) + ("" if one.stable else "*") for one in row)
        out.add_row(f"{row[0].rate_rps:g}", *cells)
    return out


def _note(results: Sequence[Result]) -> str | None:
    """What the star at a rate or a time means, if there is one."""
    beyond = [one for one in results if not one.stable]
    if not beyond:
        return None
    if beyond[0].law == "stationary":
        return "* at or above the stability limit: no stationary TTFT"
    return "* above what the system can serve: TTFT grows with the length of the run"


def sweep_answer(scenario: Scenario, results: Sequence[Result]) -> list[RenderableType]:
    """One row a rate."""
    slo = results[0].slo
    title = f"TTFT (s); objective: {slo.statistic} <= {slo.ttft_s:g} s"
    heading = ("rate\n(req/s)", "mean", "p50", "p90", "p99", "objective", "within\n(%)", "bottleneck")
    out = table(*heading, title=title, caption=_note(results))
    for one in results:
        shown = (one.ttft.mean_s, one.ttft.p50_s, one.ttft.p90_s, one.ttft.p99_s)
        rate = f"{one.rate_rps:g}" + ("" if one.stable else "*")
        verdict = "met" if one.slo.met else "missed"
        out.add_row(rate, *map(number, shown), verdict, percent(one.slo.attainment), words(one.bottleneck))
    return [
        f"[bold]{escape(scenario.name)}[/]: {layout(scenario)}, {_kind(results[0])}",
        out,
        basis(results[0].assumptions),
    ]


def validation_answer(answer: Validation) -> list[RenderableType]:
    """Check, result and figure, one row each."""
    out = table("check")
    out.add_column("result")
    out.add_column("found", overflow="fold")
    out.add_column("(s)", justify="right")
    for one in answer.outcomes:
        verdict = "passed" if one.passed else "[bold]FAILED[/]"
        out.add_row(escape(one.name), verdict, escape(one.found), f"{one.seconds:.1f}")
    failed = [one.name for one in answer.outcomes if not one.passed]
    last = f"Failed: {', '.join(failed)}." if failed else f"All {len(answer.outcomes)} checks passed."
    return [out, f"[bold]{escape(last)}[/]"]
