"""The commands that ask how fast systems are: `evaluate`, `capacity`, `compare`, `sweep`, `report`."""

from typing import TYPE_CHECKING, Annotated

import typer

from asapmodel.cli.options import (
    DEFAULT_ENGINE,
    EngineOption,
    ForceOption,
    HorizonOption,
    JsonOption,
    ReplicationsOption,
    ScenarioArgument,
    ScenariosArgument,
    SetOption,
    load,
    parse_count,
    parse_horizon,
    parse_rate,
    parse_rates,
)
from asapmodel.cli.output import note, print_json, progress, show, write_requests
from asapmodel.cli.uncertain import (
    UncertaintyOption,
    check_uncertainty,
    gain_lines,
    interval_lines,
    rate_intervals_answer,
    uncertainty_answer,
    uncertainty_json,
    uncertainty_of,
)
from asapmodel.errors import InputError
from asapmodel.files import atomic, check_writable

if TYPE_CHECKING:
    from asapmodel.uncertainties.answer import Gain, Uncertainty

__all__ = ["capacity", "compare", "evaluate", "report", "sweep"]


def evaluate(
    scenario: ScenarioArgument,
    rate: Annotated[
        str | None, typer.Option(metavar="R", help="Requests per second; default: the scenario's.", show_default=False)
    ] = None,
    engine: EngineOption = DEFAULT_ENGINE,
    horizon: HorizonOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    distribution: Annotated[
        bool, typer.Option("--distribution", help="With --json: the whole distribution of TTFT as well.")
    ] = False,
    requests: Annotated[
        str | None,
        typer.Option(metavar="OUT.csv", help="Engine graph: write one row per request.", show_default=False),
    ] = None,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """TTFT, utilisation and bottleneck at one rate."""
    from asapmodel.verbs.evaluate import check_engine
    from asapmodel.verbs.evaluate import evaluate as ask

    speed, length = parse_rate(rate), parse_horizon(horizon)
    check_engine(engine)
    if uncertainty:
        check_uncertainty(engine, length)
    if requests is not None:
        if engine != "graph":
            remedy = "its answer is a law: give --engine graph, which draws requests"
            raise InputError("--requests", "", f"engine '{engine}' has no requests", remedy)
        check_writable(requests, force)
    what = load(scenario, changes)
    with progress(f"evaluating {what.name}"):
        result = ask(what, speed, engine, horizon=length)
        sure = uncertainty_of(what, result.rate_rps) if uncertainty else None
    if requests is not None and result.records is not None:
        write_requests(requests, result.records, force)
        note(f"wrote {requests}")
    if as_json:
        print_json(result.to_dict(distribution) | uncertainty_json(sure))
        return
    from asapmodel.cli.answers import evaluation_answer

    show(*evaluation_answer(what, result), *uncertainty_answer(sure))


def capacity(
    scenario: ScenarioArgument,
    engine: EngineOption = DEFAULT_ENGINE,
    horizon: HorizonOption = None,
    replications: ReplicationsOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """The largest rate that meets the objective, and what limits it."""
    from asapmodel.verbs.capacity import capacity as ask

    count, length = parse_count(replications), parse_horizon(horizon)
    if uncertainty:
        check_uncertainty(engine, length)
    what = load(scenario, changes)
    with progress(f"looking for the SLO throughput of {what.name}") as report_step:
        answer = ask(what, engine, count, progress=report_step, horizon=length)
        sure = uncertainty_of(what, None) if uncertainty else None
    if as_json:
        print_json(answer.to_dict() | uncertainty_json(sure))
        return
    from asapmodel.cli.answers import capacity_answer

    show(*capacity_answer(what, answer), *uncertainty_answer(sure))


def compare(
    scenarios: ScenariosArgument,
    rates: Annotated[
        str | None,
        typer.Option(metavar="RATES", help="Rates to show TTFT at besides, e.g. 1,4,8.", show_default=False),
    ] = None,
    engine: EngineOption = DEFAULT_ENGINE,
    horizon: HorizonOption = None,
    replications: ReplicationsOption = None,
    as_json: JsonOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """Scenarios side by side under the same workload."""
    from asapmodel.verbs.compare import compare as ask

    speeds = [] if rates is None else parse_rates(rates)
    count, length = parse_count(replications), parse_horizon(horizon)
    if uncertainty:
        check_uncertainty(engine, length)
    what = [load(name) for name in scenarios]
    sure: list[Uncertainty] = []
    gains: list[Gain] = []
    with progress("comparing") as report_step:
        answer = ask(what, speeds, engine, count, report_step, length)
        if uncertainty:
            from asapmodel.verbs.uncertainty import uncertain_gains

            sure, gains = uncertain_gains(what, progress=report_step)
    if as_json:
        more = {"uncertainty": [one.to_dict() for one in sure], "gains": [one.to_dict() for one in gains]}
        print_json(answer.to_dict() | (more if uncertainty else {}))
        return
    from asapmodel.cli.answers import comparison_answer

    show(*comparison_answer(what, answer), *interval_lines(sure), *gain_lines(gains))


def sweep(
    scenario: ScenarioArgument,
    rates: Annotated[
        str, typer.Option(metavar="RATES", help="from:to:step, both ends included, or a list such as 1,4,8.")
    ],
    out: Annotated[
        str | None, typer.Option("-o", "--output", metavar="OUT.csv", help="Write the table.", show_default=False)
    ] = None,
    engine: EngineOption = DEFAULT_ENGINE,
    horizon: HorizonOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """One scenario over a range of rates."""
    from asapmodel.verbs.evaluate import prepare
    from asapmodel.verbs.sweep import results_table, sweep_intervals, sweep_results

    speeds, length = parse_rates(rates), parse_horizon(horizon)
    if uncertainty:
        check_uncertainty(engine, length)
    if out is not None:
        check_writable(out, force)
    what = load(scenario, changes)
    with progress(f"sweeping {what.name}", len(speeds)) as report_step:
        ready = prepare(what) if uncertainty else None
        results = sweep_results(what, speeds, engine, report_step, length, ready)
        sure = None if ready is None else sweep_intervals(ready, results)
    if out is not None:
        table = results_table(results, sure)
        with atomic(out, force) as stream:
            table.to_csv(stream, index=False, lineterminator="\n")
        note(f"wrote {out}")
    if as_json:
        rows = [one.to_dict() for one in results]
        shared = {name: rows[0][name] for name in ("engine", "scenario", "system", "assumptions")}
        more = {} if sure is None else {"uncertainty": sure.to_dict()}
        print_json({**shared, "results": [{k: row[k] for k in row if k not in shared} for row in rows]} | more)
        return
    from asapmodel.cli.answers import sweep_answer

    show(*sweep_answer(what, results), *rate_intervals_answer(sure))


def report(
    scenarios: ScenariosArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUT.html", help="The page to write.")],
    engine: EngineOption = DEFAULT_ENGINE,
    horizon: HorizonOption = None,
    graph_points: Annotated[
        bool,
        typer.Option("--graph-points", help="Put points of the graph engine, with 95 % intervals, on the curves."),
    ] = False,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """A page with tables, charts and assumptions, to read in a browser."""
    length = parse_horizon(horizon)
    if uncertainty:
        check_uncertainty(engine, length)
    check_writable(out, force)
    what = [load(name) for name in scenarios]
    from asapmodel.verbs.report import report as write

    with progress("reporting") as report_step:
        path = write(
            what,
            out,
            force=force,
            engine=engine,
            progress=report_step,
            horizon=length,
            graph_points=graph_points,
            uncertainty=uncertainty,
        )
    note(f"wrote {path}")
