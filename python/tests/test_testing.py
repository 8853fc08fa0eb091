import subprocess

import pytest

from bentpipe.testing import emulated

pytest_plugins = ["bentpipe.testing"]


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
