"""A progress bar in a terminal and in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def bar(what: str, unit: str, wanted: bool | None) -> Iterator[Callable[[float, float], None] | None]:
    """Yield a function of ``(done, total)`` that updates the bar, or None if no bar is shown.

    ``wanted`` is True for a bar, False for none, and None for a bar only in a terminal or a notebook.
    """
    if wanted is False or (wanted is None and not sys.stderr.isatty() and not _in_notebook()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if wanted:
            raise
        yield None
        return
    shown: Any = None

    def show(done: float, total: float) -> None:
        nonlocal shown
        if shown is None:
            shown = tqdm(total=round(total, 3), desc=what, unit=unit, leave=False)
        shown.n = round(done, 3)
        shown.refresh()

    try:
        yield show
    finally:
        if shown is not None:
            shown.close()
