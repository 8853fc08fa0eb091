"""Measures the overhead of Dask on two cores: pairs of the same sweep, once with two threads and once with two Dask workers."""

import argparse
import statistics
import time
from collections.abc import Callable

from dask.distributed import Client, LocalCluster

import bentpipe as bp


def timed(work: Callable[[], object]) -> float:
    """Call a function and return its duration in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Measure the pairs of sweeps and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2500, help="runs of each sweep")
    parser.add_argument("--pairs", type=int, default=4, help="pairs of sweeps")
    parser.add_argument("--duration", default="60 s", help="simulated time of a run")
    of = parser.parse_args()
    world = bp.Scenario.load("geo-dumbbell")
    world.set("duration", of.duration)
    sweep = {"cc": "cubic", "seeds": of.runs, "progress": False}
    ratios = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        bp.sweep(world, client=client, cc="cubic", seeds=20, progress=False)
        for pair in range(of.pairs):
            threads = timed(lambda: bp.compare(world, jobs=2, **sweep))
            workers = timed(lambda: bp.sweep(world, client=client, **sweep))
            ratios.append(workers / threads)
            each = 1000 * 2 * threads / of.runs
            print(
                f"pair {pair + 1}: {each:.1f} ms for a run, {threads:.1f} s by threads,"
                f" {workers:.1f} s by workers, ratio {ratios[-1]:.3f}",
                flush=True,
            )
    print(f"median ratio of {of.runs} runs: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
