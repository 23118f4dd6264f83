"""What an executor has to know of a system, synchronous or asynchronous."""

from typing import Any, Protocol

from asapmodel.reference.buffers import Shape
from asapmodel.reference.devices import ExpertDevice
from asapmodel.reference.scheduler_worker import Journal
from asapmodel.reference.steps import Steps

__all__ = ["SCHEDULER", "Name", "System"]

Name = tuple[Any, ...]
"""Of a device or a worker; that of a device is how the names of its workers begin."""

SCHEDULER: Name = ("scheduler",)


class System(Protocol):
    """A system whose workers are started by name, afresh and as often as an executor likes."""

    shape: Shape
    journal: Journal
    """What the scheduler that was started last has noted."""
    experts: dict[int, ExpertDevice]
    """Expert devices that were started last."""

    def devices(self) -> dict[Name, list[Name]]:
        """Names of the workers of every device; the scheduler is one, with the source of requests."""
        ...

    def linked(self, one: Name, other: Name) -> bool:
        """Whether two devices have control links to each other."""
        ...

    def start(self, name: Name) -> Steps:
        """Start one worker."""
        ...
