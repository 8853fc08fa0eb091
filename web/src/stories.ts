// Guided stories: each step is an experiment, a moment of its live view, and a text whose numbers the tests measure.
import stories from "./stories.json";
import type { Settings } from "./settings";

/** Moment of the live view: it plays from `from` to `at` seconds. */
export interface Scene { from: number; at: number; speed: number; seconds: number }
interface Fact { value: string; [parameter: string]: unknown }
interface Step { title: string; text: string; facts: Record<string, Fact>; scenario?: string; cc?: string[]; set?: string[]; vary?: string; view?: "results"; scene?: Scene }
export interface Story { id: string; title: string; claims: { id: string; statement: string }[]; scenario: string; cc: string[]; set: string[]; steps: Step[] }

export const STORIES = stories as unknown as Story[];

/** Place in the stories, as the address has it: `reno.2`. */
export interface Place { story: Story; step: number }

export function placeOf(name: string | null): Place | null {
  const [id, step] = (name ?? "").split(".");
  const story = STORIES.find((one) => one.id === id);
  return story ? { story, step: Math.min(story.steps.length, Math.max(1, Number(step) || 1)) - 1 } : null;
}

/** The experiment of a step. */
export function settingsOf({ story, step: number }: Place, usual: Settings): Settings {
  const step = story.steps[number]!;
  return {
    ...usual, scenario: step.scenario ?? story.scenario, text: null, cc: step.cc ?? story.cc, set: step.set ?? story.set,
    vary: step.vary ?? "", seed: null, seeds: 1, view: step.view ?? "packets", story: `${story.id}.${number + 1}`,
  };
}

/** The text of a step with its numbers: `{name}` is the value of a fact, `{name.at}` one of its parameters. */
export function textOf({ text, facts }: Step): string {
  return text.replace(/\{(\w+)(?:\.(\w+))?\}/g, (_, name: string, part = "value") => String(facts[name]![part as string]));
}
