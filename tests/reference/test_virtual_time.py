"""The executor in virtual time: order of what happens at one instant, waiting, and being stuck."""

import pytest

from asapmodel.reference.buffers import Shape
from asapmodel.reference.memory import Memory
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Channel,
    Flags,
    Now,
    Pending,
    Phase,
    Reached,
    Receive,
    Send,
    SetBit,
    Spend,
    Steps,
)
from asapmodel.reference.virtual_time import Stuck, VirtualTime

SHAPE = Shape(D=1, T=2, E=1, E_total=1, K=1, H=1, S=2)
FLAGS = Flags(("moe", 0), (0,))
LINK = Channel(("test",), "link")


def busy(seconds: int) -> Spend:
    return Spend(Phase("work", seconds, 0, 0))


def run(**workers: Steps) -> VirtualTime:
    clock = VirtualTime({(name,): worker for name, worker in workers.items()}, Memory(SHAPE), lambda p: float(p.n))
    clock.run(("last",))
    return clock


def test_the_clock_moves_by_phases_only() -> None:
    seen = []

    def worker() -> Steps:
        seen.append((yield Now()))
        yield busy(3)
        yield Send(LINK, "x")
        yield Receive(LINK)
        yield busy(4)
        seen.append((yield Now()))

    clock = run(last=worker())
    assert seen == [0.0, 7.0]
    assert [(one.start, one.end) for one in clock.log] == [(0.0, 3.0), (3.0, 7.0)]


def test_of_several_conditions_the_first_that_came_to_hold_is_taken() -> None:
    def setter(bit: int, after: int) -> Steps:
        yield busy(after)
        yield SetBit(FLAGS, bit)

    def sender() -> Steps:
        yield busy(2)
        yield Send(LINK, "x")

    taken = []

    def last() -> Steps:
        yield busy(10)
        for _ in range(2):
            index = yield Await((Pending(LINK), AllSet(FLAGS, 0b11)))
            taken.append(index)
            yield Receive(LINK) if index == 0 else busy(0)

    run(one=setter(0, 1), two=setter(1, 3), sender=sender(), last=last())
    assert taken == [0, 1]  # the link at 2 s, the second bit at 3 s


def test_at_one_instant_ends_come_before_expiries_and_those_before_arrivals() -> None:
    order = []

    def waiter(name: str, rank: int) -> Steps:
        yield Await((Reached(5.0, rank),))
        order.append(name)

    def ender() -> Steps:
        yield busy(5)
        order.append("end")

    def last() -> Steps:
        yield busy(6)

    run(arrival=waiter("arrival", 2), expiry=waiter("expiry", 1), end=ender(), last=last())
    assert order == ["end", "expiry", "arrival"]


def test_workers_that_wait_for_each_other_are_reported() -> None:
    def waits(channel: Channel) -> Steps:
        yield busy(2)
        yield Receive(channel)

    with pytest.raises(Stuck, match="nobody can go on after 2 s: other, last wait"):
        run(other=waits(LINK), last=waits(Channel(("test",), "back")))
