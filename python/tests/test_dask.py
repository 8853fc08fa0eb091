import os
import signal
import threading
import time

import pytest

import bentpipe as bp

distributed = pytest.importorskip("distributed")
SWEEP = {"cc": ["reno", "cubic"], "vary": {"link.satellite.loss.rate": [1e-4, 1e-2]}}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def test_a_cluster_gives_the_same_bytes_as_one_process(client, small, tmp_path):
    far = bp.sweep(small, client=client, seeds=5, task_s=0.1, **SWEEP)
    near = bp.compare(small, seeds=5, **SWEEP)
    assert far._native.json == near._native.json
    far.to_csv(tmp_path / "far.csv")
    near.to_csv(tmp_path / "near.csv")
    assert (tmp_path / "far.csv").read_bytes() == (tmp_path / "near.csv").read_bytes()


def test_what_is_kept_is_not_sent(client, small, tmp_path):
    first = bp.sweep(small, client=client, seeds=2, keep=tmp_path, **SWEEP)
    files = sorted(tmp_path.iterdir())
    assert bp.sweep(small, client=client, seeds=2, keep=tmp_path, **SWEEP).document == first.document
    assert sorted(tmp_path.iterdir()) == files
    assert (
        bp.compare(small, seeds=3, keep=tmp_path, **SWEEP).document
        == bp.compare(small, seeds=3, **SWEEP).document
    )


def test_results_may_stay_on_the_cluster(client, small):
    frame = bp.sweep(small, client=client, seeds=3, task_s=0.1, gather="dask", **SWEEP)
    goodputs = frame[frame.quantity == "goodput_bps"].compute()
    near = bp.compare(small, seeds=3, **SWEEP).to_pandas()
    assert sorted(goodputs["value"]) == sorted(near["goodput_bps"])


def busy_worker(cluster):
    """Wait for a worker with a running task and return its process id."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for worker in list(cluster.scheduler.workers.values()):
            if worker.processing:
                return cluster.workers[worker.name].pid
        time.sleep(0.01)
    raise TimeoutError("no worker was ever busy")


def test_a_worker_that_dies_costs_nothing_but_time(small):
    killed = []

    def kill_a_worker(cluster):
        killed.append(busy_worker(cluster))
        os.kill(killed[0], signal.SIGKILL)

    world = small.copy()
    world.set("duration", "60 s")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = client.run(os.getpid).values()
        killer = threading.Thread(target=kill_a_worker, args=(cluster,))
        killer.start()
        far = bp.sweep(world, client=client, seeds=60, task_s=0.3, **SWEEP)
        killer.join()
        assert killed[0] in before
        assert killed[0] not in client.run(os.getpid).values()
    assert far.complete
    assert far._native.json == bp.compare(world, seeds=60, **SWEEP)._native.json


def test_mistakes_name_what_is_accepted(client, small):
    with pytest.raises(bp.RequestError, match="task_s: found 0"):
        bp.sweep(small, client=client, task_s=0)
    with pytest.raises(bp.RequestError, match="gather: found 'all'"):
        bp.sweep(small, client=client, gather="all")
    with pytest.raises(bp.RequestError, match="cubik"):
        bp.sweep(small, client=client, cc="cubik")
    client.close()
    with pytest.raises(bp.RequestError, match="client that is closed"):
        bp.sweep(small, client=client)


def test_a_policy_of_this_process_fails_with_its_name(client, small):
    bp.algorithm("only-here", lambda: lambda seen: 10.0)
    with pytest.raises(bp.Error, match="only-here"):
        bp.sweep(small, client=client, cc="only-here", seeds=1)
