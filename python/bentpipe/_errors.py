"""Exceptions. Their messages are those of the command line: the key or argument, the value found, and the accepted values."""

from collections.abc import Iterator
from contextlib import contextmanager


class Error(Exception):
    """Base of all exceptions of Bentpipe."""


class RequestError(Error, ValueError):
    """The request was invalid: a scenario, a setting, a name or a path (exit code 2 of the command line)."""


class WorkError(Error, RuntimeError):
    """A run failed or a file could not be written (exit code 1 of the command line)."""


class MissingError(Error, RuntimeError):
    """A program or library is missing; the message says how to install it (exit code 3 of the command line)."""


class Stopped(UserWarning):
    """Warning that some runs did not finish. The result contains the finished runs."""


class Lacking(UserWarning):
    """Warning that the scenario lacks something that an algorithm needs, for instance a node that supports it."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a failed import into a :class:`MissingError` that names the extra of this package to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        words = f"{error.name} is not installed: pip install 'bentpipe[{extra}]'"
        raise MissingError(words) from error
