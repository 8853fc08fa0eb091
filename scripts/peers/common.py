# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs geo-dumbbell here and in the peers, from the root of the checkout."""

import json
import os
import resource
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def built(profile):
    """Path of the program of this profile."""
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / profile / "bentpipe"


BENTPIPE = built("release")

# Without SACK, ns-3 3.37 miscounts in-flight data (see geo-dumbbell.cc).
PEERS = {
    "ns2": {"script": "run-ns2", "variants": "newreno,sack"},
    "ns3": {"script": "run-ns3", "variants": "sack"},
}


class Failure(Exception):
    """What went wrong, and the exit status that says so."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def run_ours(variant, loss, seed, duration, flows=20, rate_mbps=10, buffer=50):
    """The document of `bentpipe run --json`, its totals at the top, with `cpu_s`: user seconds of the whole process."""
    if not BENTPIPE.exists():
        target = "dist" if BENTPIPE == built("dist") else "build"
        raise Failure(f"{BENTPIPE} is not there: run `make {target}` first", 3)
    settings = {
        "flow.bulk.cc": variant,
        "link.satellite.loss.rate": loss,
        "duration": f"{duration} s",
    }
    if flows != 20:
        settings |= {"node.sender.count": flows, "node.receiver.count": flows, "flow.bulk.count": flows}
    if rate_mbps != 10:
        settings["link.satellite.rate"] = f"{rate_mbps} Mbit/s"
    if buffer != 50:
        settings["link.satellite.queue.limit"] = f"{buffer} packets"
    command = [BENTPIPE, "run", "geo-dumbbell", "--seed", str(seed), "--json"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    outcome, cpu = run_json(command)
    return outcome["totals"] | {"cpu_s": cpu, "setup_cpu_s": 0.0}


def run_peer(peer, variant, loss, seed, duration, flows=20, rate_mbps=10, buffer=50, options=()):
    """The line of JSON that the peer's script prints."""
    outcome, _ = run_json(
        [
            ROOT / "scripts" / "peers" / PEERS[peer]["script"],
            f"--variant={variant}",
            f"--per={loss}",
            f"--seed={seed}",
            f"--duration={duration}",
            f"--flows={flows}",
            f"--rate={rate_mbps}",
            f"--buffer={buffer}",
            *options,
        ]
    )
    return outcome


def run_json(command):
    """What a command prints, parsed, and the user CPU seconds it took; the time is right if nothing runs beside it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode != 0:
        raise Failure(done.stderr.strip() or f"{command[0]} ended with {done.returncode}", done.returncode)
    return json.loads(done.stdout), cpu


def in_parallel(work, jobs, at_a_time):
    """Results of `work` over `jobs`, in their order."""
    with ThreadPoolExecutor(at_a_time) as pool:
        return list(pool.map(work, jobs))
