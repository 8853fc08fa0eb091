"""A sweep on a Kubernetes cluster with Dask's operator. To install: pip install dask-kubernetes 'bentpipe[dask]'."""

from dask.distributed import Client
from dask_kubernetes.operator import KubeCluster

import bentpipe as bp

# Image built from the Dockerfile in this folder and pushed to a registry that the cluster can reach.
IMAGE = "registry.example/bentpipe-worker:0.1.0"


def main() -> None:
    """Run the sweep on pods of Kubernetes."""
    resources = {
        "requests": {"cpu": "8", "memory": "8Gi"},
        "limits": {"cpu": "8", "memory": "8Gi"},
    }
    cluster = KubeCluster(
        name="bentpipe",
        image=IMAGE,
        n_workers=10,
        resources=resources,
        worker_command=["dask-worker", "--nthreads", "8"],
    )
    with cluster, Client(cluster) as client:
        result = bp.sweep(
            "geo-dumbbell",
            client=client,
            cc=["peach", "cubic"],
            seeds=1000,
            keep="dumbbell",
        )
        result.to_parquet("dumbbell.parquet")


if __name__ == "__main__":
    main()
