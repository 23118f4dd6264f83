"""A run that goes wrong, told in words: one line a step that others can notice, and what is wrong in the end.

The schedule comes from an exploration, or from a controlled run. It is run again with the workers and memory
themselves, so that what an exploration claims is checked on the way.
"""

from collections.abc import Sequence
from typing import Any

from asapmodel.reference.attention_worker import DONE
from asapmodel.reference.controlled import Choice, Controlled, replayed
from asapmodel.reference.small_system import Name, SmallSystem
from asapmodel.reference.steps import AllSet, Await, Clear, Condition, Read, Send, SetBit, Step, Test, Unset, Write
from asapmodel.reference.watched_memory import (
    Violation,
    WatchedMemory,
    device_name,
    flags_name,
    place_name,
    slots_name,
)

__all__ = ["tell"]


def tell(small: SmallSystem, schedule: Sequence[Choice]) -> list[str]:
    """Tell what happens by a schedule.

    Parameters
    ----------
    small : SmallSystem
        The system.
    schedule : sequence of choices
        To a violation, or to where nobody can go on.
    """
    memory = WatchedMemory(small.shape)
    for channel, task in small.messages:
        memory.carry_out(Send(channel, task))
    lines: list[str] = []

    def see(name: Name, step: Step, given: Any) -> None:
        if told := _told(step, given):
            lines.append(line(name, told))

    def line(name: Name, told: str) -> str:
        subject = None if told.startswith("sees") else memory.subject(name)
        return f"{device_name(name)} {told}{f' ({subject})' if subject else ''}"

    workers = {name: small.start(name) for name in small.names}
    run = Controlled(workers, memory, replayed(schedule), any_condition=True, see=see)
    try:
        run.run()
    except Violation as violation:
        return [*lines, str(violation)]
    waits = [(name, step) for name, step in run.waiting().items() if isinstance(step, Await)]
    blocked = [(name, step.conditions[0]) for name, step in waits if isinstance(step.conditions[0], Unset)]
    lines += [line(name, f"waits until {_condition(one)}") for name, one in blocked]
    return [*lines, "deadlock: nobody can go on" if blocked else "nobody has more to do"]


def _told(step: Step, given: Any) -> str | None:
    """What a step does, in words; nothing for what goes on inside a device or a group."""
    match step:
        case Write(place, value, first) if place.region != "ids" and len(value) > 0:
            return f"writes {slots_name(range(first, first + len(value)))} of {place_name(place)}"
        case Read(place, count, first) if place.region != "ids" and count > 0:
            return f"reads {slots_name(range(first, first + count))} of {place_name(place)}"
        case SetBit(flags, bit):
            return f"sets bit {bit} of {flags_name(flags)}"
        case Clear(flags):
            return f"clears {flags_name(flags)}"
        case Await(conditions) if isinstance(conditions[given], AllSet):
            return f"sees that {_condition(conditions[given])}"
        case Test(condition) if given and isinstance(condition, AllSet):
            return f"sees, looking again, that {_condition(condition)}"
        case Send(channel) if channel == DONE:
            return "has its final rows"
    return None


def _condition(condition: Condition) -> str:
    match condition:
        case AllSet(flags):
            return f"{flags_name(flags)} is complete"
        case Unset(flags, mask):
            return f"bit {mask.bit_length() - 1} of {flags_name(flags)} is clear"
    return "a message is there"
