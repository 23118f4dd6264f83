"""Hypothesis: the same examples every time in `make test`, new ones in `make test-all`."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)  # no timed assertions
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
