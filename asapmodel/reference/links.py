"""Control links between processes: one connection for every pair of devices that talk, and queues of what has come.

The system says which pairs talk: in the asynchronous one attention devices of a group, and all with the scheduler. MoE
devices talk to that only about the run itself: with attention devices they share nothing but memory.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import combinations
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from threading import Thread
from time import monotonic_ns
from typing import Any

from asapmodel.reference.steps import Channel
from asapmodel.reference.system import Name

__all__ = ["Links", "connect"]

Peers = dict[Name, Connection]


def connect(devices: Iterable[Name], linked: Callable[[Name, Name], bool], context: BaseContext) -> dict[Name, Peers]:
    """Connections of every device to those that it talks to, by their names."""
    ends: dict[Name, Peers] = {device: {} for device in devices}
    for one, other in combinations(ends, 2):
        if linked(one, other):
            ends[one][other], ends[other][one] = context.Pipe()
    return ends


class Links:
    """Channels of one device: queues of messages, first in, first out.

    A thread takes messages off the connections as they come. So a sender waits for nobody but this thread, whatever the
    device itself is doing or waiting for, and two devices that send each other large arrays do not lock each other up.

    Parameters
    ----------
    device : tuple
        Name of the device.
    peers : mapping
        Its connections.
    parent : int, optional
        Sentinel of the parent process. When the parent dies the thread ends the process, in whatever state it is.
    """

    def __init__(self, device: Name, peers: Mapping[Name, Connection], parent: int | None = None) -> None:
        self._device, self._peers = device, peers
        self._parent = [] if parent is None else [parent]
        self._queues: dict[Channel, deque[tuple[int, Any]]] = {}
        self._thread = Thread(target=self._listen, name=f"links of {device}", daemon=True)
        self._thread.start()

    def send(self, channel: Channel, message: Any) -> None:
        """Put a message into a channel of this device or of one that it is connected to."""
        if channel.holder == self._device:
            self._put(channel, message)
            return
        with suppress(ConnectionError):  # the receiver is dead; its parent will see that and end the run
            self._peers[channel.holder].send((channel, message))

    def since(self, channel: Channel) -> int | None:
        """When the first message of a channel came, nanoseconds of `monotonic_ns`, or None if there is none."""
        queue = self._queues.get(channel)
        return queue[0][0] if queue else None

    def take(self, channel: Channel) -> Any:
        """Take the first message of a channel; there must be one."""
        return self._queues[channel].popleft()[1]

    def close(self) -> None:
        """Close the connections of a device whose peers have all ended."""
        self._thread.join(1.0)
        for connection in self._peers.values():
            connection.close()

    def _put(self, channel: Channel, message: Any) -> None:
        self._queues.setdefault(channel, deque()).append((monotonic_ns(), message))

    def _listen(self) -> None:
        open_ends = set(self._peers.values())
        while open_ends or self._parent:
            for one in wait([*open_ends, *self._parent]):
                if isinstance(one, int):
                    os._exit(1)
                assert isinstance(one, Connection)
                try:
                    channel, message = one.recv()
                except (EOFError, OSError):  # the peer has ended
                    open_ends.discard(one)
                else:
                    self._put(channel, message)
