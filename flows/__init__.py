"""What runs, and the command line."""

from ppsyn.extras import require

require("pipeline", "The command line")
