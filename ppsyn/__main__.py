"""The program `ppsyn`, which says so if the command line is not installed."""

import sys

from ppsyn.errors import MissingExtraError


def main() -> None:
    """Run the command line."""
    try:
        from ppsyn.flows.cli.main import main as command_line  # noqa: PLC0415  # what it needs may be missing
    except MissingExtraError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    command_line()


if __name__ == "__main__":
    main()
