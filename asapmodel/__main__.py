"""``python -m asapmodel``: the command line."""

import sys

from asapmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
