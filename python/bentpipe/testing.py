"""Tests of network programs over emulated satellite links, with pytest.

Add ``pytest_plugins = ["bentpipe.testing"]`` to ``conftest.py``. A test then asks for the fixture ``emulate``:

>>> def test_download(emulate):
...     result = emulate(
...         "geo",
...         ["sh", "-c", "curl --fail http://$BENTPIPE_HOST:8000/"],
...         listen=["python3 -m http.server 8000"],
...         set={"link.satellite.loss.rate": 1e-3},
...         timeout=60,
...     )
...     assert result.returncode == 0, result.stderr

The links run in namespaces of their own, so tests need neither root nor a network. Where this machine cannot emulate, the test
is skipped with the reason.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

__all__ = ["emulate", "emulated"]

#: Exit code of ``bentpipe`` if something is missing on this machine.
_MISSING = 3

Result = subprocess.CompletedProcess[str]


def emulated(
    scenario: str,
    command: Sequence[str],
    *,
    listen: Sequence[str] = (),
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    timeout: float | None = None,
) -> Result:
    """Run a command over the links of a scenario and return its exit code and output.

    ``listen`` are shell commands of servers at the far end, whose address is ``$BENTPIPE_HOST``. ``set`` changes the scenario.
    After ``timeout`` seconds the emulation ends and :class:`subprocess.TimeoutExpired` is raised.
    """
    words = [sys.executable, "-m", "bentpipe", "emulate", scenario, "--quiet"]
    words += [word for server in listen for word in ("--listen", server)]
    words += [word for key, value in (set or {}).items() for word in ("--set", f"{key}={value}")]
    words += [] if seed is None else ["--seed", str(seed)]
    pipe = subprocess.PIPE
    # A session of its own, so that everything the command started can be ended.
    with subprocess.Popen(
        [*words, "--", *command], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Result(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def emulate() -> Callable[..., Result]:
    """Return :func:`emulated`, which skips the test where this machine cannot emulate."""

    def run(scenario: str, command: Sequence[str], **options: object) -> Result:
        result = emulated(scenario, command, **options)  # type: ignore[arg-type]
        if result.returncode == _MISSING and result.stderr.startswith("bentpipe: "):
            pytest.skip(result.stderr.strip())
        return result

    return run
