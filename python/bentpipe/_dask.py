"""Sweeps on a Dask cluster: each task does some runs, and its results are an Arrow table."""

from __future__ import annotations

import pickle
import time
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

from bentpipe import _bentpipe as native
from bentpipe._errors import Error, RequestError, WorkError, needs
from bentpipe._progress import bar

if TYPE_CHECKING:
    import pandas as pd

_MOST_RUNS_OF_A_TASK = 10_000
_Prepared = tuple[native.Sweep, dict[str, Any]]


def refuse(client: object, task_s: float, gather: str) -> None:
    """Raise :class:`RequestError` for a missing or closed client or another invalid argument, before any work."""
    try:
        from distributed import Client
    except ImportError as error:
        raise RequestError(
            "client: found no package dask.distributed, accepted: pip install 'bentpipe[dask]'"
        ) from error
    if not isinstance(client, Client):
        raise RequestError(
            f"client: found {type(client).__name__}, accepted: a dask.distributed.Client that is connected"
        )
    if client.status != "running":
        raise RequestError(f"client: found a client that is {client.status}, accepted: one that is connected")
    if not 0.1 <= task_s <= 3600:
        raise RequestError(f"task_s: found {task_s}, accepted: 0.1 to 3600 seconds")
    if gather not in ("comparison", "dask"):
        raise RequestError(f'gather: found {gather!r}, accepted: "comparison", "dask"')


@lru_cache(maxsize=4)
def _sweep_of(request: bytes) -> native.Sweep:
    of = pickle.loads(request)
    return native.Sweep(of["toml"], of["cc"], of["vary"], of["seeds"], of["seed"], 1, of["memory"], None)


def _measure(request: bytes, version: str, indices: list[int]) -> tuple[float, int, bytes]:
    """Do some runs on a worker. Return their duration in seconds, their number, and their results as an Arrow stream."""
    if native.__version__ != version:
        raise WorkError(
            f"a worker has Bentpipe {native.__version__}, accepted: {version}, that of the client"
        )
    began = time.perf_counter()
    part = _sweep_of(request).measure_part(indices)
    return time.perf_counter() - began, len(indices), part


def _frame(request: bytes, version: str, indices: list[int]) -> pd.DataFrame:
    with needs("dask"):
        import pyarrow as pa

    table = pa.ipc.open_stream(_measure(request, version, indices)[2]).read_all()
    lines = table.select(["world", "seed", "quantity", "value"])
    frame: pd.DataFrame = lines.to_pandas().astype({"world": "str", "quantity": "str"})
    return frame


def sweep(client: Any, prepared: _Prepared, task_s: float, gather: str, progress: bool | None) -> Any:
    """Do the runs that are missing in the store of `prepared`, and gather their results."""
    plan, of = prepared
    request = pickle.dumps(of)
    todo = plan.missing()
    try:
        if gather == "dask":
            return _as_frame(client, request, (todo, task_s))
        return _as_comparison(client, (plan, request, todo), task_s, progress)
    except (Error, KeyboardInterrupt):
        raise
    except Exception as error:  # any exception of Dask and its transports
        from asyncio import CancelledError, TimeoutError

        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            raise WorkError(f"a task was lost with its worker again and again: {error}") from error
        if isinstance(error, CancelledError | TimeoutError | OSError) or client.status != "running":
            raise WorkError(f"the cluster went away: {type(error).__name__} {error}") from error
        raise


def _as_comparison(
    client: Any, work: tuple[native.Sweep, bytes, list[int]], task_s: float, progress: bool | None
) -> Any:
    from distributed import as_completed

    from bentpipe._work import finished

    plan, request, todo = work
    total, at, spent, done = len(todo), 0, 0.0, 0
    parts: list[Any] = []
    stopped: BaseException | None = None

    def submit() -> Any:
        nonlocal at
        # The duration of finished runs determines how many runs fill a task of `task_s` seconds.
        mean = spent / done if done else task_s
        size = min(max(1, round(task_s / max(mean, 1e-6))), _MOST_RUNS_OF_A_TASK)
        # The last tasks contain fewer runs, so that all workers finish at about the same time.
        size = min(size, max(1, ceil((total - at) / (2 * threads))))
        indices, at = todo[at : at + size], min(at + size, total)
        return client.submit(_measure, request, native.__version__, indices, pure=False)

    threads = max(1, sum(client.nthreads().values()))
    futures = as_completed([submit() for _ in range(min(total, threads))])
    with bar("Comparing", "run", progress) as show:
        try:
            for future in futures:
                seconds, count, part = future.result()
                spent, done = spent + seconds, done + count
                plan.keep_part(part)
                parts.append(part)
                threads = max(1, sum(client.nthreads().values()))
                while at < total and futures.count() < 2 * threads:
                    futures.add(submit())
                if show is not None:
                    show(done, total)
        except KeyboardInterrupt as error:
            stopped = error
            client.cancel(list(futures.futures))
    return finished(plan.gather(parts), stopped)


def _as_frame(client: Any, request: bytes, work: tuple[list[int], float]) -> Any:
    with needs("dask"):
        import dask.dataframe as dd
        import pandas as pd

    todo, task_s = work
    first, rest = todo[:1], todo[1:]
    seconds = (
        client.submit(_measure, request, native.__version__, first, pure=False).result()[0]
        if first
        else task_s
    )
    size = min(max(1, round(task_s / max(seconds, 1e-6))), _MOST_RUNS_OF_A_TASK)
    batches = [todo[begin : begin + size] for begin in range(0, len(rest) + len(first), size)]
    futures = [client.submit(_frame, request, native.__version__, batch, pure=False) for batch in batches]
    types = {"world": "str", "seed": "uint64", "quantity": "str", "value": "float64"}
    meta = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in types.items()})
    return dd.from_delayed(futures, meta=meta, verify_meta=False)
