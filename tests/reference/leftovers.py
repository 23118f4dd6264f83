"""Whether a run in processes has left anything behind."""

import multiprocessing
import os
import threading
from pathlib import Path

from asapmodel.reference.shared import SEGMENT

__all__ = ["nothing_left"]


def nothing_left(pid: int | None = None) -> bool:
    """No process of ours, and no segment of a process."""
    shm = Path("/dev/shm")
    segments = list(shm.glob(f"{SEGMENT}_{pid or os.getpid()}_*")) if shm.exists() else []
    threads = [one.name for one in threading.enumerate() if one.name.startswith("links")]
    return not multiprocessing.active_children() and not segments and not threads
