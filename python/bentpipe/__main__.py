"""The command line: ``python -m bentpipe`` does what the program ``bentpipe`` does."""

import sys

from bentpipe._bentpipe import command_line


def main() -> int:
    """Do what the words of this process ask for; return the exit code."""
    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
