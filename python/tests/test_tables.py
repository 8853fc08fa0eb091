import subprocess
import sys

import pytest

import bentpipe as bp

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def result(small):
    return bp.compare(small, cc=["reno", "cubic"], vary={"link.satellite.loss.rate": [1e-4, 1e-2]}, seeds=3)


def test_columns_reach_pandas_polars_and_arrow(result):
    frame, table = result.to_pandas(), result.to_arrow()
    assert list(frame.columns)[:4] == ["scenario", "cc", "seed", "link.satellite.loss.rate"]
    assert frame["link.satellite.loss.rate"].dtype == "float64" and frame["seed"].dtype == "uint64"
    assert (
        result.to_polars()["goodput_bps"].to_list()
        == frame["goodput_bps"].tolist()
        == table["goodput_bps"].to_pylist()
    )
    assert (
        table.schema.metadata[b"bentpipe.kind"] == b"runs"
        and b"geo-dumbbell" not in table.schema.metadata[b"bentpipe.version"]
    )
    means = frame.groupby(["cc", "link.satellite.loss.rate"])["goodput_bps"].mean()
    for row in result.document["rows"]:
        here = means[row["cc"], row["vary"]["link.satellite.loss.rate"]]
        assert here == pytest.approx(row["goodput_bps"]["mean"], rel=1e-12)
    summary = pa.table(result.summary)
    assert summary.num_rows == 4 and summary["goodput_bps.ci95"].null_count == 0


def test_a_trace_is_a_table_by_columns(small):
    trace = bp.run(small, cc="cubic", trace=["window", "rtt"]).trace
    assert set(trace["event"].to_pylist()) == {"window", "rtt"}
    frame = trace.to_pandas()
    windows, rtts = frame[frame.event == "window"], frame[frame.event == "rtt"]
    assert windows.cwnd.notna().all() and windows.srtt_ms.isna().all() and (rtts.srtt_ms > 500).all()
    assert trace.schema.field("cwnd").metadata == {b"unit": b"segment", b"meaning": b"congestion window"}
    everything = bp.run(small, trace=True).trace
    assert {"sent", "received", "offered"} <= set(everything["event"].to_pylist())
    assert bp.run(small).trace is None


def test_files_of_the_command_line_are_read_by_all(small, tmp_path):
    runs, trace = tmp_path / "runs.parquet", tmp_path / "trace.parquet"
    world = ["geo-dumbbell", "--set", "duration=5 s", "--set", "flow.bulk.count=2"]
    command = [sys.executable, "-m", "bentpipe"]
    compare = [
        *command,
        "compare",
        *world,
        "--cc",
        "reno,cubic",
        "--seeds",
        "2",
        "--out",
        runs,
        "--csv",
        tmp_path / "runs.csv",
    ]
    subprocess.run(compare, check=True, capture_output=True)
    subprocess.run([*command, "run", *world, "--trace", trace], check=True, capture_output=True)
    frame, lines = pd.read_parquet(runs), pd.read_csv(tmp_path / "runs.csv")
    # The origin of a Parquet file is in its metadata.
    assert [*frame.columns, "version", "files"] == list(lines.columns)
    assert frame["goodput_bps"].tolist() == pytest.approx(lines["goodput_bps"].tolist(), rel=1e-8)
    assert pl.read_parquet(runs)["cc"].to_list() == frame["cc"].tolist()
    assert duckdb.sql(f"select count(*) from '{runs}'").fetchall() == [(4,)]
    mine = bp.run(small, trace=True).trace
    assert pl.read_parquet(trace).height == pd.read_parquet(trace).shape[0] == mine.num_rows
    ((drops,),) = duckdb.sql(f"select count(*) from '{trace}' where event = 'offered'").fetchall()
    assert drops == mine["event"].to_pylist().count("offered")
    bp.run(small, trace=True)._native.trace.write_parquet(tmp_path / "again.parquet")
    assert pl.read_parquet(tmp_path / "again.parquet").equals(pl.read_parquet(trace), null_equal=True)


def test_a_store_is_a_data_set(small, tmp_path):
    bp.compare(small, cc="reno,cubic", seeds=2, keep=tmp_path)
    found = duckdb.sql(
        f"select count(distinct world), count(distinct seed) from '{tmp_path}/runs-*.parquet'"
    ).fetchall()
    assert found == [(2, 2)]
