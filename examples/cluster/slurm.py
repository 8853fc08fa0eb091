"""A sweep on a cluster with Slurm, to be run on the login node. To install: pip install dask-jobqueue 'bentpipe[dask]'."""

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

import bentpipe as bp


def main() -> None:
    """Run the sweep in jobs of Slurm."""
    # Each job occupies one node of 32 cores. All nodes must see the same virtual environment, through a shared file system.
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
