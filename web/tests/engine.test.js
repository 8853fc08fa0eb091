// The engine gives the bytes of the native program, for every built-in world.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { ask, target } from "../engine.js";
import { kept } from "../kept.js";

// `make web-test` has built the program of the profile dev; those of other profiles may be older.
const native = ["debug", "release", "dist"].map((profile) => `${target}/${profile}/bentpipe`).find((path) => existsSync(path));
const skip = native ? false : "the native program is not built (cargo build --package bentpipe)";

const without = (json) => json.replace(/"wall_s": [^,]*,/, "").replace(/"build": \{[^}]*\},?/, "");
const SET = ["duration=20 s"];
const { scenarios, algorithms } = ask({ ask: "tables" }).done;

test("the tables name scenarios with their texts and algorithms", () => {
  assert.ok(scenarios.length >= 20 && algorithms.length >= 20);
  assert.ok(scenarios.every((one) => one.title && one.text.includes("[flow.")));
});

for (const { name } of scenarios) {
  test(`${name}: the same bytes as the native program`, { skip }, () => {
    const { done, refused } = ask({ ask: "run", world: { name, text: null, set: SET }, cell: 0, cc: null, seed: 3 });
    assert.equal(refused, undefined);
    const printed = execFileSync(native, ["run", name, "--set", SET[0], "--seed", "3", "--json"], { encoding: "utf8", maxBuffer: 1 << 28 });
    assert.equal(without(done.json), without(printed.trimEnd()));
  });
}

test("a comparison has the bytes of the native program and the charts of its report", { skip }, () => {
  const plan = { world: { name: "geo-dumbbell", text: null, set: SET }, cc: ["newreno", "peach"], vary: ["link.satellite.loss.rate=0,0.01"], seed: null, seeds: 2 };
  const { runs } = ask({ ask: "plan", ...plan }).done;
  assert.equal(runs.length, 8);
  const done = runs.map((run) => ({ ...run, ...ask({ ask: "run", world: plan.world, ...run }).done })).map(({ cell, seed, quantities }) => ({ cell, seed, quantities }));
  const first = ask({ ask: "compare", plan, done, examples: [] }).done;
  const printed = execFileSync(native, ["compare", "geo-dumbbell", "--set", SET[0], "--cc", "newreno,peach", "--vary", plan.vary[0], "--seeds", "2", "--json"], { encoding: "utf8", maxBuffer: 1 << 28 });
  assert.equal(without(first.json), without(printed.trimEnd()));
  assert.equal(first.command, "bentpipe compare geo-dumbbell --cc newreno,peach --set 'duration=20 s' --vary link.satellite.loss.rate=0,0.01 --seeds 2");
  const examples = first.wanted.map((run) => ({ cell: run.cell, seed: run.seed, series: ask({ ask: "run", world: plan.world, ...run }).done.series }));
  const sections = JSON.parse(ask({ ask: "compare", plan, done, examples }).done.sections);
  assert.deepEqual(sections.map((section) => section.title).slice(0, 2), ["Results", "Why"]);
});

test("the first view, which the build keeps, has the bytes of the native program", { skip }, () => {
  const [plan, comparison] = ["plan", "compare"].map((what) => Object.entries(kept().answers).find(([request]) => JSON.parse(request).ask === what));
  const { world, cc, seeds } = JSON.parse(plan[0]);
  const printed = execFileSync(native, ["compare", world.name, ...world.set.flatMap((set) => ["--set", set]), "--cc", cc.join(","), "--seeds", String(seeds), "--json"], { encoding: "utf8", maxBuffer: 1 << 28 });
  assert.equal(without(comparison[1].json), without(printed.trimEnd()));
});

test("a mistake has its line and column, and the words of the program", () => {
  const text = scenarios.find((one) => one.name === "geo-single").text.replace(/rate = "[^"]*"/, 'rate = "10 Mbit"');
  const { refused } = ask({ ask: "check", world: { name: "mine.toml", text, set: [] } });
  const line = text.split("\n").findIndex((each) => each.includes('"10 Mbit"')) + 1;
  assert.equal(refused.mistakes[0].line, line);
  assert.match(refused.mistakes[0].message, /found .*10 Mbit.*accepted/);
});

test("progress is told in simulated seconds, and a run of a wrong setting is refused", () => {
  const { told } = ask({ ask: "run", world: { name: "geo-dumbbell", text: null, set: ["duration=100 s"] }, cell: 0, cc: "cubic", seed: 1 });
  assert.ok(told.length > 3 && told.every((at, i) => at <= 100 && (i === 0 || at >= told[i - 1])));
  const { refused } = ask({ ask: "plan", world: { name: "geo-dumbbell", text: null, set: ["link.none.rate=1 Mbit/s"] }, cc: [], vary: [], seed: null, seeds: 1 });
  assert.match(refused.message, /link\.none/);
});

test("each value that the page offers to drag is accepted as it is written", () => {
  const scales = { "loss-rate": "0.001", rate: "5 Mbit/s", delay: "100 ms", queue: "40 packets" };
  for (const { name } of scenarios) {
    const { knobs } = ask({ ask: "check", world: { name, text: null, set: [] } }).done;
    for (const { key, quantity } of knobs) {
      const { refused } = ask({ ask: "check", world: { name, text: null, set: [`${key}=${scales[quantity]}`] } });
      assert.equal(refused, undefined, `${name} ${key}: ${refused?.message}`);
    }
  }
});

test("every packet of an interval is on its link from the offer to the end", () => {
  const { done } = ask({ ask: "watch", world: { name: "geo-dumbbell", text: null, set: ["link.satellite.loss.rate=0.01"] }, cc: "peach", seed: 1, from_s: 5, until_s: 10 });
  const { hops, links, flows, windows, until_us } = done;
  assert.equal(until_us, 10e6);
  assert.equal(flows.length, 20);
  assert.ok(hops.link.length > 5000 && windows.at.length > 100);
  hops.offered.forEach((offered, i) => assert.ok(offered <= hops.left[i] && hops.left[i] <= hops.ended[i] && hops.ended[i] >= 5e6 && hops.ended[i] <= 10e6));
  assert.ok(hops.link.every((link) => link < links.length));
  // Peach sends dummy segments, and the link loses one packet in a hundred.
  assert.deepEqual([...new Set(hops.kind)].sort(), [0, 1, 2, 3, 4]);
});

test("a file that the scenario names is given with it, and a missing one is named", () => {
  const text = scenarios.find((one) => one.name === "geo-single").text.replace(/rate = "10 Mbit\/s"/, 'rate = { file = "mine/rates.csv", column = "rate", unit = "Mbit/s" }');
  const check = (files) => ask({ ask: "check", world: { name: "mine.toml", text, set: [], files } });
  assert.match(check({}).refused.mistakes[0].message, /rates\.csv.*the file `rates\.csv` is missing/);
  const files = { "rates.csv": "time,rate\n0,10\n5,1\n" };
  assert.equal(check(files).refused, undefined);
  const carried = (files) => JSON.parse(ask({ ask: "run", world: { name: "mine.toml", text, set: ["duration=20 s"], files }, cell: 0, cc: "cubic", seed: 1 }).done.json);
  assert.ok(carried(files).groups[0].goodput_bps < carried({ "rates.csv": "time,rate\n0,10\n5,10\n" }).groups[0].goodput_bps);
  assert.deepEqual(Object.keys(carried(files).files), ["mine/rates.csv"]);
});

test("a constellation has positions, links and paths over time, and rain a curve", () => {
  const { sky } = ask({ ask: "watch", world: { name: "leo-iridium", text: null, set: [] }, cc: null, seed: 1, from_s: 380, until_s: 400 }).done;
  assert.equal(sky.satellites.length, 66);
  assert.deepEqual(sky.at_s, [380, 390, 400]);
  // 780 km above a radius of 6378 km.
  for (let i = 0; i < 66; i += 1) assert.ok(Math.abs(Math.hypot(...sky.positions[0].slice(3 * i, 3 * i + 3)) - 7158 / 6378) < 2e-4);
  assert.deepEqual(sky.paths.map(({ at_s, satellites, handovers }) => [at_s, satellites.length, handovers]), [[0, 3, 0], [390, 4, 1]]);
  // Boston is at 42.3 degrees north and 71.1 degrees west.
  const [x, y, z] = sky.stations.find(({ name }) => name === "boston").position;
  assert.ok(Math.abs(Math.asin(z) * 180 / Math.PI - 42.3) < 0.1 && Math.abs(Math.atan2(y, x) * 180 / Math.PI + 71.1) < 0.1);
  const linked = (a, b, at) => sky.links.some(({ ends, from_s, until_s }) => ends.includes(a) && ends.includes(b) && from_s <= at && at < until_s);
  for (const { at_s, satellites } of sky.paths) for (let i = 1; i < satellites.length; i += 1) assert.ok(linked(satellites[i - 1], satellites[i], at_s + 5));
  const { fades } = ask({ ask: "watch", world: { name: "vsat-rain", text: null, set: [] }, cc: null, seed: 1, from_s: 0, until_s: 1 }).done;
  assert.equal(fades[0].link, "satellite");
  assert.ok(Math.abs(fades[0].at_s[fades[0].attenuation_db.indexOf(Math.max(...fades[0].attenuation_db))] - 270) < 2, "25 mm/h fall at 4.5 min");
});
