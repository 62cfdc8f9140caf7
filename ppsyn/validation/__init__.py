"""What Great Expectations holds against tables: yes or no for the private one, details for the released one."""

from ppsyn.validation.private import check_codes, check_columns
from ppsyn.validation.released import validate

__all__ = ["check_codes", "check_columns", "validate"]
