"""The asynchronous system put together, and run in virtual time.

The workers are those that run everywhere (`attention_worker`, `expert_worker`, `scheduler_worker`); only the executor
knows about time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.reference.attention_worker import Streams, attention_stream
from asapmodel.reference.buffers import Shape
from asapmodel.reference.devices import AttentionDevice, ExpertDevice, Model
from asapmodel.reference.expert_worker import Order, expert_stream
from asapmodel.reference.memory import Memory
from asapmodel.reference.primitives import ASYNC, Primitives
from asapmodel.reference.scheduler import Prompt, PullScheduler
from asapmodel.reference.scheduler_worker import Journal, pull_worker, source
from asapmodel.reference.steps import Phase, Steps
from asapmodel.reference.system import SCHEDULER, Name
from asapmodel.reference.virtual_time import Busy, VirtualTime

__all__ = ["AsyncSystem", "VirtualRun", "check_layers", "make_shape", "phase_seconds", "run_asynchronous"]


@dataclass(frozen=True, slots=True, eq=False)
class VirtualRun:
    """What a run in virtual time leaves behind."""

    journal: Journal
    log: list[Busy]
    experts: list[ExpertDevice]


class AsyncSystem:
    """One asynchronous system: its workers by name, each started afresh as often as an executor likes.

    Parameters
    ----------
    model : Model
        Weights, and the tokens of all prompts.
    layout, policy
        As in a scenario; `policy.max_batch_tokens` or the longest prompt sizes the buffers.
    prompts : sequence of Prompt
        In order of arrival.
    step : bool
        Whether a batch starts with a step's overhead.
    order : {"oldest", "fair"}
        See `asapmodel.reference.expert_worker`.
    primitives : Primitives
        The four primitives.

    Attributes
    ----------
    journal, experts
        What the scheduler and the MoE devices that were started last have noted.
    """

    def __init__(
        self,
        model: Model,
        layout: Layout,
        policy: Policy,
        prompts: Sequence[Prompt],
        *,
        step: bool = False,
        order: Order = "oldest",
        primitives: Primitives = ASYNC,
    ) -> None:
        self.shape = make_shape(model, layout, policy, prompts)
        self.journal = Journal()
        self.experts: dict[int, ExpertDevice] = {}
        self._model, self._policy, self._prompts = model, policy, prompts
        self._step, self._order, self._primitives = step, order, primitives
        self._own, self._pool = Streams.of(policy.overlap_attention), Streams.of(policy.overlap_moe)

    def devices(self) -> dict[Name, list[Name]]:
        """Names of the workers of every device; the scheduler is one, with the source of requests."""
        shape = self.shape
        found: dict[Name, list[Name]] = {}
        for i in range(shape.D):
            for j in range(shape.T):
                found["attention", i, j] = [("attention", i, j, stream) for stream in self._own.names]
        for e in range(shape.E):
            found["moe", e] = [("moe", e, stream) for stream in self._pool.names]
        found[SCHEDULER] = [SCHEDULER, ("source",)]
        return found

    def linked(self, one: Name, other: Name) -> bool:
        """Members of a group, and everybody with the scheduler; MoE devices share memory alone with attention."""
        return SCHEDULER in (one, other) or one[:2] == other[:2]

    def start(self, name: Name) -> Steps:
        """Start one worker."""
        match name:
            case ("attention", i, j, stream):
                device = AttentionDevice(self._model, self.shape, i, j)
                return attention_stream(device, self._own, stream, self._primitives)
            case ("moe", e, stream):
                expert = ExpertDevice(self._model, self.shape, e, self._policy.super_kernel)
                if stream == self._pool.compute:
                    self.experts[e] = expert
                return expert_stream(expert, self._pool, stream, self._order, self._primitives)
            case ("source",):
                return source(self._prompts)
        self.journal = Journal()
        scheduler = PullScheduler(self.shape.D, self._policy)
        return pull_worker(scheduler, self.shape, self._own, len(self._prompts), self._step, self.journal)


def make_shape(model: Model, layout: Layout, policy: Policy, prompts: Sequence[Prompt]) -> Shape:
    """Sizes of a system whose buffers hold its largest batch."""
    config = model.config
    sizes = [prompt.to_compute for prompt in prompts]
    largest = min(max(policy.max_batch_tokens, policy.chunk_tokens, *sizes), sum(sizes))
    tokens = -(-largest // layout.T) * layout.T
    return Shape(layout.D, layout.T, layout.E, config.experts, config.top, config.hidden, tokens, slots=policy.slots)


def check_layers(model: Model, costs: LayerCosts) -> None:
    """ValueError unless model and costs have the same layers."""
    if (costs.layers, costs.dense_layers) != (model.config.layers, model.config.dense_layers):
        raise ValueError(
            f"the model has {model.config.layers} layers, {model.config.dense_layers} of them dense, the costs "
            f"{costs.layers} and {costs.dense_layers}; give both the same"
        )


def phase_seconds(costs: LayerCosts, host: float = 0.0) -> Callable[[Phase], float]:
    """Duration of a phase of either system by the costs of one layer; `host` is exposed host dispatch, seconds."""
    by_tokens = {
        "dispatch_send": costs.dispatch_send,
        "dispatch_recv": costs.dispatch_recv,
        "combine_send": costs.combine_send,
        "combine_recv": costs.combine_recv,
    }

    def seconds(phase: Phase) -> float:
        n, w = float(phase.n), float(phase.w)
        match phase.name:
            case "barrier":
                return 0.0
            case "step":
                return costs.step_overhead
            case "dense":
                return costs.dense_layer(n, w)
            case "attention":
                return costs.attention(n, w)
            case "moe":
                return costs.moe(n) + host
        return by_tokens[phase.name](n)

    return seconds


def run_asynchronous(
    model: Model,
    layout: Layout,
    policy: Policy,
    costs: LayerCosts,
    prompts: Sequence[Prompt],
    order: Order = "oldest",
) -> VirtualRun:
    """Run the asynchronous system in virtual time, moving all tensors.

    Raises
    ------
    ValueError
        If experts, heads or tokens do not divide over the devices.
    """
    check_layers(model, costs)
    host = 0.0 if policy.super_kernel else costs.host_dispatch
    system = AsyncSystem(model, layout, policy, prompts, step=costs.step_overhead > 0, order=order)
    workers = {name: system.start(name) for names in system.devices().values() for name in names}
    clock = VirtualTime(workers, Memory(system.shape), phase_seconds(costs, host))
    clock.run(SCHEDULER)
    return VirtualRun(system.journal, clock.log, [system.experts[e] for e in range(layout.E)])
