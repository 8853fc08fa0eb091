"""Exceptions, with the words of the command line: the place, what was found, and what is accepted."""


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
