import math
import sys

import pytest

import bentpipe as bp


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bp.run("geo-singel"), "geo-single"),
        (lambda: bp.run(3), "found int, accepted: the name"),
        (lambda: bp.run("geo-single", cc="cubik"), 'did you mean "cubic"'),
        (lambda: bp.run("geo-single", set={"link.satelite.rate": "1 Mbit/s"}), "link.satelite"),
        (lambda: bp.run("geo-single", set={"link.satellite.rate": 5}), "link.satellite.rate"),
        (lambda: bp.run("geo-single", set={"link.satellite.rate": "5 Mbyte"}), "5 Mbyte"),
        (
            lambda: bp.run("geo-single", set={"link.satellite.loss.rate": math.nan}),
            "found NaN, accepted: a finite number",
        ),
        (
            lambda: bp.run("geo-single", set={"link.satellite.loss.rate": math.inf}),
            "found inf, accepted: a finite number",
        ),
        (lambda: bp.run("geo-single", set={"link.satellite.loss.rate": 1.5}), "1.5"),
        (lambda: bp.run("geo-single", set={"link.satellite.loss.rate": [1]}), "of type list"),
        (lambda: bp.run("geo-single", set=[1]), "accepted: a dictionary"),
        (lambda: bp.run("geo-single", set={3: 1}), "accepted: a dictionary"),
        (lambda: bp.run("geo-single", seed=-1), "seed: found -1"),
        (lambda: bp.run("geo-single", seed=1.5), "seed: found 1.5"),
        (lambda: bp.run("geo-single", seed=2**64), "seed: found"),
        (lambda: bp.run("geo-single", trace=["windo"]), "did you mean window"),
        (lambda: bp.run("geo-single", trace=[]), "found no name"),
        (lambda: bp.run("geo-single", pcap_link="satellite"), "together with it"),
        (lambda: bp.run("geo-single", memory=1), "at most 1 MB"),
        (lambda: bp.run("geo-single", out="/no/such/folder/x.parquet"), "there is no such directory"),
        (lambda: bp.compare("geo-single", cc=["reno", "reno"]), "twice"),
        (lambda: bp.compare("geo-single", cc=[3]), "accepted: names"),
        (lambda: bp.compare("geo-single", seeds=0), "seeds: found 0"),
        (lambda: bp.compare("geo-single", seeds=True), "seeds: found True"),
        (lambda: bp.compare("geo-single", jobs=0), "jobs: found 0"),
        (lambda: bp.compare("geo-single", jobs=5000), "jobs: found 5000"),
        (lambda: bp.compare("geo-single", seeds=10**6, vary={"seed": [1, 2]}), "at most 1000000 runs"),
        (lambda: bp.compare("geo-single", vary={"link.satellite.loss.rate": []}), "link.satellite.loss.rate"),
        (lambda: bp.compare("geo-single", vary={"link.satellite.loss.rate": 0.1}), "accepted: a list"),
        (lambda: bp.compare("geo-single", vary={"link.satellite.loss.rate": [0.1, 0.1]}), "twice"),
        (
            lambda: bp.compare("geo-single", vary={"duration": ["1 s"]}, set={"duration": "2 s"}),
            "given twice",
        ),
        (lambda: bp.compare("geo-single", keep="/proc/nowhere"), "store"),
        (lambda: bp.paper("no-such-paper"), "no-such-paper"),
        (lambda: bp.paper("star", figures=["99"]), "--figure: found 99"),
        (lambda: bp.Scenario.parse("rate = ["), "line 1|scenario:1"),
        (lambda: bp.Scenario.load("geo-single").set("duration", None), "of type NoneType"),
        (lambda: bp.sweep("geo-single", client=None), "client: found NoneType"),
        (lambda: bp.Scenario.load("geo-single").set_cc("nothing"), "nothing"),
    ],
)
def test_a_mistake_names_what_was_found_and_what_is_accepted(call, words):
    with pytest.raises(bp.RequestError, match=words) as caught:
        call()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, bp.Error)


def test_every_mistake_of_a_scenario_is_named_at_once():
    world = bp.Scenario.load("geo-single")
    world.set("duration", "3 parsecs")
    world.set("link.satellite.colour", "blue")
    with pytest.raises(bp.RequestError) as caught:
        world.validate()
    assert "parsecs" in str(caught.value) and "colour" in str(caught.value)


def test_a_damaged_store_is_refused_and_named(small, tmp_path):
    bp.compare(small, cc="reno", seeds=1, keep=tmp_path)
    (part,) = tmp_path.glob("runs-*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(bp.RequestError, match=part.name):
        bp.compare(small, cc="reno", seeds=1, keep=tmp_path)
    part.unlink()
    (tmp_path / ".bentpipe-half.part").write_bytes(b"PAR1")
    assert bp.compare(small, cc="reno", seeds=1, keep=tmp_path).complete


@pytest.mark.parametrize(
    ("library", "call", "extra"),
    [
        ("pyarrow", lambda result: result.to_arrow(), "arrow"),
        ("pyarrow", lambda result: result.to_pandas(), "pandas"),
        ("polars", lambda result: result.to_polars(), "polars"),
        ("matplotlib.pyplot", lambda result: result.plot(), "plot"),
    ],
)
def test_a_missing_library_is_named_with_what_brings_it(small, monkeypatch, library, call, extra):
    result = bp.compare(small, cc="cubic", seeds=1)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        bp.MissingError, match=rf"{library} is not installed: pip install 'bentpipe\[{extra}\]'"
    ):
        call(result)
