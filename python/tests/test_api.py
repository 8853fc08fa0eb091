import copy
import json
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import bentpipe as bp


def test_a_run_is_that_of_the_command_line(small, tmp_path):
    run = bp.run(small, cc="cubic", seed=7)
    assert (run.scenario, run.seed, run.version) == ("geo-dumbbell", 7, bp.__version__)
    words = [
        "run",
        "geo-dumbbell",
        "--set",
        "duration=5 s",
        "--set",
        "flow.bulk.count=2",
        "--cc",
        "cubic",
        "--seed",
        "7",
        "--json",
    ]
    told = subprocess.run([sys.executable, "-m", "bentpipe", *words], capture_output=True, check=True)
    document, here = json.loads(told.stdout), run.document
    assert document["build"] and document["files"]
    document.pop("wall_s"), here.pop("wall_s")
    assert here == document
    assert run.flows.num_rows == 2 and run.flows.units["goodput_bps"] == "bit/s"
    assert run.links.num_rows == len(here["links"])
    assert "bulk.0" in str(run) and "<table>" in run._repr_html_() and "Mbit/s" in repr(run)
    assert 'title = "' in run.toml


def test_a_run_writes_the_files_of_the_command_line(small, tmp_path):
    paths = {name: tmp_path / name for name in ["a.html", "b.pcapng", "c.parquet", "d.jsonl", "e.parquet"]}
    bp.run(
        small,
        report=paths["a.html"],
        pcap=paths["b.pcapng"],
        pcap_link="satellite",
        out=paths["c.parquet"],
        trace_file=paths["d.jsonl"],
    )
    bp.run(small, trace_file=paths["e.parquet"])
    assert all(path.stat().st_size > 500 for path in paths.values())
    with pytest.raises(bp.RequestError, match="accepted: a path without a file"):
        bp.run(small, report=paths["b.pcapng"])


def test_a_comparison_is_that_of_the_command_line(small, tmp_path):
    vary = {"link.satellite.loss.rate": [1e-4, 1e-2]}
    result = bp.compare(small, cc=["reno", "cubic"], vary=vary, seeds=3, progress=False)
    words = [
        "compare",
        "geo-dumbbell",
        "--set",
        "duration=5 s",
        "--set",
        "flow.bulk.count=2",
        "--cc",
        "reno,cubic",
    ]
    words += ["--vary", "link.satellite.loss.rate=0.0001,0.01", "--seeds", "3", "--json"]
    told = subprocess.run([sys.executable, "-m", "bentpipe", *words], capture_output=True, check=True)
    document = json.loads(told.stdout)
    assert document["build"] and document["files"]
    assert result.document == document
    assert result.complete and result.done == (12, 12) and result.failed is None
    assert result.version == bp.__version__ and result.scenario == "geo-dumbbell"
    assert "±" in result._repr_html_() and "12 of 12" in repr(result)
    result.to_csv(tmp_path / "a.csv")
    result.to_report(tmp_path / "a.html")
    assert (tmp_path / "a.csv").read_text().count("\n") == 13 and (
        tmp_path / "a.html"
    ).stat().st_size > 10_000


def test_pictures_are_drawn(small):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = bp.compare(small, cc=["reno", "cubic"], vary={"link.satellite.loss.rate": [1e-4, 1e-2]}, seeds=2)
    axes = result.plot("goodput")
    assert axes.get_xscale() == "log" and axes.get_ylabel() == "Goodput, Mbit/s"
    assert result.plot("retransmitted_segments").get_ylabel() == "retransmitted_segments"
    with pytest.raises(bp.RequestError, match="accepted: goodput_bps"):
        result.plot("speed")
    run = bp.run(small, trace=["window"])
    assert run.plot("cwnd").get_ylabel() == "cwnd, segment"
    with pytest.raises(bp.RequestError, match="no trace"):
        bp.run(small).plot()


def test_what_is_kept_is_not_run_again(small, tmp_path):
    keep = tmp_path / "kept"
    first = bp.compare(small, cc="reno,cubic", seeds=2, keep=keep)
    files = sorted(keep.iterdir())
    assert bp.compare(small, cc=["reno", "cubic"], seeds=2, keep=keep).document == first.document
    assert sorted(keep.iterdir()) == files
    bp.compare(small, cc="reno,cubic", seeds=3, keep=keep)
    assert len(list(keep.iterdir())) > len(files)


def test_scenarios_are_read_changed_and_copied():
    world = bp.Scenario.parse(bp.show("geo-single"), name="office")
    world.set("link.satellite.rate", "50 Mbit/s")
    world.set("flow.bulk.count", 2)
    world.validate()
    assert (
        world.name == "office" and world.compared == ("bulk", 2) and 'rate = "50 Mbit/s"' in world.to_toml()
    )
    for again in (copy.deepcopy(world), pickle.loads(pickle.dumps(world)), world.copy()):
        assert again.to_toml() == world.to_toml() and again.name == "office"
    other = world.copy()
    other.set("flow.bulk.count", 3)
    assert world.compared == ("bulk", 2)


def test_everything_is_listed():
    assert {"peach", "cubic", "bbr"} <= {entry["name"] for entry in bp.list("cc")}
    for what in ["scenarios", "nodes", "queues", "losses", "media", "traffic", "papers"]:
        assert bp.list_all(what), what
    with pytest.raises(bp.RequestError, match="accepted: cc, scenarios"):
        bp.list("colours")


def test_a_paper_is_reproduced(tmp_path):
    paper = bp.paper("star", figures=["8"], quick=True, keep=tmp_path)
    assert list(paper.document) == ["star"] and paper.claims and "8" in paper.figures()
    assert paper.figure("8")._repr_html_().startswith("<svg")
    assert "verdict" in paper.to_pandas().columns and "HOLDS" in repr(paper)
    paper.to_report(tmp_path / "report")
    assert (tmp_path / "report" / "claims.json").exists()
    files = len(list(tmp_path.glob("runs-*.parquet")))
    bp.paper("star", figures=["8"], quick=True, keep=tmp_path)
    assert len(list(tmp_path.glob("runs-*.parquet"))) == files


def test_progress_is_told(small, monkeypatch):
    pytest.importorskip("tqdm")
    result = bp.compare(small, cc="reno", seeds=2, progress=True)
    assert result.complete


def test_the_lock_of_the_interpreter_is_free_while_a_world_runs():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    bp.run("geo-dumbbell", set={"duration": "300 s"})
    done.set()
    thread.join()
    assert len(ticks) > 5


def test_control_c_keeps_what_is_done(tmp_path):
    code = """
import os, signal, threading, warnings
import bentpipe as bp
threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    result = bp.compare("geo-dumbbell", set={"duration": "60 s"}, cc="reno", seeds=100000, progress=False)
done, total = result.done
assert 0 < done < total == 100000 and not result.complete, result
assert any("are kept" in str(one.message) for one in said), said
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=100, text=True)
    assert done.returncode == 0, done.stderr


def test_a_policy_in_python_is_an_algorithm(small):
    class Half:
        def __call__(self, seen):
            window = seen.window_segments * (0.5 if seen.lost_segments else 1.0) + (
                0 if seen.lost_segments else 2
            )
            return window, 0.0

    mine = bp.algorithm("half", Half)
    result = bp.compare(small, cc=["half", "reno"], seeds=2)
    again = bp.compare(small, cc=["half", "reno"], seeds=2)
    assert result.document == again.document and result.complete
    decisions, seconds = mine.cost
    assert decisions > 10 and seconds > 0 and "decisions in Python" in str(mine)
    with pytest.raises(bp.RequestError, match="registered algorithms"):
        bp.compare(small, cc="half", keep="kept")
    bp.algorithm("half", lambda: lambda seen: 1 / 0)
    with pytest.raises(bp.WorkError, match=r"(?s)half: ZeroDivisionError.*fails again"):
        bp.compare(small, cc="half", seeds=1)
    with pytest.raises(bp.WorkError, match="half: ZeroDivisionError"):
        bp.run(small, cc="half")
    bp.algorithm("half", lambda: lambda seen: float("nan"))
    with pytest.raises(bp.WorkError, match="accepted: finite numbers"):
        bp.run(small, cc="half")
    with pytest.raises(bp.RequestError, match="cubic"):
        bp.algorithm("cubic", Half)
    with pytest.raises(bp.RequestError, match="every: found"):
        bp.algorithm("half", Half, every=0.0)


def test_signal_handling_is_left_as_it_was(small):
    before = signal.getsignal(signal.SIGINT)
    bp.compare(small, cc="reno", seeds=1)
    assert signal.getsignal(signal.SIGINT) is before
