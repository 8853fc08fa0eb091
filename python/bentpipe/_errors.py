"""Exceptions, with the words of the command line: the place, what was found, and what is accepted."""

from collections.abc import Iterator
from contextlib import contextmanager


class Error(Exception):
    """Base of all exceptions of Bentpipe."""


class RequestError(Error, ValueError):
    """The request was wrong: a scenario, a setting, a name, a path (exit code 2 of the command line)."""


class WorkError(Error, RuntimeError):
    """The work failed (exit code 1)."""


class MissingError(Error, RuntimeError):
    """Something on this machine is missing, and the message says how to get it (exit code 3)."""


class Stopped(UserWarning):
    """Some runs did not finish; the result holds those that did."""


class Lacking(UserWarning):
    """An algorithm lacks in this scenario what it lives on."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a failed import into :class:`MissingError` that names the extra of this package that brings the library."""
    try:
        yield
    except ModuleNotFoundError as error:
        words = f"{error.name} is not installed: pip install 'bentpipe[{extra}]'"
        raise MissingError(words) from error
