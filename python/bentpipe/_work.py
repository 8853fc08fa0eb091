"""The commands of the command line as functions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

from bentpipe import _bentpipe as native
from bentpipe._errors import Lacking, RequestError, Stopped, WorkError
from bentpipe._progress import bar
from bentpipe._results import Comparison, Paper, Run

if TYPE_CHECKING:
    from bentpipe._bentpipe import NativeComparison, Scenario

_Path = str | PathLike[str]
_World = "str | PathLike[str] | Scenario"


def scenario_of(scenario: _Path | Scenario, set: Mapping[str, object] | None) -> Scenario:
    """Return a changed copy of a scenario. The scenario is an object, a name or a path."""
    if isinstance(scenario, native.Scenario):
        world = scenario.copy()
    elif isinstance(scenario, str | PathLike):
        world = native.Scenario.load(fspath(scenario))
    else:
        kind = type(scenario).__name__
        raise RequestError(
            f"scenario: found {kind}, accepted: the name of a built-in one, a path, or a bentpipe.Scenario"
        )
    for key, value in _pairs("set", set):
        world.set(key, value)
    return world


def _pairs(place: str, given: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise RequestError(
            f'{place}: found {given!r}, accepted: a dictionary from keys such as "link.satellite.rate" to values'
        )
    return list(given.items())


def _whole(place: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise RequestError(f"{place}: found {value!r}, accepted: a whole number from {least} on")
    number: int = value.__index__()
    if not least <= number < 2**64:
        raise RequestError(
            f"{place}: found {number}, accepted: a whole number from {least} to 18446744073709551615"
        )
    return number


def _optional(place: str, value: object | None, least: int = 0) -> int | None:
    return None if value is None else _whole(place, value, least)


def _names(place: str, given: str | Iterable[str] | None) -> list[str]:
    if given is None:
        return []
    names = given.split(",") if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise RequestError(f"{place}: found {given!r}, accepted: names")
    return names


def run(
    scenario: _Path | Scenario,
    *,
    cc: str | None = None,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    trace: bool | Iterable[str] | None = None,
    trace_file: _Path | None = None,
    pcap: _Path | None = None,
    pcap_link: str | None = None,
    report: _Path | None = None,
    out: _Path | None = None,
    memory: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run a scenario once.

    Args:
        scenario: name of a built-in scenario, path of a file, or a :class:`Scenario`.
        cc: congestion-control algorithm of the flows under comparison; by default that of the scenario.
        set: changed settings of the scenario, by key: ``{"link.satellite.rate": "50 Mbit/s"}``.
        seed: seed of all random streams, 0 to 2**64 - 1; by default that of the scenario.
        trace: events to record: True for all, or names of events and sources (``["window", "rtt", "flow.bulk.0"]``). At most 20 million events in memory.
        trace_file: file for the events (all, or those named by ``trace``): Parquet if the name ends in ``.parquet``, otherwise JSON lines, compressed if it ends in ``.gz``.
        pcap: file for the packets captured at the senders (pcap).
        pcap_link: link at which packets are captured instead, before its queue.
        report: file for a report (HTML).
        out: file for a table with one row for each flow (Parquet).
        memory: largest estimated memory of the simulation, in bytes, above which the run is refused; by default the free memory.
        progress: True to show a progress bar; by default only in a terminal or a notebook.

    Raises:
        RequestError: the scenario, a setting, a name or a path is invalid; nothing was run.
        WorkError: a file could not be written.
        KeyboardInterrupt: Ctrl-C was pressed; the results of this run are discarded.

    """
    world = scenario_of(scenario, set)
    if cc is not None:
        world.set_cc(cc)
    if trace is None or trace is False:
        events: list[str] | None = None
    else:
        events = [] if trace is True else _names("trace", trace)
        if trace is not True and not events:
            raise RequestError("trace: found no name, accepted: True, or names of events")
    paths = {"trace_file": trace_file, "pcap": pcap, "report": report, "out": out}
    options: dict[str, Any] = {name: fspath(path) for name, path in paths.items() if path is not None}
    if len(options) > len({*options.values()}):
        raise RequestError("run: found one path for two files, accepted: different ones")
    if pcap_link is not None:
        if pcap is None:
            raise RequestError("pcap_link: found without pcap, accepted: together with it")
        options["pcap_link"] = pcap_link
    limit = _optional("memory", memory)
    with bar("Simulating", "s", progress) as show:
        result = native.run(world, _optional("seed", seed), events, options, limit, show)
    for sentence in result.lacking:
        warnings.warn(sentence, Lacking, stacklevel=2)
    return Run(result)


def _prepare(
    scenario: _Path | Scenario,
    cc: str | Iterable[str] | None,
    vary: Mapping[str, Sequence[object]] | None,
    set: Mapping[str, object] | None,
    seeds: int,
    seed: int | None,
    jobs: int | None,
    memory: int | None,
    keep: _Path | None,
) -> native.Sweep:
    varied = []
    for key, values in _pairs("vary", vary):
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise RequestError(f"{key}: found {values!r}, accepted: a list of values")
        varied.append((key, list(values)))
    count = _whole("seeds", seeds, 1)
    if count > 1_000_000:
        raise RequestError(f"seeds: found {count}, accepted: 1 to 1000000")
    world = scenario_of(scenario, set)
    names = _names("cc", cc)
    sweep = native.Sweep(
        world,
        names,
        varied,
        count,
        _optional("seed", seed),
        _optional("jobs", jobs, 1),
        _optional("memory", memory),
        keep,
    )
    for sentence in sweep.lacking:
        warnings.warn(sentence, Lacking, stacklevel=4)
    return sweep


def finished(result: NativeComparison, stopped: BaseException | None) -> Comparison:
    """Return the comparison. Raise an exception if no run finished; warn if some runs did not finish."""
    done, total = result.done
    if stopped is not None and not isinstance(stopped, KeyboardInterrupt):
        raise stopped
    if not result.complete:
        if done == 0:
            raise (
                stopped
                if stopped is not None
                else WorkError(f"{done} of {total} runs finished. {result.failed}")
            )
        why = (
            f"{done} of {total} runs finished. {result.failed}"
            if result.failed
            else f"stopped: {done} of {total} runs finished and are kept"
        )
        warnings.warn(why, Stopped, stacklevel=3)
    return Comparison(result)


def compare(
    scenario: _Path | Scenario,
    *,
    cc: str | Iterable[str] | None = None,
    vary: Mapping[str, Sequence[object]] | None = None,
    set: Mapping[str, object] | None = None,
    seeds: int = 5,
    seed: int | None = None,
    jobs: int | None = None,
    memory: int | None = None,
    keep: _Path | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare algorithms on a scenario, over varied values and seeds, on all cores of this machine.

    Args:
        scenario: name of a built-in scenario, path of a file, or a :class:`Scenario`.
        cc: congestion-control algorithms, or ``"all"``; by default each flow uses that of the scenario.
        vary: lists of values, by key; every combination of values is run.
        set: changed settings for all runs, by key.
        seeds: number of runs of each point, with consecutive seeds; 1 to 1,000,000, and at most 1,000,000 runs in total.
        seed: first seed; by default that of the scenario.
        jobs: number of simultaneous runs, 1 to 4096; by default the number of cores.
        memory: largest estimated memory of the simulations, in bytes, above which the call is refused; by default the free memory.
        keep: folder in which finished runs are stored; runs already stored there are not repeated.
        progress: True to show a progress bar; by default only in a terminal or a notebook.

    After Ctrl-C the result contains the finished runs, with a :class:`Stopped` warning.

    Raises:
        RequestError: the scenario, a setting, a name or a path is invalid; nothing was run.
        WorkError: no run finished, or the folder ``keep`` could not be written.

    """
    sweep = _prepare(scenario, cc, vary, set, seeds, seed, jobs, memory, keep)
    with bar("Comparing", "run", progress) as show:
        result, stopped = sweep.measure(show)
    return finished(result, stopped)


def sweep(
    scenario: _Path | Scenario,
    *,
    client: Any,
    cc: str | Iterable[str] | None = None,
    vary: Mapping[str, Sequence[object]] | None = None,
    set: Mapping[str, object] | None = None,
    seeds: int = 5,
    seed: int | None = None,
    memory: int | None = None,
    keep: _Path | None = None,
    task_s: float = 2.0,
    gather: str = "comparison",
    progress: bool | None = None,
) -> Any:
    """Do the runs of :func:`compare` on a Dask cluster; the result is the same to the last bit.

    Runs are sent in tasks of about ``task_s`` seconds. If a worker dies, another worker repeats its task. Parameters without a description here
    are those of :func:`compare`.

    Args:
        client: a connected ``dask.distributed.Client``.
        task_s: approximate duration of a task in seconds, 0.1 to 3600.
        keep: folder on the client's machine in which finished runs are stored as they arrive.
        gather: ``"comparison"`` for a :class:`Comparison`. ``"dask"`` for a Dask DataFrame with one partition for each task; its rows stay
            on the workers: ``world`` (index of the point), ``seed``, ``quantity``, ``value``.

    Raises:
        RequestError: as for :func:`compare`, or the client is closed.
        WorkError: a run failed, or its task was lost more often than Dask allows.

    """
    from bentpipe import _dask

    _dask.refuse(client, task_s, gather)
    prepared = _prepare(scenario, cc, vary, set, seeds, seed, None, memory, keep)
    again = {
        "toml": scenario_of(scenario, set),
        "cc": _names("cc", cc),
        "vary": _pairs("vary", vary),
        "seeds": _whole("seeds", seeds, 1),
        "seed": _optional("seed", seed),
        "memory": _optional("memory", memory),
    }
    return _dask.sweep(client, (prepared, again), task_s, gather, progress)


def paper(
    study: _Path = "all",
    *,
    figures: str | Iterable[str] | None = None,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    keep: _Path | None = None,
    progress: bool | None = None,
) -> Paper:
    """Reproduce a paper: run its experiments, draw its figures and test its claims.

    Args:
        study: name of a built-in study, ``"all"``, or the path of a study file.
        figures: figures to reproduce, with the claims about them; by default all.
        quick: True for fewer seeds and shorter runs.
        seeds: number of runs of each point, 1 to 1,000,000; by default that of the study.
        jobs: number of simultaneous runs, 1 to 4096; by default the number of cores.
        keep: folder in which finished runs are stored; it may be shared with :func:`compare`.
        progress: True to show a progress bar; by default only in a terminal or a notebook.

    Raises:
        RequestError: the study or figure does not exist, or the folder ``keep`` cannot be used.
        WorkError: a run failed.
        KeyboardInterrupt: Ctrl-C was pressed. With ``keep``, the same call later continues from the stored runs.

    """
    of_points = _optional("seeds", seeds, 1)
    with bar("Reproducing", "run", progress) as show:
        result = native.paper(
            fspath(study),
            _names("figures", figures),
            quick,
            of_points,
            _optional("jobs", jobs, 1),
            keep,
            show,
        )
    return Paper(result)


def list_all(what: str) -> list[dict[str, Any]]:
    """Return all available items of a kind: ``"cc"``, ``"scenarios"``, ``"nodes"``, ``"queues"``, ``"losses"``, ``"media"``, ``"traffic"`` or ``"papers"``.

    Also available as ``bentpipe.list``. Raises :class:`RequestError` for any other kind.
    """
    listed: list[dict[str, Any]] = json.loads(native.list_json(what))
    return listed


def show(scenario: _Path | Scenario, *, set: Mapping[str, object] | None = None) -> str:
    """Return a scenario with all default values, as TOML. Raises :class:`RequestError` that lists every mistake in it."""
    return scenario_of(scenario, set).to_toml()


class Observation(NamedTuple):
    """Measurements of a sender during an interval. Values not yet known are zero."""

    t_s: float
    """Time of the observation, in seconds since the start of the run."""
    interval_s: float
    """Length of the interval, in seconds."""
    acked_segments: float
    """Segments newly acknowledged, including by SACK."""
    lost_segments: float
    """Segments newly marked lost."""
    timeouts: float
    """Expiries of the retransmission timer."""
    rtt_s: float
    """Mean of the round-trip samples, in seconds. Without a sample in this interval, the last known mean."""
    srtt_s: float
    """Smoothed round-trip time (RFC 6298), in seconds."""
    min_rtt_s: float
    """Smallest round-trip time so far, in seconds."""
    delivery_rate_bps: float
    """Newly acknowledged payload divided by the length of the interval, in bit/s."""
    in_flight_segments: float
    """Segments in flight: sent, but neither acknowledged nor marked lost."""
    window_segments: float
    """The congestion window, in segments."""
    pacing_bps: float
    """The pacing rate, in bit/s; 0 for none."""


class Algorithm(NamedTuple):
    """A registered congestion-control algorithm written in Python, and the time it has used."""

    name: str
    """Name of the algorithm for the parameter ``cc``."""

    @property
    def cost(self) -> tuple[int, float]:
        """Number of decisions since registration, and their total duration in seconds, including waits for Python's interpreter lock."""
        return native.cost(self.name) or (0, 0.0)

    def __str__(self) -> str:
        decisions, seconds = self.cost
        each = f", {1e6 * seconds / decisions:.1f} µs each" if decisions else ""
        return f"{self.name}: {decisions} decisions in Python{each}, {seconds:.3g} s in all"


def algorithm(
    name: str,
    make: Callable[[], Callable[[Observation], float | tuple[float, float | None]]],
    *,
    every: str | float = "rtt",
) -> Algorithm:
    """Register a policy written in Python as an algorithm for ``cc`` of :func:`run` and :func:`compare` in this process.

    Args:
        name: name of the new algorithm. It must not be the name of a built-in algorithm; it may replace an earlier policy.
        make: function called once for each connection. It returns the policy: a function from an :class:`Observation` to a window in segments
            (1 to 1,000,000), or to a pair of window and pacing rate in bit/s (up to 1e12; None or 0 for no pacing).
        every: interval between calls of the policy: ``"rtt"`` for the smoothed round-trip time, or seconds from 0.0001 to 3600.

    Such an algorithm is slow, since only one thread at a time can execute Python. Printing the result shows the time it used. An exception in the
    policy ends the run.

    """
    if not callable(make):
        raise RequestError(f"make: found {make!r}, accepted: a function that returns a policy")

    def factory(mss: int, initial_window: float, seed: int) -> Callable[[list[float]], tuple[float, float]]:
        policy = make()

        def decide(values: list[float]) -> tuple[float, float]:
            action = policy(Observation(*values))
            window, pacing_bps = action if isinstance(action, tuple) else (action, None)
            pair = float(window), float(pacing_bps or 0.0)
            if not all(-1e300 < number < 1e300 for number in pair):
                raise ValueError(f"found {action!r}, accepted: finite numbers")
            return pair

        return decide

    if isinstance(every, str):
        if every != "rtt":
            raise RequestError(f'every: found {every!r}, accepted: "rtt", or 0.0001 to 3600 seconds')
        native.register(name, factory, None)
    else:
        native.register(name, factory, float(every))
    return Algorithm(name)
