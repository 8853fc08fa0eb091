"""The command line: ``python -m bentpipe`` is the same as the program ``bentpipe``."""

import sys

from bentpipe._bentpipe import command_line


def main() -> int:
    """Execute the command in the arguments of this process and return its exit code."""
    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
