"""Results as tables, as plots, and in notebooks."""

from __future__ import annotations

import json
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any

from bentpipe._errors import RequestError, needs

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    from bentpipe._bentpipe import NativeComparison, NativePaper, Table
    from bentpipe._bentpipe import Run as NativeRun

_Path = str | PathLike[str]


def to_arrow(table: Table) -> pa.Table:
    """Return the table as a ``pyarrow.Table`` without copying its columns."""
    with needs("arrow"):
        import pyarrow as pa

    return pa.table(table)


def to_pandas(table: Table) -> pd.DataFrame:
    """Return the table as a ``pandas.DataFrame``."""
    with needs("pandas"):
        import pyarrow as pa

        frame: pd.DataFrame = pa.table(table).to_pandas()
    return frame


def to_polars(table: Table) -> pl.DataFrame:
    """Return the table as a ``polars.DataFrame``."""
    with needs("polars"):
        import polars as pl

    return pl.DataFrame(table)


def _html_table(heads: list[str], rows: list[list[object]]) -> str:
    def cell(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else escape("" if value is None else str(value))

    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Run:
    """Results of one run. ``flows``, ``links``, ``media`` and ``nodes`` are tables with one row per item."""

    def __init__(self, native: NativeRun) -> None:
        self._native = native

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self._native.scenario

    @property
    def seed(self) -> int:
        """Seed of all random streams."""
        return self._native.seed

    @property
    def version(self) -> str:
        """Version of Bentpipe."""
        return self._native.version

    @property
    def toml(self) -> str:
        """The scenario with every default, as TOML."""
        return self._native.toml

    @property
    def document(self) -> dict[str, Any]:
        """The document of ``bentpipe run --json``."""
        document: dict[str, Any] = json.loads(self._native.json)
        return document

    @property
    def goodput_bps(self) -> float:
        """Goodput of all flows together in bit/s: payload delivered in order, without duplicates, divided by the simulated time."""
        return self._native.goodput_bps

    @property
    def flows(self) -> Table:
        """Table with one row for each flow."""
        return self._native.flows

    @property
    def links(self) -> Table:
        """Table with one row for each direction of each link."""
        return self._native.links

    @property
    def media(self) -> Table:
        """Table with one row for each channel shared by several links. It has no columns if there is none."""
        return self._native.media

    @property
    def nodes(self) -> Table:
        """Table with one row for each node that does more than forward packets."""
        return self._native.nodes

    @property
    def trace(self) -> pa.Table | None:
        """The recorded events as an Arrow table, or None if none were requested. docs/tables.md lists its columns."""
        table = self._native.trace
        return None if table is None else to_arrow(table)

    def to_arrow(self) -> pa.Table:
        """Return the flows as a ``pyarrow.Table``."""
        return to_arrow(self.flows)

    def to_pandas(self) -> pd.DataFrame:
        """Return the flows as a ``pandas.DataFrame``."""
        return to_pandas(self.flows)

    def to_polars(self) -> pl.DataFrame:
        """Return the flows as a ``polars.DataFrame``."""
        return to_polars(self.flows)

    def plot(self, column: str = "cwnd", ax: Axes | None = None) -> Axes:
        """Plot a column of the trace over time, with one line for each source of events that has this column.

        ``column`` is a column of the trace: ``cwnd`` and ``ssthresh`` in segments, ``srtt_ms`` and ``sample_ms`` in ms,
        ``waiting`` (queue length) in packets. Raises :class:`RequestError` if the trace lacks this column.
        """
        table = self._native.trace
        numbers = ["cwnd", "ssthresh", "pacing_bps", "sample_ms", "srtt_ms", "waiting"]
        if table is None or column not in numbers:
            found = "no trace" if table is None else repr(column)
            raise RequestError(
                f"plot: found {found}, accepted: {', '.join(numbers)} of a run with trace=[...]"
            )
        with needs("plot"):
            import matplotlib.pyplot as plt

        frame = to_arrow(table).select(["t_s", "source", column]).to_pandas().dropna()
        ax = ax or plt.subplots()[1]
        for source, lines in frame.groupby("source", observed=True):
            ax.plot(lines["t_s"], lines[column], label=source, linewidth=1)
        unit = table.units.get(column)
        ax.set(
            xlabel="time, s",
            ylabel=f"{column}, {unit}" if unit else column,
            title=f"{self.scenario}, seed {self.seed}",
        )
        ax.legend()
        return ax

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return f"<bentpipe.Run {self.scenario}, seed {self.seed}: {self.goodput_bps / 1e6:.4g} Mbit/s>"

    def _repr_html_(self) -> str:
        heads = ["name", "cc", "goodput_bps", "retransmitted_segments", "timeouts", "srtt_ms", "completion_s"]
        flows = self.document["flows"]
        rows = [[flow.get(name) for name in heads] for flow in flows[:30]]
        more = f"<p>… and {len(flows) - 30} more flows</p>" if len(flows) > 30 else ""
        title = f"<p><b>{escape(self.scenario)}</b>, seed {self.seed}, Bentpipe {self.version}</p>"
        return title + _html_table(heads, rows) + more


class Comparison:
    """Results of a comparison: one row for each run (``runs``), and statistics over the seeds (``summary``)."""

    def __init__(self, native: NativeComparison) -> None:
        self._native = native

    @property
    def document(self) -> dict[str, Any]:
        """The document of ``bentpipe compare --json``."""
        document: dict[str, Any] = json.loads(self._native.json)
        return document

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.document["scenario"])

    @property
    def version(self) -> str:
        """Version of Bentpipe."""
        return str(self.document["version"])

    @property
    def toml(self) -> str:
        """The scenario without the varied values, with every default, as TOML."""
        return self._native.toml

    @property
    def complete(self) -> bool:
        """True if all runs finished."""
        return self._native.complete

    @property
    def done(self) -> tuple[int, int]:
        """Number of finished runs, and number of all runs."""
        return self._native.done

    @property
    def failed(self) -> str | None:
        """Cause of the first failed run and the command that repeats it, or None if no run failed."""
        return self._native.failed

    @property
    def runs(self) -> Table:
        """Table with one row for each run. docs/csv.md lists its columns."""
        return self._native.runs

    @property
    def summary(self) -> Table:
        """Table with one row for each point: mean, 95 % confidence interval, minimum and maximum of each metric over the seeds."""
        return self._native.summary

    def to_arrow(self) -> pa.Table:
        """Return the runs as a ``pyarrow.Table``."""
        return to_arrow(self.runs)

    def to_pandas(self) -> pd.DataFrame:
        """Return the runs as a ``pandas.DataFrame``."""
        return to_pandas(self.runs)

    def to_polars(self) -> pl.DataFrame:
        """Return the runs as a ``polars.DataFrame``."""
        return to_polars(self.runs)

    def to_csv(self, path: _Path) -> None:
        """Write the runs as CSV, like the option ``--csv``."""
        self._native.write_csv(path)

    def to_parquet(self, path: _Path) -> None:
        """Write the runs as Parquet, like the option ``--out``."""
        self._native.write_parquet(path)

    def to_report(self, path: _Path) -> None:
        """Write an HTML report with charts, like the option ``--report``. Runs each algorithm once more, for curves over time."""
        self._native.write_report(path)

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Plot a metric over the first varied quantity, with one line for each algorithm and 95 % confidence intervals.

        ``metric`` is a column of the runs, with or without its unit (``goodput``, ``completion_s``). The default is the
        main metric of the scenario. Raises :class:`RequestError` for an unknown metric.
        """
        with needs("plot"):
            import matplotlib.pyplot as plt

        key, title, unit, divisor = self._native.measures
        rows = self.document["rows"]
        known = [
            name
            for name in (rows[0] if rows else {})
            if isinstance(rows[0][name], dict) and "ci95" in rows[0][name]
        ]
        if metric is not None:
            found = [name for name in known if name == metric or name.rsplit("_", 1)[0] == metric]
            if not found:
                raise RequestError(f"plot: found {metric!r}, accepted: {', '.join(known)}")
            if found[0] != key:
                key, title, unit, divisor = found[0], found[0], "", 1.0
        ax = ax or plt.subplots()[1]
        axis = next(iter(rows[0]["vary"]), None) if rows else None
        others = [name for name in (rows[0]["vary"] if rows else {}) if name != axis]
        lines: dict[str, list[tuple[Any, float, float]]] = {}
        for row in rows:
            label = ", ".join(
                [row["cc"], *(f"{name.rsplit('.', 1)[-1]} {row['vary'][name]}" for name in others)]
            )
            mean, ci95 = row[key]["mean"], row[key]["ci95"]
            if mean is not None:
                x = row["vary"][axis] if axis else row["cc"]
                lines.setdefault(label, []).append((x, mean / divisor, (ci95 or 0.0) / divisor))
        for label, points in lines.items():
            xs, ys, errors = zip(*points, strict=True)
            ax.errorbar(xs, ys, yerr=errors, label=label, marker="o", capsize=3, linewidth=1)
        values = [x for points in lines.values() for x, _, _ in points]
        if (
            axis
            and all(isinstance(x, int | float) and x > 0 for x in values)
            and max(values) >= 50 * min(values)
        ):
            ax.set_xscale("log")
        ax.set(xlabel=axis or "cc", ylabel=f"{title}, {unit}" if unit else title, title=self.scenario)
        ax.legend()
        return ax

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        done, total = self.done
        return f"<bentpipe.Comparison {self.scenario}: {done} of {total} runs>"

    def _repr_html_(self) -> str:
        document = self.document
        key, title, unit, divisor = self._native.measures
        rows = document["rows"]
        vary = list(rows[0]["vary"]) if rows else []

        def shown(summary: dict[str, float | None]) -> str:
            mean, ci95 = summary["mean"], summary["ci95"]
            if mean is None:
                return "–"
            return f"{mean / divisor:.4g}" + (f" ± {ci95 / divisor:.2g}" if ci95 is not None else "")

        cells = [
            [
                *(row["vary"][name] for name in vary),
                row["cc"],
                shown(row[key]),
                row["jain_index"]["mean"],
                row["retransmitted_segments"]["mean"],
                row["timeouts"]["mean"],
                row["seeds_done"],
            ]
            for row in rows
        ]
        heads = [
            *vary,
            "cc",
            f"{title}, {unit}" if unit else title,
            "fairness (Jain)",
            "retransmitted segments",
            "timeouts",
            "seeds",
        ]
        done, total = self.done
        state = "" if self.complete else f", {done} of {total} runs finished"
        return (
            f"<p><b>{escape(document['scenario'])}</b>, Bentpipe {document['version']}{state}</p>"
            + _html_table(heads, cells)
        )


class Paper:
    """Results of reproduced studies: the verdicts on the claims of a paper, and its figures."""

    def __init__(self, native: NativePaper) -> None:
        self._native = native

    @property
    def document(self) -> dict[str, list[dict[str, Any]]]:
        """The document of ``bentpipe paper --json``: the claims of each study."""
        document: dict[str, list[dict[str, Any]]] = json.loads(self._native.json)
        return document

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims of all studies; each contains the name of its study."""
        return [{"study": study, **claim} for study, claims in self.document.items() for claim in claims]

    def to_pandas(self) -> pd.DataFrame:
        """Return the claims as a ``pandas.DataFrame``."""
        with needs("pandas"):
            import pandas as pd

        return pd.DataFrame(self.claims)

    def figures(self, study: str | None = None) -> list[str]:
        """Return the numbers of the figures of one study, or of all studies."""
        names = [study] if study is not None else [name for name, _, _ in self._native.studies]
        return [number for name in names for number in self._native.figures(name)]

    def figure(self, number: str) -> Figure:
        """Return a figure, which a notebook displays. Raises :class:`RequestError` if this figure was not reproduced."""
        return Figure(number, self._native.svg(number))

    def to_report(self, folder: _Path) -> None:
        """Write HTML pages, figures and verdicts into a folder, like the option ``--report``."""
        self._native.write_report(folder)

    def __repr__(self) -> str:
        verdicts = [claim["verdict"] for claim in self.claims]
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
        return f"<bentpipe.Paper {', '.join(self.document)}: {counts}>"

    def _repr_html_(self) -> str:
        names = ["study", "id", "verdict", "statement", "measured"]
        titles = "".join(
            f"<p><b>{escape(title)}</b><br>{escape(citation)}</p>"
            for _, title, citation in self._native.studies
        )
        return titles + _html_table(names, [[claim.get(name) for name in names] for claim in self.claims])


class Figure:
    """A reproduced figure of a paper: one SVG for each interpretation of details that the paper leaves open."""

    def __init__(self, number: str, svgs: list[str]) -> None:
        self.number = number
        self.svgs = svgs

    def _repr_html_(self) -> str:
        return "".join(self.svgs)

    def __repr__(self) -> str:
        return f"<bentpipe.Figure {self.number}: {len(self.svgs)} pictures>"
