"""A scenario: which model, on which cluster, under which policy, for which traffic, with which objective.

::

    scenario = Scenario.load("paper-asap")            # a shipped one, or a file
    scenario.replace(D=8, rate=6.0)                   # a variant, validated anew
    scenario.layout, scenario.policy, scenario.workload, scenario.slo, scenario.costs_override

The tables are described in `asapmodel.scenario_tables` and `asapmodel.scenario_workload`. Every mistake is an
`InputError` that names file, key and remedy.
"""

import os
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from asapmodel import catalog
from asapmodel.catalog import Cluster, Entry
from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import batching_of, conflict_of
from asapmodel.scenario_keys import (
    assign,
    check_keys,
    key_path,
    make_paths_absolute,
    make_profile_absolute,
    nest_dotted_keys,
    plain,
)
from asapmodel.scenario_resolve import (
    check_precision,
    resolve_architecture,
    resolve_cluster,
    with_copies_stated,
    with_precision,
)
from asapmodel.scenario_tables import (
    TABLES,
    ClusterFields,
    CostOverrides,
    SloTable,
    SystemTable,
    UncertaintyTable,
    UseTable,
)
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.tables import Overrides, unknown_file, validate
from asapmodel.tomlfile import format_toml, parse_toml, read_text

__all__ = ["Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A validated scenario; make one with `load`, `parse` or `replace`.

    Attributes
    ----------
    name : str
        The shipped name, or the file's without suffix.
    source : str
        The file, or ``"<name>"`` for a shipped scenario or text.
    model, cluster, system, policy_table, workload, slo, costs, uncertainty
        The tables as given. Read `architecture`, `layout`, `policy` and the like for what they amount to.
    """

    name: str
    source: str = field(compare=False)
    model: UseTable
    cluster: ClusterFields
    system: SystemTable
    policy_table: Overrides
    workload: WorkloadTable
    slo: SloTable
    costs: CostOverrides
    uncertainty: UncertaintyTable
    _given: dict[str, dict[str, Any]] = field(repr=False, compare=False)

    @classmethod
    def load(cls, path_or_name: str | os.PathLike[str]) -> "Scenario":
        """Return the scenario of a file, or a shipped one.

        Raises
        ------
        InputError
            If there is neither such a file nor such a shipped scenario, or its content is invalid.

        Examples
        --------
        >>> Scenario.load("paper-asap").layout
        Layout(kind='asap', D=4, T=4, E=16)
        """
        path, given = Path(path_or_name), os.fspath(path_or_name)
        shipped = catalog.names("scenarios")
        if not os.path.exists(path) and given in shipped:
            path, where = catalog.entry_path("scenarios", given), f"<{given}>"
        elif os.path.exists(path) or not shipped:
            where = given
        else:
            raise InputError(given, "", *unknown_file(path.stem, "scenario", shipped))
        return cls.parse(read_text(path, where), where=where, base=path.parent)

    @classmethod
    def parse(cls, text: str, where: str = "<text>", base: str | os.PathLike[str] | None = None) -> "Scenario":
        """Return the scenario that TOML text describes.

        Parameters
        ----------
        text : str
            The content of a scenario file.
        where : str
            The file to name in errors.
        base : path, optional
            What relative paths in the text are relative to; default the working directory.

        Raises
        ------
        InputError
            The first mistake found.
        """
        name = where.strip("<>") if where.startswith("<") else Path(where).stem
        return _build(name, where, parse_toml(text, where), Path.cwd() if base is None else Path(base))

    def replace(self, /, **changes: Any) -> "Scenario":
        """Return a variant, validated anew.

        Parameters
        ----------
        **changes
            Keys of `[system]`, `[policy]`, `[workload]`, `[slo]` as they are (``D=8``, ``rate=4.0``), any key with
            its table (``**{"costs.moe.floor": 1e-4}``), whole tables (``costs={}``), or `name`. None means: as if
            not given. Relative paths are relative to the working directory.

        Raises
        ------
        InputError
            For an unknown key, naming the nearest valid one, or a value that is not valid.

        Examples
        --------
        >>> Scenario.load("paper-default").replace(D=4, chunk_tokens=8192).layout.E
        16
        """
        name = changes.pop("name", self.name)
        paths = [(key_path(key, self.source), plain(value)) for key, value in changes.items()]
        touched = {path[0] for path, _ in paths}
        given = {table: deepcopy(value) if table in touched else value for table, value in self._given.items()}
        for path, value in paths:
            assign(given, path, value)
        return _build(name, self.source, given, Path.cwd(), self, touched)

    def to_toml(self) -> str:
        """Return the scenario as the text of a file; `parse` of it is an equal scenario. Paths are absolute."""
        return format_toml({name: self._given[name] for name in TABLES if name in self._given})

    def __reduce__(self) -> tuple[Any, ...]:
        # Classes of tables made from dataclasses cannot be found by name; what they were made of can be sent.
        return _build, (self.name, self.source, self._given, Path.cwd())

    @property
    def layout(self) -> Layout:
        """The parallel degrees; `E` is `D T` for a synchronous system."""
        system = self.system
        experts = system.E if system.kind == "asap" else system.D * system.T
        return Layout(system.kind, system.D, system.T, cast(int, experts))

    @property
    def policy(self) -> Policy:
        """The scheduling policy, defaults filled in (`batch_window` is 0 by default for `sync`)."""
        defaults = {"batch_window": 0.0} if self.system.kind == "sync" else {}
        return Policy(**(defaults | self.policy_table.given()))

    @property
    def costs_override(self) -> CostOverrides:
        """What `[costs]` replaces: `given()` lists it, `apply(costs)` puts it in place."""
        return self.costs

    @cached_property
    def architecture(self) -> Entry[Architecture]:
        """The model's architecture, and the origin of its numbers."""
        return resolve_architecture(self.model, self.source)

    @cached_property
    def _resolved(self) -> tuple[Entry[Cluster], Entry[Device], Entry[Profile]]:
        return resolve_cluster(self.cluster, self.source)

    @property
    def devices(self) -> Entry[Cluster]:
        """How many devices there are, and their kind."""
        return self._resolved[0]

    @cached_property
    def device(self) -> Entry[Device]:
        """One device at the system's precision, and the origin of its numbers."""
        return with_precision(self._resolved[1], self.system.precision, self.source)

    @cached_property
    def profile(self) -> Entry[Profile]:
        """Efficiencies, latencies and bytes, and the origin of these numbers."""
        return with_copies_stated(self._resolved[2], self.architecture.value, self.device.value)


def _build(
    name: str,
    where: str,
    data: dict[str, Any],
    base: Path,
    origin: Scenario | None = None,
    touched: Collection[str] = tuple(TABLES),
) -> Scenario:
    """Validate the tables that were touched, then what spans tables; the others are those of `origin`."""
    nest_dotted_keys(data.get("uncertainty"))
    check_keys(data, where)
    if "workload" in touched:
        make_paths_absolute(data.get("workload"), base)
    if "cluster" in touched:
        make_profile_absolute(data.get("cluster"), base)
    tables: dict[str, Any] = {}
    for table, kind in TABLES.items():
        field_name = "policy_table" if table == "policy" else table
        known = origin is not None and table not in touched
        tables[field_name] = getattr(origin, field_name) if known else validate(kind, data.get(table, {}), where, table)
    scenario = Scenario(name=name, source=where, _given=data, **tables)
    if origin is not None:  # what the catalogue says of the same tables
        for table, known_name in (("model", "architecture"), ("cluster", "_resolved")):
            if table not in touched and known_name in origin.__dict__:
                scenario.__dict__[known_name] = origin.__dict__[known_name]
    _check_system(scenario)
    _check_policy(scenario)
    _check_layers(scenario)
    return scenario


def _check_system(scenario: Scenario) -> None:
    where, system = scenario.source, scenario.system
    if system.kind == "asap" and system.E is None:
        raise InputError(where, "system.E", "is missing", "kind = 'asap' needs the number of MoE devices")
    if system.kind == "sync" and system.E not in (None, system.D * system.T):
        remedy = f"experts are spread over all D x T = {system.D * system.T} devices: give that, or leave E out"
        raise InputError(where, "system.E", f"is {system.E} for kind = 'sync'", remedy)
    check_precision(scenario.device.value, scenario.devices.value.device, where)
    needed, there = scenario.layout.devices, scenario.devices.value.devices
    if needed > there:
        problem = f"needs {needed} devices, the cluster has {there}"
        raise InputError(where, "system", problem, "lower D, T or E, or raise cluster.devices")


def _check_policy(scenario: Scenario) -> None:
    where, policy = scenario.source, scenario.policy
    found = conflict_of(scenario.system.kind, policy)
    if found is not None:
        raise InputError(where, f"policy.{found.key}", found.problem, found.remedy)
    # The rules have an answer to this one, but nobody means it.
    waits = batching_of(scenario.system.kind, policy) == "min_tokens"
    if waits and policy.min_batch_tokens > policy.max_batch_tokens:
        problem = f"is {policy.min_batch_tokens}, more than max_batch_tokens {policy.max_batch_tokens}"
        raise InputError(where, "policy.min_batch_tokens", problem, "lower it, or raise max_batch_tokens")


def _check_layers(scenario: Scenario) -> None:
    given, model = scenario.costs.given(), scenario.architecture.value
    layers = given.get("layers", model.layers)
    dense = given.get("dense_layers", 0)
    if dense > layers:
        raise InputError(scenario.source, "costs.dense_layers", f"is {dense}", f"give at most layers, {layers}")
