// What the user chose, in the address of the page: a link repeats the experiment.
import type { Knob, Plan, World } from "./engine";
import { files } from "./files.svelte";
import first from "./first.json";
import { placeOf, settingsOf } from "./stories";

export const VIEWS = [["results", "Results"], ["packets", "Packets"], ["scenario", "Scenario"]] as const;
export type View = (typeof VIEWS)[number][0];

export interface Settings {
  scenario: string;
  /** Text of the scenario, if it was edited. */
  text: string | null;
  cc: string[];
  /** Changes, as `--set` takes them. */
  set: string[];
  /** The key that varies with its values, as `--vary` takes it; empty for none. */
  vary: string;
  seed: number | null;
  seeds: number;
  view: View;
  /** Step of a guided story, such as `reno.2`; null without one. */
  story: string | null;
}

/** The first view: algorithms over a lossy satellite link, in a short run. */
export const FIRST: Settings = {
  ...first, text: null, vary: "", seed: null, view: "results", story: null,
};

/** Questions to begin with. */
export const EXAMPLES: [string, Settings][] = [
  ["Which algorithm fills a lossy GEO link?", FIRST],
  ["How does goodput fall with the loss rate?", { ...FIRST, set: ["duration=60 s"], vary: "link.satellite.loss.rate=1e-5,1e-4,1e-3,1e-2" }],
  ["What do packets and probes of Peach look like?", { ...FIRST, cc: ["peach", "newreno"], view: "packets" }],
  ["How do new flows share a link with NewReno?", { ...FIRST, scenario: "geo-fairness", cc: ["newreno", "cubic", "star"], set: [], seeds: 3 }],
  ["What do the gaps of a moving LEO terminal cost?", { ...FIRST, scenario: "leo-moving", cc: ["newreno", "cubic", "bbr"], set: [] }],
  ["How do five terminals share a return channel?", { ...FIRST, scenario: "geo-vsat", cc: ["newreno", "cubic"], set: [] }],
];

async function through(stream: CompressionStream | DecompressionStream, bytes: BlobPart): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

const toBase64 = (bytes: Uint8Array) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const fromBase64 = (text: string) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

export async function toHash(of: Settings): Promise<string> {
  const words = new URLSearchParams({ scenario: of.scenario, cc: of.cc.join(","), seeds: String(of.seeds) });
  for (const set of of.set) words.append("set", set);
  if (of.view !== "results") words.set("view", of.view);
  if (of.story !== null) words.set("story", of.story);
  if (of.vary) words.set("vary", of.vary);
  if (of.seed !== null) words.set("seed", String(of.seed));
  if (of.text !== null) words.set("toml", toBase64(await through(new CompressionStream("deflate-raw"), of.text)));
  return words.toString();
}

export async function fromHash(hash: string): Promise<Settings> {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const scenario = words.get("scenario"), place = placeOf(words.get("story"));
  if (scenario === null) return place ? settingsOf(place, FIRST) : { ...FIRST };
  const toml = words.get("toml"), seed = words.get("seed");
  return {
    scenario, cc: (words.get("cc") ?? "").split(",").filter(Boolean), set: words.getAll("set"), vary: words.get("vary") ?? "",
    seed: seed === null ? null : Number(seed), seeds: Math.max(1, Number(words.get("seeds")) || 1),
    story: place ? words.get("story") : null,
    view: VIEWS.map(([name]) => name).find((name) => name === words.get("view")) ?? "results",
    text: toml === null ? null : new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), fromBase64(toml))),
  };
}

export function world(of: Settings): World {
  return { name: of.text === null ? of.scenario : `${of.scenario}.toml`, text: of.text, set: of.set, files: files.all };
}

export function planOf(of: Settings): Plan {
  return { world: world(of), cc: of.cc, vary: of.vary ? [of.vary] : [], seed: of.seed, seeds: of.seeds };
}

const keyOf = (setting: string) => setting.split("=", 1)[0]!.trim();

export const settingOf = (set: string[], key: string) => set.find((one) => keyOf(one) === key)?.split("=").slice(1).join("=").trim();

/** The changes with another value of this key; an empty value takes the one of the scenario. */
export function withSetting(set: string[], key: string, value: string): string[] {
  const others = set.filter((one) => keyOf(one) !== key);
  return value === "" ? others : [...others, `${key}=${value}`];
}

interface Scale { title: string; least: number; most: number; zero: boolean; write: (value: number) => string; examples: string }

const digits = (value: number) => String(Number(value.toPrecision(3)));

/** How a slider shows a quantity: by ratio between its least and its largest value. */
export const SCALES: Record<Knob["quantity"], Scale> = {
  "loss-rate": { title: "Packet loss", least: 1e-6, most: 0.1, zero: true, write: digits, examples: "1e-5,1e-4,1e-3,1e-2" },
  rate: { title: "Rate", least: 64e3, most: 1e9, zero: false, write: (bps) => (bps >= 1e6 ? `${digits(bps / 1e6)} Mbit/s` : `${digits(bps / 1e3)} kbit/s`), examples: "2 Mbit/s,10 Mbit/s,50 Mbit/s" },
  delay: { title: "Delay, one way", least: 1e-3, most: 1, zero: false, write: (s) => `${digits(s * 1e3)} ms`, examples: "10 ms,50 ms,250 ms" },
  queue: { title: "Queue", least: 2, most: 10000, zero: false, write: (packets) => `${Math.round(packets)} packets`, examples: "10 packets,50 packets,500 packets" },
};

export const STEPS = 200;

export function toStep(scale: Scale, value: number): number {
  if (value <= scale.least) return 0;
  return Math.round(STEPS * Math.min(1, Math.log(value / scale.least) / Math.log(scale.most / scale.least)));
}

export function fromStep(scale: Scale, step: number): number {
  return step === 0 && scale.zero ? 0 : scale.least * (scale.most / scale.least) ** (step / STEPS);
}
