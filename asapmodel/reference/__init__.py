"""A small executable reference system: the paper's mechanisms in NumPy, really moving tensors.

Shared buffers, the four asynchronous primitives, scheduler, layer-oblivious super kernel, a tiny MoE transformer, and
the synchronous baseline. Workers are generators that yield at every step; executors drive them in virtual time, in a
controlled order, or as operating-system processes.
"""
