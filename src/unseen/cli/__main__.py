"""``python -m unseen.cli`` is the same as ``unseen``."""

import sys

from unseen.cli.main import main

sys.exit(main())
