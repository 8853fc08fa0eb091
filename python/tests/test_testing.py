import fcntl
import subprocess
import tempfile
from pathlib import Path

import pytest

from bentpipe.testing import emulated

pytest_plugins = ["bentpipe.testing"]


@pytest.fixture(autouse=True)
def _alone():
    # Tests of the command compare the host's settings before and after an emulation, and hold this lock meanwhile.
    with (Path(tempfile.gettempdir()) / "bentpipe-emulation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_a_command_runs_over_the_links_and_gives_its_exit_code(emulate):
    world = {"link.satellite.delay-one-way": "'100 ms'"}
    result = emulate("geo", ["sh", "-c", "echo $BENTPIPE_HOST; exit 7"], set=world, timeout=60)
    assert result.returncode == 7
    assert result.stdout.strip()


def test_a_wrong_request_is_told_and_not_skipped(emulate):
    result = emulate("no-such-world", ["true"], timeout=60)
    assert result.returncode == 2
    assert "no-such-world" in result.stderr


def test_a_command_that_never_ends_is_ended(emulate):
    emulate("geo", ["true"], timeout=60)
    with pytest.raises(subprocess.TimeoutExpired):
        emulated("geo", ["sleep", "600"], timeout=3)
