"""The answer: a fleet, what goes where by hour, what was verified, and what the limits are worth."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asapmodel.planning.program import pack
from asapmodel.planning.search import Search
from asapmodel.planning.settling import Settled
from asapmodel.result import Assumption

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.planning.drawn_plan import DrawnPlan

__all__ = ["ClassTtft", "FleetPool", "Plan", "Worth", "letters", "plan_of"]

_ROUNDING = 1e-9  # of the solver, relative


@dataclass(frozen=True, slots=True)
class ClassTtft:
    """A class's TTFT in a pool at its fullest hour, reserve failed and forecast exceeded, seconds."""

    prompt_class: str
    statistic: str
    objective_s: float
    value_s: float
    hour: int

    @property
    def met(self) -> bool:
        """Whether it stays within the objective."""
        return self.value_s <= self.objective_s


@dataclass(frozen=True, slots=True)
class FleetPool:
    """Instances of a type behind a router.

    Attributes
    ----------
    name, type : str
        ``"A"``, ``"B"``, ... and the type of the instances.
    segments : tuple of str
        What it serves: classes, or ranges of length of them.
    instances, reserve, devices : int
        Reserve and its devices included.
    share : tuple of float
        Of its segments' prompts, by hour, that it serves.
    utilisation : tuple of float
        By hour: work that comes over what all instances can do, forecast right and none failed.
    ttft : tuple of ClassTtft
        Verified with the queueing engine.
    """

    name: str
    type: str
    segments: tuple[str, ...]
    instances: int
    reserve: int
    devices: int
    share: tuple[float, ...]
    utilisation: tuple[float, ...]
    ttft: tuple[ClassTtft, ...]


@dataclass(frozen=True, slots=True)
class Worth:
    """What another limit or rule would change: instances, devices, cost or power, as `minimise` has it."""

    what: str
    change: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet that serves a demand.

    `value` is in units of `minimise` (devices; price per hour; kW), and no fleet of the candidate pools is below
    `bound`; `gap` is their relative difference. `cost_per_hour` and `power_kw` are None where a type has no price or
    power. `supernodes` says how many there are filled in each way (instances by devices), None if none were asked for.
    `uncertainty` says whether the plan would survive the errors of constants, if that was asked.
    """

    demand: str
    minimise: str
    value: float
    bound: float
    gap: float
    instances: int
    devices: int
    cost_per_hour: float | None
    power_kw: float | None
    supernodes: int | None
    packing: tuple[tuple[dict[int, int], int], ...]
    pools: tuple[FleetPool, ...]
    candidates: int
    programs: int
    routing: str
    forecast_error: float
    worths: tuple[Worth, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    uncertainty: "DrawnPlan | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        from dataclasses import asdict

        out = asdict(self)
        if self.uncertainty is None:
            del out["uncertainty"]
        out["packing"] = [{"instances_by_devices": counts, "supernodes": times} for counts, times in self.packing]
        for pool, row in zip(self.pools, out["pools"], strict=True):
            for one, shown in zip(pool.ttft, row["ttft"], strict=True):
                shown["met"] = one.met
        return out

    def table(self) -> "pd.DataFrame":
        """Return a row per pool: name, type, segments, instances, reserve, devices, peak utilisation."""
        import pandas as pd

        rows = [
            {
                "pool": one.name,
                "type": one.type,
                "segments": ", ".join(one.segments),
                "instances": one.instances,
                "reserve": one.reserve,
                "devices": one.devices,
                "peak_utilisation": max(one.utilisation),
            }
            for one in self.pools
        ]
        return pd.DataFrame(rows)

    def routes(self) -> "pd.DataFrame":
        """Return a row per hour, pool and segment with the share of the segment's prompts that goes there."""
        import pandas as pd

        rows = [
            {"hour": hour, "segment": segment, "pool": one.name, "share": share}
            for one in self.pools
            for hour, share in enumerate(one.share)
            for segment in one.segments
            if share > 0
        ]
        return pd.DataFrame(rows, columns=["hour", "segment", "pool", "share"])


def plan_of(search: Search, settled: Settled, worths: tuple[Worth, ...] = ()) -> Plan:
    """The answer of a search."""
    demand, fleet = search.demand, settled.fleet
    opened = [int(p) for p in np.flatnonzero(fleet.instances)]
    kinds = {p: demand.types[search.pools[p].kind] for p in opened}
    counts = {p: int(fleet.instances[p]) for p in opened}

    def total(field: str) -> float | None:
        each = [getattr(kinds[p], field) for p in opened]
        return None if None in each else float(np.dot([counts[p] * kinds[p].devices for p in opened], each))

    sizes: dict[int, int] = {}
    for p in opened:
        sizes[kinds[p].devices] = sizes.get(kinds[p].devices, 0) + counts[p]
    packing = [] if demand.fleet.supernode is None else pack(sizes, demand.fleet.supernode)
    value = sum(counts[p] * kinds[p].weight(demand.fleet.minimise) for p in opened)
    bound = fleet.solved.bound if value - fleet.solved.bound > _ROUNDING * value else value
    return Plan(
        demand=demand.name,
        minimise=demand.fleet.minimise,
        value=float(value),
        bound=float(bound),
        gap=float((value - bound) / value),
        instances=sum(counts.values()),
        devices=sum(counts[p] * kinds[p].devices for p in opened),
        cost_per_hour=total("price"),
        power_kw=total("power"),
        supernodes=None if demand.fleet.supernode is None else sum(times for _, times in packing),
        packing=tuple(packing),
        pools=tuple(_pool(search, settled, p, place) for place, p in enumerate(opened)),
        candidates=len(search.pools),
        programs=settled.rounds,
        routing=demand.fleet.routing,
        forecast_error=demand.fleet.forecast_error,
        worths=worths,
        assumptions=_assumptions(search),
    )


def _pool(search: Search, settled: Settled, p: int, place: int) -> FleetPool:
    pool, fleet = search.pools[p], settled.fleet
    kind = search.demand.types[pool.kind]
    instances = int(fleet.instances[p])
    columns = [search.busy.index(search.stand_in[hour]) for hour in range(search.demand.hours)]
    share = [float(fleet.share[p, column]) for column in columns]
    work = sum(search.segments[k].rates * search.guesses[pool.kind, k].work for k in pool.segments)
    return FleetPool(
        name=letters(place),
        type=pool.kind,
        segments=tuple(search.segments[k].name for k in pool.segments),
        instances=instances,
        reserve=search.demand.fleet.reserve,
        devices=instances * kind.devices,
        share=tuple(share),
        utilisation=tuple((np.array(share) * work / instances).tolist()),
        ttft=_verified(search, settled, p),
    )


def _verified(search: Search, settled: Settled, p: int) -> tuple[ClassTtft, ...]:
    """TTFT by class at the hour at which the pool is fullest, by the full effort of the engine."""
    fleet = settled.fleet
    carrying = int(fleet.instances[p]) - search.demand.fleet.reserve
    h = max(np.flatnonzero(fleet.share[p]).tolist(), key=lambda h: fleet.share[p, h] * search.entries[p, h].need)
    instance = search.analysed(p, h, carrying, "full").instance
    assert instance is not None
    rate = float(fleet.share[p, h] * search.rates_of(p, h).sum()) / carrying
    objectives = {name: search.demand.classes[name].slo for name in instance.mix.origin}
    return tuple(
        ClassTtft(name, objectives[name].statistic, objectives[name].ttft, value, search.busy[h])
        for name, value in instance.statistics(rate).items()
    )


def letters(place: int) -> str:
    """``A`` to ``Z``, ``AA``, ...: names of pools."""
    return (letters(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _assumptions(search: Search) -> tuple[Assumption, ...]:
    """What the types' layer costs rest on, once each, and what this package adds."""
    from asapmodel.costing import layer_costs

    known = [one for kind in search.demand.types.values() for one in layer_costs(kind.scenario).assumptions]
    source = "asapmodel.planning.routing"
    routing = Assumption("routing within a pool", search.demand.fleet.routing, "", "assumed", source)
    return (*dict.fromkeys(one for one in known if one.kind != "derived"), routing)
