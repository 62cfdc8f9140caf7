"""Lets the tests of this folder import `small_models`, which stands beside them, and mbi without its warning."""

import os
import sys
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"
sys.path.append(str(Path(__file__).parent))
