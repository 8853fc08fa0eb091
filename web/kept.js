// Answers that the build keeps in the page, so that its first view need not wait for the engine.
import { readFileSync } from "node:fs";
import { ask } from "./engine.js";

/** Lists of the engine with the number of values to drag of each scenario, and its answers to the requests of the first view, by the text of the request. */
export function kept() {
  const { scenario, ...chosen } = JSON.parse(readFileSync(new URL("src/first.json", import.meta.url), "utf8"));
  const world = { name: scenario, text: null, set: chosen.set, files: {} };
  const plan = { world, cc: chosen.cc, vary: [], seed: null, seeds: chosen.seeds };
  const answers = {};
  const keep = (request, needed = (done) => done) => {
    const { done } = ask(request);
    answers[JSON.stringify(request)] = needed(done);
    return done;
  };
  keep({ ask: "check", world });
  const { runs } = keep({ ask: "plan", ...plan });
  // The page needs the numbers of a run, not its document.
  const done = runs.map((run) => {
    const { quantities } = keep({ ask: "run", world, ...run }, ({ quantities, series }) => ({ quantities, series }));
    return { cell: run.cell, seed: run.seed, quantities };
  });
  keep({ ask: "compare", plan, done, examples: [] });
  const tables = ask({ ask: "tables" }).done;
  const knobs = ({ name }) => ask({ ask: "check", world: { name, text: null, set: [], files: {} } }).done.knobs.length;
  const scenarios = tables.scenarios.map((one) => ({ ...one, knobs: knobs(one) }));
  return { tables: { ...tables, scenarios }, answers };
}
