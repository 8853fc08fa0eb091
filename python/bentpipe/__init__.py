"""Simulation of TCP over satellite links. Runs, comparisons and studies return their results as tables.

>>> import bentpipe as bp
>>> result = bp.compare("geo-dumbbell", cc=["peach", "cubic"], vary={"link.satellite.loss.rate": [1e-4, 1e-2]}, seeds=10)
>>> result.to_pandas()

Scenarios, algorithms and metrics are those of the command line: ``bp.list_all("cc")``, ``bp.show("geo-dumbbell")``.
An invalid request raises :class:`RequestError` with the same message as the command line.
"""

from bentpipe._bentpipe import Scenario, Table, __version__
from bentpipe._errors import Error, Lacking, MissingError, RequestError, Stopped, WorkError
from bentpipe._results import Comparison, Paper, Run
from bentpipe._work import Algorithm, Observation, algorithm, compare, list_all, paper, run, show, sweep

__all__ = [
    "Algorithm",
    "Comparison",
    "Error",
    "Lacking",
    "MissingError",
    "Observation",
    "Paper",
    "RequestError",
    "Run",
    "Scenario",
    "Stopped",
    "Table",
    "WorkError",
    "__version__",
    "algorithm",
    "compare",
    "list_all",
    "paper",
    "run",
    "show",
    "sweep",
]


def __getattr__(name: str) -> object:
    # `list` is the name of the command. A plain definition would hide Python's built-in `list` in this module.
    if name == "list":
        return list_all
    raise AttributeError(f"module 'bentpipe' has no attribute {name!r}")
