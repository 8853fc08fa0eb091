"""A sweep on a cluster with Slurm. Run it on the login node: pip install dask-jobqueue 'bentpipe[dask]'."""

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

import bentpipe as bp


def main() -> None:
    """Sweep."""
    # One job is one node of 32 cores; `python` of this virtual environment must be the same on the nodes (a shared file system).
    cluster = SLURMCluster(
        cores=32,
        processes=1,
        memory="64 GB",
        walltime="02:00:00",
        job_extra_directives=["--exclusive"],
    )
    cluster.adapt(minimum_jobs=1, maximum_jobs=32)
    with cluster, Client(cluster) as client:
        client.wait_for_workers(1)
        result = bp.sweep("leo-starlink", client=client, cc="all", seeds=100, keep="starlink")
        result.to_parquet("starlink.parquet")


if __name__ == "__main__":
    main()
