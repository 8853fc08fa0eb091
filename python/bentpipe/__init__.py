"""TCP over satellite links from Python: the simulator, its comparisons and studies, as tables.

>>> import bentpipe as bp
>>> result = bp.compare("geo-dumbbell", cc=["peach", "cubic"], vary={"link.satellite.loss.rate": [1e-4, 1e-2]}, seeds=10)
>>> result.to_pandas()

Scenarios, algorithms and metrics are those of the command line: ``bp.list_all("cc")``, ``bp.show("geo-dumbbell")``.
Whatever is wrong with a request raises :class:`RequestError` in the words of the command line.
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
    # `list` is the word of the command line; as a plain name it would hide Python's own in this module.
    if name == "list":
        return list_all
    raise AttributeError(f"module 'bentpipe' has no attribute {name!r}")
