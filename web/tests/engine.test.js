// The engine gives the bytes of the native program, for every built-in world.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
const module = new WebAssembly.Module(readFileSync(`${target}/wasm32-unknown-unknown/web/bentpipe_web.wasm`));
const native = ["release", "dist", "debug"].map((profile) => `${target}/${profile}/bentpipe`).find((path) => existsSync(path));
const skip = native ? false : "the native program is not built (cargo build --package bentpipe)";

/** Asks in an instance of its own, as the worker of the page does. */
function ask(request) {
  const told = [], broken = [];
  const page = { progress: (seconds) => told.push(seconds), broke: (at, length) => broken.push(read(at, length)) };
  const { memory, room, ask } = new WebAssembly.Instance(module, { page }).exports;
  const read = (at, length) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = room(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  const answer = BigInt.asUintN(64, ask(at, bytes.length));
  assert.deepEqual(broken, []);
  return { told, ...JSON.parse(read(Number(answer >> 32n), Number(answer & 0xffffffffn))) };
}

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
