"""The audit that plays the adversary: releases of neighbouring tables, attacks on them, and what these may learn.

Private colour: it looks at exact counts. The tables are its own, made up; it never sees a user's.
"""

from ppsyn.extras import require

require("benchmark", "The self-test")
