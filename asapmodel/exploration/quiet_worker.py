"""Set up a worker process of ours: Ctrl-C is for the process that started it, which ends its workers itself."""

import signal

__all__ = ["dask_setup"]


def dask_setup(worker: object) -> None:
    """Leave interrupts alone; `distributed` calls this when the worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
