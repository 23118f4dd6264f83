"""One thread of linear algebra a worker; hypothesis: the same examples in `make test`, new ones in `make test-all`."""

import os

from hypothesis import settings

# Before NumPy is loaded: workers fill the cores, and threads of theirs that wait for a core spin, ten times too long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("steady", derandomize=True, deadline=None)  # no timed assertions
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
