"""The synchronous baseline put together, and run in virtual time."""

from collections.abc import Sequence

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import VirtualRun, check_layers, make_shape, phase_seconds
from asapmodel.reference.devices import AttentionDevice, ExpertDevice, Model
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.lockstep_worker import device_name, iteration_worker, lockstep_device
from asapmodel.reference.memory import Memory
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.scheduler_worker import Journal, source
from asapmodel.reference.steps import Steps
from asapmodel.reference.system import SCHEDULER, Name
from asapmodel.reference.virtual_time import VirtualTime

__all__ = ["SyncSystem", "run_synchronous"]


class SyncSystem:
    """One synchronous system: its workers by name, as `asapmodel.reference.asynchronous.AsyncSystem`.

    Parameters
    ----------
    model, layout, policy, prompts
        As there; `layout.E` is `D T`.
    per_token, per_token2 : float
        Attention cost a1 and a2, for `policy.balance = "work"`.

    Raises
    ------
    ValueError
        If E is not D T, or experts, heads or tokens do not divide over the devices.
    """

    def __init__(
        self,
        model: Model,
        layout: Layout,
        policy: Policy,
        prompts: Sequence[Prompt],
        per_token: float = 1.0,
        per_token2: float = 0.0,
    ) -> None:
        if layout.E != layout.D * layout.T:
            raise ValueError(f"E = {layout.E}, but experts live on the D T = {layout.D * layout.T} attention devices")
        self.shape = make_shape(model, layout, policy, prompts)
        self.journal = Journal()
        self.experts: dict[int, ExpertDevice] = {}
        self._model, self._policy, self._prompts = model, policy, prompts
        self._weights = (per_token, per_token2)

    def devices(self) -> dict[Name, list[Name]]:
        """Names of the workers of every device; the scheduler is one, with the source of requests."""
        devices = [device_name(self.shape, e) for e in range(self.shape.E)]
        found: dict[Name, list[Name]] = {name: [(*name, "all")] for name in devices}
        found[SCHEDULER] = [SCHEDULER, ("source",)]
        return found

    def linked(self, one: Name, other: Name) -> bool:
        """All with all: exchanges are all-to-all."""
        return one != other

    def start(self, name: Name) -> Steps:
        """Start one worker."""
        match name:
            case ("attention", i, j, _):
                e = i * self.shape.T + j
                self.experts[e] = ExpertDevice(self._model, self.shape, e, super_kernel=False)
                return lockstep_device(AttentionDevice(self._model, self.shape, i, j), self.experts[e])
            case ("source",):
                return source(self._prompts)
        self.journal = Journal()
        scheduler = IterationScheduler(self.shape.D, self._policy, *self._weights)
        return iteration_worker(scheduler, self.shape, len(self._prompts), self.journal)


def run_synchronous(
    model: Model, layout: Layout, policy: Policy, costs: LayerCosts, prompts: Sequence[Prompt]
) -> VirtualRun:
    """Run the synchronous system in virtual time, moving all tensors.

    Raises
    ------
    ValueError
        As `SyncSystem`, or if model and costs differ in layers.
    """
    check_layers(model, costs)
    system = SyncSystem(model, layout, policy, prompts, costs.attention.per_token, costs.attention.per_token2)
    workers = {name: system.start(name) for names in system.devices().values() for name in names}
    clock = VirtualTime(workers, Memory(system.shape), phase_seconds(costs))
    clock.run(SCHEDULER)
    return VirtualRun(system.journal, clock.log, [system.experts[e] for e in range(layout.E)])
