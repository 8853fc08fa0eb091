"""A sweep on several processes of this machine."""

from dask.distributed import Client, LocalCluster

import bentpipe as bp


def main() -> None:
    """Run the sweep on two worker processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        result = bp.sweep(
            "geo-dumbbell",
            client=client,
            cc=["peach", "cubic", "bbr"],
            vary={"link.satellite.loss.rate": [1e-5, 1e-4, 1e-3, 1e-2]},
            set={"duration": "60 s"},
            seeds=10,
            keep="sweep",
        )
        print(result)


if __name__ == "__main__":
    main()
