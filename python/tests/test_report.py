"""The reports in a real browser: every chart draws, on a desk and on a phone, in print and as a file."""

import csv
import io
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from browser import Browser

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="skipped: no chromium here (make report-test installs it)"
)

# Short runs of worlds that show each kind of section.
WORLDS = {
    "one flow": "run geo-single --set 'duration=20 s'",
    "eight flows": "run geo-dumbbell --set flow.bulk.count=8 --set 'duration=20 s'",
    "a transfer that ends": "run geo-single --set \"flow.bulk.traffic={ kind = 'file', size = '1 MB' }\" --set 'duration=60 s'",
    "a constellation": "run leo-starlink --set 'duration=30 s'",
    "pages": "run geo-web --set 'duration=30 s'",
    "rain": "run vsat-rain --set 'duration=30 s'",
    "a comparison": "compare geo-dumbbell --cc peach,cubic,bbr --vary link.satellite.loss.rate=1e-4,1e-2"
    " --seeds 3 --set 'duration=20 s'",
    "a study": "paper star --figure 8 --quick",
}
DRAWN = "document.body?.dataset.drawn > 0"
# Visible charts without a curve, a bar or a mark.
EMPTY = """[...document.querySelectorAll("figure:not([hidden]) .chart")]
    .filter((chart) => !chart.querySelector(".main-svg .trace path")).map((chart) => chart.closest("figure").innerText)"""
# Text that its picture cuts off.
CLIPPED = """[...document.querySelectorAll("figure:not([hidden]) svg:is(.main-svg, .network)")].flatMap((svg) => {
    const frame = svg.closest(".chart, .scroll").getBoundingClientRect();
    const is_cut = (box) => box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
    return [...svg.querySelectorAll("text")].filter((text) => is_cut(text.getBoundingClientRect())).map((text) => text.textContent);
})"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The file of each world."""
    folder = tmp_path_factory.mktemp("reports")
    files = {}
    for name, words in WORLDS.items():
        study = words.startswith("paper")
        report = folder / name if study else folder / f"{name}.html"
        command = [sys.executable, "-m", "bentpipe", *shlex.split(words), "--report", str(report)]
        subprocess.run(command, check=True, capture_output=True)
        files[name] = next(report.glob("**/*.html")) if study else report
    return files


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(CHROMIUM, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("world", WORLDS)
def test_every_chart_draws_and_fits(browser, reports, world, width):
    browser.open(reports[world], width)
    browser.wait(DRAWN)
    assert browser.errors == []
    assert browser.value(EMPTY) == []
    assert browser.value(CLIPPED) == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    overflow = (
        "[...document.querySelectorAll('.chart')].filter((c) => c.scrollWidth > c.clientWidth + 1).length"
    )
    assert browser.value(overflow) == 0


def test_any_choice_draws(browser, reports):
    browser.open(reports["a comparison"], 1280)
    browser.wait(DRAWN)
    options = browser.value("[...document.querySelectorAll('[data-option]')].length")
    assert options > 20
    browser.value("document.querySelectorAll('[data-option]').forEach((button) => button.click())")
    assert browser.errors == [] and browser.value(EMPTY) == []


@pytest.fixture
def saved(browser, tmp_path):
    """Clicks on a button of the chart that has a title, and reads the file that this saves."""
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))

    def save(title, kind, inches="3.5"):
        chart = f"[...document.querySelectorAll('figure')].find((f) => f.querySelector('h3')?.innerText === {title!r})"
        browser.value(f"{chart}.querySelector('select').value = {inches!r}")
        browser.value(f"{chart}.querySelector('[data-file={kind}]').click()")
        deadline = time.monotonic() + 10
        while not (found := [path for path in tmp_path.iterdir() if path.suffix == f".{kind}"]):
            assert time.monotonic() < deadline, "nothing was saved"
            time.sleep(0.05)
        time.sleep(0.2)
        return found[0]

    return save


def test_numbers_and_pictures_of_a_chart_are_files(browser, reports, saved):
    browser.open(reports["a comparison"], 1280, dark=True)
    browser.wait(DRAWN)
    numbers = saved("Goodput", "csv")
    assert numbers.name == "geo-dumbbell-goodput.csv"
    rows = list(csv.DictReader(io.StringIO(numbers.read_text())))
    assert list(rows[0]) == ["curve", "link.satellite.loss.rate", "Mbit/s", "ci95"]
    assert {(row["curve"], row["link.satellite.loss.rate"]) for row in rows} >= {
        ("peach", "0.01"),
        ("bbr", "0.0001"),
    }
    picture = saved("Goodput", "svg", "7").read_text()
    assert 'width="7in"' in picture and "font-size: 11.3" in picture and "rgb(255, 255, 255)" in picture
    png = saved("Goodput", "png").read_bytes()
    assert int.from_bytes(png[16:20], "big") == 2100, "3.5 inches of 600 dots"
    assert browser.errors == []


def test_print_is_light_and_fits_the_paper(browser, reports):
    browser.open(reports["a comparison"], 1280, dark=True)
    browser.wait(DRAWN)
    # Prints as the browser does, in the width of A4 without its margins.
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=688, height=1000, deviceScaleFactor=1, mobile=False
    )
    browser.value("dispatchEvent(new Event('beforeprint'))")
    widths = browser.value(
        "[...document.querySelectorAll('figure:not([hidden]) svg')]"
        ".map((svg) => svg.getBoundingClientRect().right)"
    )
    assert max(widths) <= 688
    assert browser.value(CLIPPED) == [] and browser.value("document.documentElement.scrollWidth") <= 688
    assert browser.value("getComputedStyle(document.body).color") == "rgb(22, 32, 44)"
    browser.value("dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False
    )
    wide = "document.querySelector('.wide .main-svg').getBoundingClientRect().width"
    browser.wait(f"{wide} > 1000")
    assert browser.errors == []
