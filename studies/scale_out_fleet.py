"""The smallest fleets for a large demand, by types of instances that may be used."""

from collections.abc import Mapping

from asapmodel.planning.answer import Plan
from asapmodel.planning.demand import Demand
from asapmodel.scenario import Scenario
from asapmodel.studies.pages import markdown_table
from asapmodel.verbs.plan import plan

__all__ = ["DEMAND", "SUPERNODE", "fleet_table", "fleets"]

DEMAND = 1000.0
"""Requests/s."""

SUPERNODE = 768
"""Devices."""

_TEXT = """
[fleet]
minimise = "devices"
supernode = {supernode}
[class.prompts]
lengths = {{ family = "lognormal", mu = 7.5733, sigma = 1.445 }}
min_prompt_tokens = 31
rate = {rate}
"""


def fleets(choices: Mapping[str, tuple[Scenario, ...]], rate: float = DEMAND) -> dict[str, Plan]:
    """The smallest fleet out of each choice of instances.

    Parameters
    ----------
    choices : mapping
        Scenarios of which a fleet may have any number, by the name of the choice.
    rate : float
        Of the paper's prompts, requests/s.
    """
    found = {}
    for name, scenarios in choices.items():
        text = _TEXT.format(supernode=SUPERNODE, rate=rate)
        text += "".join(_type(place, one) for place, one in enumerate(scenarios))
        found[name] = plan(Demand.parse(text))
    return found


def _type(place: int, scenario: Scenario) -> str:
    """A type table: the shipped scenario with its degrees and policy."""
    layout, policy = scenario.layout, scenario.policy
    changes = {"D": layout.D, "T": layout.T}
    if layout.kind == "asap":
        base = "paper-asap"
        changes |= {"E": layout.E, "min_batch_tokens": policy.min_batch_tokens}
        changes |= {"exclusive_tokens": policy.exclusive_tokens}
        words = f', pairing = "{policy.pairing}"'
    else:
        base, words = "paper-chunked", ""
        changes |= {"chunk_tokens": policy.chunk_tokens}
    inside = ", ".join(f"{key} = {value}" for key, value in changes.items()) + words
    return f'[type.t{place}-of-{layout.devices}]\nscenario = "{base}"\nset = {{ {inside} }}\n'


def fleet_table(found: Mapping[str, Plan]) -> str:
    """Fleets side by side."""
    lines = []
    for name, one in found.items():
        types = ", ".join(f"{pool.instances} of {pool.devices // pool.instances}" for pool in one.pools)
        lines.append([name, types, str(one.devices), str(one.supernodes), f"{one.gap:.1%}"])
    return markdown_table(["instances allowed", "fleet", "devices", "supernodes", "gap"], lines, (2, 3, 4))
