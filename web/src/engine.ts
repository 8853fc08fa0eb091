// The simulator in workers: requests and answers are those of the crate `bentpipe-web`.
import wasm from "engine.wasm?url";
import kept from "kept.json";

export interface World { name: string; text: string | null; set: string[]; files: Record<string, string> }
export interface Mistake { line: number; column: number; message: string }
export interface Algorithm { name: string; title: string; paper: string; year: number; family: string; advice: string }
export interface Key { table: string; name: string; accepted: string; default: string | null; meaning: string; kinds: [string, string][] }
export interface Tables { version: string; scenarios: { name: string; title: string; text: string; knobs: number }[]; algorithms: Algorithm[]; keys: Key[] }
export interface Knob { key: string; quantity: "loss-rate" | "rate" | "delay" | "queue"; value: number }
export interface Checked { title: string; seed: number; duration_s: number; network: string; knobs: Knob[]; cc: string[] }
export interface Plan { world: World; cc: string[]; vary: string[]; seed: number | null; seeds: number }
export interface Run { cell: number; cc: string | null; vary: string[]; seed: number; series: boolean }
export interface Ran { quantities: Record<string, string | null>; series: unknown }
export interface Compared { html: string; sections: string; json: string; command: string; wanted: Run[] }
export interface Watched {
  links: { name: string; group: string; direction: "forward" | "reverse" }[];
  flows: string[];
  hops: { link: number[]; flow: number[]; kind: number[]; offered: number[]; left: number[]; ended: number[] };
  windows: { at: number[]; flow: number[]; segments: number[] };
  until_us: number;
  sky: Sky | null;
  fades: Fade[];
}
/** A path between two stations from `at_s` until the next one; no satellites without a path. */
export interface SkyPath { name: string; ends: [number | null, number | null]; at_s: number; satellites: number[]; handovers: number }
export interface Sky {
  stations: { name: string; position: [number, number, number] }[];
  satellites: string[];
  at_s: number[];
  positions: number[][];
  links: { ends: [number, number]; from_s: number; until_s: number }[];
  paths: SkyPath[];
}
export interface Fade { link: string; at_s: number[]; attenuation_db: number[] }

/** The request was wrong: in the words of the program, with the places of mistakes in the text. */
export class Refused extends Error {
  constructor(message: string, readonly mistakes: Mistake[]) { super(message); }
}

export const tables = kept.tables as Tables;

interface Job { module: WebAssembly.Module; request: string; signal: AbortSignal; progress: (seconds: number) => void; done: (answer: string) => void; failed: (error: Error) => void }

let engine: Promise<WebAssembly.Module> | null = null;

/** Loads and compiles the engine, once. */
function compiled(): Promise<WebAssembly.Module> {
  engine ??= WebAssembly.compileStreaming(fetch(wasm)).catch((error: Error) => { throw new Error(`The simulator cannot start: ${error.message}`); });
  return engine;
}

/** Workers that take jobs in turn; each starts with its first job. A job that is aborted ends its worker. */
class Pool {
  private readonly jobs: Job[] = [];
  private readonly idle: Worker[] = [];
  private busy = 0;

  constructor(private readonly size: number) {}

  private worker(): Worker {
    return new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  }

  add(job: Job): void {
    this.jobs.push(job);
    this.next();
  }

  private next(): void {
    const job = this.jobs.find((each) => !each.signal.aborted);
    if (!job || this.busy === this.size) return;
    this.jobs.splice(0, this.jobs.indexOf(job) + 1);
    const worker = this.idle.pop() ?? this.worker();
    this.busy += 1;
    const free = () => { job.signal.removeEventListener("abort", cancel); this.busy -= 1; this.next(); };
    const cancel = () => { worker.terminate(); free(); };
    job.signal.addEventListener("abort", cancel);
    worker.onmessage = ({ data }: MessageEvent<{ seconds?: number; answer?: string; broke?: string }>) => {
      if (data.seconds !== undefined) return job.progress(data.seconds);
      if (data.answer !== undefined) job.done(data.answer);
      else job.failed(new Error(data.broke));
      this.idle.push(worker);
      return free();
    };
    worker.onerror = (event) => { event.preventDefault(); job.failed(new Error(event.message)); cancel(); };
    worker.postMessage({ module: job.module, request: job.request });
  }
}

const runs = new Pool(Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 16)));
// Checks while the user types do not wait for runs.
const checks = new Pool(1);
const never = new AbortController().signal;

export interface Asking { signal?: AbortSignal; progress?: (seconds: number) => void }

/** Asks the engine, in a worker for runs or in the one for checks. Answers that the build kept need none. */
async function ask<T>(pool: Pool, what: string, request: object, { signal = never, progress = () => {} }: Asking = {}): Promise<T> {
  const text = JSON.stringify({ ask: what, ...request });
  if (text in kept.answers) return kept.answers[text] as T;
  const module = await compiled();
  signal.throwIfAborted();
  const answer = await new Promise<string>((done, failed) => {
    signal.addEventListener("abort", () => failed(signal.reason as Error), { once: true });
    pool.add({ module, request: text, signal, progress, done, failed });
  });
  const parsed = JSON.parse(answer) as { done: T } | { refused: { message: string; mistakes: Mistake[] } };
  if ("refused" in parsed) throw new Refused(parsed.refused.message, parsed.refused.mistakes);
  return parsed.done;
}

export const check = (world: World, asking?: Asking) => ask<Checked>(checks, "check", { world }, asking);
export const plan = (request: Plan, asking?: Asking) => ask<{ runs: Run[]; duration_s: number }>(checks, "plan", request, asking);
export const run = (world: World, request: Run, asking?: Asking) => ask<Ran>(runs, "run", { world, ...request }, asking);
export const compare = (request: object, asking?: Asking) => ask<Compared>(checks, "compare", request, asking);
export const watch = (request: object, asking?: Asking) => ask<Watched>(runs, "watch", request, asking);
