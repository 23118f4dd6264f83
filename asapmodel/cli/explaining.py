"""The command `explain`: what limits a system and what would help most, in words and tables."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from asapmodel.cli.options import JsonOption, ScenarioArgument, SetOption, load, parse_count, parse_rate
from asapmodel.cli.output import print_json, progress, show
from asapmodel.cli.uncertain import UncertaintyOption, uncertainty_answer, uncertainty_json, uncertainty_of

if TYPE_CHECKING:
    from asapmodel.scenario import Scenario
    from asapmodel.verbs.explain import Explanation

__all__ = ["explain", "explanation_answer"]

_SHOWN = 0.01  # elasticities below are left out of the table
_HEADLINE = ("part", "hardware", "policy")  # efficiencies are parts of these


def explain(
    scenario: ScenarioArgument,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Where to look at TTFT, requests/s; default: the scenario's rate, or else 80 % of the SLO throughput.",
            show_default=False,
        ),
    ] = None,
    walks: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Walks that judge a change; default 1. Several give elasticities an error.",
            show_default=False,
        ),
    ] = None,
    choices: Annotated[
        bool, typer.Option("--choices", help="Judge other choices too: switches of the policy, devices more or less.")
    ] = False,
    formulas: Annotated[
        bool, typer.Option("--formulas", help="Evaluate the closed forms too: thresholds, break-evens, best split.")
    ] = False,
    changes: SetOption = None,
    as_json: JsonOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """What limits a system, and what would help most."""
    from asapmodel.verbs.explain import explain as ask

    speed, count = parse_rate(rate), parse_count(walks, "--walks") or 1
    what = load(scenario, changes)
    with progress(f"explaining {what.name}"):
        answer = ask(what, speed, walks=count, choices=choices, formulas=formulas)
        sure = uncertainty_of(what, answer.result.rate_rps) if uncertainty else None
    if as_json:
        print_json(answer.to_dict() | uncertainty_json(sure))
    else:
        show(*explanation_answer(what, answer), *uncertainty_answer(sure))


def explanation_answer(scenario: "Scenario", answer: "Explanation") -> list[RenderableType]:
    """The answer at 80 columns."""
    from asapmodel.cli.answers import basis
    from asapmodel.cli.text import layout, number, words

    objective = f"{answer.statistic} TTFT <= {answer.slo_ttft_s:g} s"
    result = answer.result
    top = [one for one in answer.improvements if one.kind in _HEADLINE and one.throughput > 0][:3]
    impossible = [one for one in answer.options if one.throughput is None]
    return [
        f"[bold]{escape(answer.scenario)}[/]: {layout(scenario)}",
        f"SLO throughput {number(answer.slo_throughput_rps)} requests/s ({objective}); stable up to "
        f"{number(answer.stability_limit_rps)}.",
        f"At {number(result.rate_rps)} requests/s: mean TTFT {number(result.ttft.mean_s)} s, busiest: "
        f"[bold]{words(result.bottleneck)}[/].",
        "",
        _lockstep_limits(answer) if answer.system == "sync" else _free_limits(answer),
        _bounds_table(answer),
        "Most valuable, each 10 %: "
        + "; ".join(f"{one.words} [bold]{_signed(one.throughput)}[/]" for one in top)
        + ".",
        _improvements_table(answer),
        _elasticities_table(answer),
        _sums(answer),
        *([_options_table(answer)] if answer.options else []),
        *(f"Not possible: {one.words}: {escape(one.problem)}." for one in impossible),
        *_advice(scenario, answer),
        basis(answer.assumptions),
    ]


def _free_limits(answer: "Explanation") -> str:
    """Tightest constraint, the next, and how near the bounds are."""
    from asapmodel.cli.text import number

    regime = answer.regime
    if answer.lower_rps is None:
        rest = "However prompts are sent to groups and cut; how much less uneven queues reach has no bound."
    else:
        together = f"{number(answer.lower_rps)} to {number(min(answer.bounds_rps.values()))}"
        rest = f"All constraints of a group together: {together}."
    return (
        f"[bold]{regime.name}[/]: the tightest constraint is {regime.constraint}, at most "
        f"{number(answer.bounds_rps[regime.constraint])} requests/s whatever the order of service; the next regime, "
        f"{regime.next_name}, is {number(regime.margin)} times as far. {rest}"
    )


def _lockstep_limits(answer: "Explanation") -> str:
    """Parts of an iteration stand one after another: what they leave, and what the barriers take."""
    from asapmodel.cli.text import number

    regime, whole = answer.regime, min(answer.bounds_rps.values())
    lost = 100 * (1 - answer.stability_limit_rps / whole)
    equal, waiting = "Equal groups", "waiting for the slowest at barriers takes"
    if answer.lower_rps is None:
        equal, waiting = "Equal groups with as few steps as can be", "uneven queues and steps that are not full take"
    return (
        f"[bold]{regime.name}[/]: of an iteration of equal groups {regime.constraint} are the largest part, "
        f"{number(regime.margin)} times the next ({regime.next_name}). {equal} would be stable up to "
        f"{number(whole)} requests/s; {waiting} [bold]{lost:.0f} %[/] of that."
    )


def _signed(change: float | None) -> str:
    return "-" if change is None else f"{100 * change:+.1f} %"


def _bounds_table(answer: "Explanation") -> Table:
    from asapmodel.cli.text import number, table
    from asapmodel.verbs.explain import regimes_of

    out = table("Constraint", "regime", "at most (/s)", "reached (%)")
    for name, regime, rate in regimes_of(answer.bounds_rps):
        reached = f"{100 * answer.stability_limit_rps / rate:.0f}"
        out.add_row(name, regime.removesuffix("-bound"), number(rate), reached)
    return out


def _improvements_table(answer: "Explanation") -> Table:
    from asapmodel.cli.text import table

    out = table("Improvement by a tenth", "kind", "throughput", f"TTFT at {answer.result.rate_rps:.3g}/s")
    for one in answer.improvements:
        out.add_row(one.words, one.kind, _signed(one.throughput), _signed(one.ttft))
    return out


def _elasticities_table(answer: "Explanation") -> Table:
    from asapmodel.cli.text import number, table

    several = any(
        one.throughput_error == one.throughput_error and one.throughput_error > 0 for one in answer.elasticities
    )
    out = table("Elasticity: % per % of", "now", "SLO throughput", "TTFT", title="What the answers depend on")

    def shown(value: float, error: float) -> str:
        return f"{value:+.2f} ±{error:.2f}" if several else f"{value:+.2f}"

    for one in sorted(answer.elasticities, key=lambda one: -abs(one.throughput)):
        if max(abs(one.throughput), abs(one.ttft)) >= _SHOWN:
            row = shown(one.throughput, one.throughput_error), shown(one.ttft, one.ttft_error)
            out.add_row(one.name, number(one.value), *row)
    out.add_row("slo.ttft", number(answer.slo_ttft_s), f"{answer.objective_elasticity:+.2f}", "")
    out.add_row("workload.rate", number(answer.result.rate_rps), "", f"{answer.rate_elasticity:+.2f}")
    return out


def _sums(answer: "Explanation") -> str:
    throughput, ttft = answer.sums
    return (
        f"How sure they are: all times and slo.ttft must add up to -1 (here {throughput:.2f}), and of TTFT all times "
        f"less the rate to 1 (here {ttft:.2f})."
    )


def _options_table(answer: "Explanation") -> Table:
    from asapmodel.cli.text import table

    out = table("Other choices", "devices", "SLO throughput", "per device")
    for one in answer.options:
        if one.throughput is not None:
            out.add_row(one.words, str(one.devices), _signed(one.throughput), _signed(one.per_device))
    return out


def _advice(scenario: "Scenario", answer: "Explanation") -> list[str]:
    """Numbers of the closed forms, where they are defined."""
    from asapmodel.cli.text import number

    given, policy = answer.advice, scenario.policy
    if "left_out" in given:
        return [f"No closed forms: {given['left_out']}."]

    def has(*names: str) -> bool:
        return all(isinstance(given.get(name), float) and given[name] == given[name] for name in names)

    def n(name: str) -> str:
        return number(float(given[name]))

    found = []
    if has("tokens_for_90_percent", "batch_tokens"):
        found.append(
            f"Experts work at 90 % from {n('tokens_for_90_percent')} tokens a batch on; batches under load hold "
            f"{n('batch_tokens')}."
        )
    if has("dual_gain"):
        found.append(f"Two batches a group, in turn, are {n('dual_gain')} times as fast as one after the other.")
    if has("exclusive_tokens_mean_ttft", "exclusive_tokens_throughput"):
        found.append(
            f"Beside a mean batch a prompt delays more than it helps from {n('exclusive_tokens_mean_ttft')} tokens on "
            f"(mean TTFT of the two), and brings no throughput from {n('exclusive_tokens_throughput')} on; "
            f"exclusive_tokens is {policy.exclusive_tokens:,}."
        )
    if has("best_D", "best_E"):
        found.append(f"Balanced split of these devices: D {given['best_D']:.0f}, E {given['best_E']:.0f}.")
    if has("break_even_cv", "batch_cv"):
        value = float(given["break_even_cv"])
        start = f"from a coefficient of variation of {n('break_even_cv')} on" if value > 0 else "at any variability"
        found.append(f"Asynchrony pays {start}; that of a batch's attention is {n('batch_cv')} here.")
    elif has("batch_cv", "barrier_excess"):
        found.append(
            f"A batch's attention varies by {n('batch_cv')} (coefficient of variation); the slowest group takes "
            f"{number(100 * float(given['barrier_excess']))} % longer than the mean, by a normal law."
        )
    if has("host_dispatch_loss") and policy.super_kernel:
        found.append(f"Without the super kernel: {100 * float(given['host_dispatch_loss']):.1f} % less throughput.")
    return ["Closed forms, for a mean batch:"] + [f"- {line}" for line in found] if found else []
