"""The tables of a demand file: classes of prompts, types of instances, and the fleet they are to make up."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from asapmodel import units
from asapmodel.scenario_tables import SloTable
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.tables import Count, CountOrZero, Positive, Table, TableError, validate

__all__ = ["ClassTable", "FleetTable", "TypeTable", "workload_of"]


def _rates(value: Any) -> Any:
    """One rate for the whole day, or a rate for each hour."""
    return tuple(units.per_second(one) for one in (value if isinstance(value, list) else [value]))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Rates = Annotated[tuple[Annotated[float, Field(ge=0.0)], ...], BeforeValidator(_rates), Field(min_length=1)]
Share = Annotated[float, Field(ge=0.0)]


class ClassTable(Table):
    """`[class.NAME]`: prompts of one kind, how many there are hour by hour, and their objective.

    `rate` is one number or one for each hour, requests/s, all multiplied by `growth`. `cv` is the coefficient of
    variation of the gaps between arrivals.
    """

    lengths: Any
    rate: Rates
    growth: Positive = 1.0
    cv: Positive = 1.0
    min_prompt_tokens: Count = 1
    max_prompt_tokens: Count = 32768
    slo: SloTable = Field(default_factory=SloTable)

    @model_validator(mode="after")
    def _some_traffic(self) -> "ClassTable":
        if not any(self.rate):
            raise TableError("rate", "is 0 at every hour", "give a positive rate, or leave the class out")
        return self


class TypeTable(Table):
    """`[type.NAME]`: a scenario that can be bought any number of times, or `available` times.

    `set` changes keys of the scenario as `--set` does. `price` is per device and hour, in any currency, `power` in
    kW per device.
    """

    scenario: str
    set: dict[str, Any] = Field(default_factory=dict)
    price: Positive | None = None
    power: Positive | None = None
    available: CountOrZero | None = None


class FleetTable(Table):
    """`[fleet]`: what is to be minimised, and what every fleet has to satisfy.

    `reserve` instances of every pool may fail at once, and demand may be `forecast_error` higher than said, with all
    objectives still met. `split_at` are lengths at which prompts may go to different pools.
    """

    minimise: Literal["devices", "cost", "power"] = "devices"
    routing: Literal["round_robin", "random", "least_work"] = "round_robin"
    supernode: Count | None = None
    max_supernodes: Count | None = None
    reserve: CountOrZero = 0
    forecast_error: Share = 0.0
    split_at: Annotated[tuple[Count, ...], BeforeValidator(_tuple)] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "FleetTable":
        if self.max_supernodes is not None and self.supernode is None:
            raise TableError("supernode", "is missing", "max_supernodes needs the devices of a supernode")
        return self


def workload_of(table: ClassTable, where: str, key: str) -> WorkloadTable:
    """The class's prompts as the workload of a scenario.

    Raises
    ------
    InputError
        If its lengths or bounds are not valid.
    """
    data = {name: getattr(table, name) for name in ("lengths", "min_prompt_tokens", "max_prompt_tokens")}
    return validate(WorkloadTable, data, where, key)
