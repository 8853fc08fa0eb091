// Every number in the text of a story is measured in the world of its step.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ask } from "../engine.js";
import { measure, worldOf } from "./measure.js";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const stories = read("../src/stories.json"), { studies } = read("../../docs/papers/claims.json");
const { scenarios } = ask({ ask: "tables" }).done;

const answer = (request) => {
  const { done, refused } = ask(request);
  assert.equal(refused, undefined, refused?.message);
  return done;
};
const of = ({ scenario, cc, set }) => ({ world: { name: scenario, text: null, set }, cc, seed: 1 });
const engine = {
  watch: (world, from_s, until_s) => answer({ ask: "watch", ...of(world), from_s, until_s }),
  run: (world) => JSON.parse(answer({ ask: "run", ...of(world), cell: 0 }).json),
  text: (name) => scenarios.find((one) => one.name === name).text,
};

test("there are six stories of five steps", () => assert.deepEqual(stories.map(({ steps }) => steps.length), [5, 5, 5, 5, 5, 5]));

for (const story of stories) {
  for (const step of story.steps) {
    test(`${story.title}: ${step.title}`, () => {
      const { facts, scene } = step;
      const words = `${step.title} ${step.text.replace(/\{(\w+)(?:\.(\w+))?\}/g, (found, name, part = "value") => (facts[name]?.[part] === undefined ? found : ""))}`;
      assert.doesNotMatch(words.replaceAll(/BBRv\d/g, ""), /[\d{}]/, "each number is a fact");
      for (const [name, fact] of Object.entries(facts)) assert.equal(measure(engine, worldOf(story, step, fact), fact), fact.value, name);
      if (scene) {
        const { until_us } = engine.watch(worldOf(story, step), Math.floor(scene.from), Math.floor(scene.from) + scene.seconds);
        assert.ok(scene.from < scene.at && scene.at * 1e6 <= until_us, "the view reaches its moment");
      } else assert.equal(step.view, "results");
    });
  }
  test(`${story.title}: its claims hold in our studies`, () => {
    assert.ok(story.claims.length > 0);
    for (const { id, statement } of story.claims) {
      const [study, number] = id.split(" ");
      const claim = studies[study].claims.find((one) => one.id === number);
      assert.deepEqual([claim?.statement, claim?.verdict], [statement, "HOLDS"], id);
    }
  });
}
