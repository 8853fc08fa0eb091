// A comparison while it runs: its progress and what is known so far.
import { compare, plan, run, type Compared, type Run } from "./engine";
import { library } from "./plotly";
import { planOf, world, type Settings } from "./settings";

interface Done { cell: number; seed: number; quantities: Record<string, string | null> }
interface Example { cell: number; seed: number; series: unknown }

/** Milliseconds between two reports of unfinished work. */
const REDRAWN = 1500;

export class Experiment {
  report = $state.raw<Compared | null>(null);
  /** Share of the work that is done; null if nothing runs. */
  share = $state<number | null>(null);
  refused = $state("");
  /** Runs of the report, and seconds of real time from the start until all of them were done. */
  runs = $state(0);
  seconds = $state(0);
  private stop = new AbortController();

  cancel(): void {
    this.stop.abort(new DOMException("cancelled", "AbortError"));
    this.share = null;
  }

  async start(settings: Settings): Promise<void> {
    this.cancel();
    const { signal } = (this.stop = new AbortController());
    this.share = 0;
    try {
      await this.work(settings, signal);
      this.refused = "";
    } catch (error) {
      if (!signal.aborted) this.refused = (error as Error).message;
    } finally {
      if (!signal.aborted) this.share = null;
    }
  }

  private async work(settings: Settings, signal: AbortSignal): Promise<void> {
    const wanted = planOf(settings), begin = performance.now();
    const { runs, duration_s } = await plan(wanted, { signal });
    const done: Done[] = [];
    const seconds = new Map<Run, number>();
    // Runs with curves take three times as long, so they follow after the first report: one of each algorithm.
    const all = (runs.length + new Set(runs.map((one) => one.cc)).size) * duration_s;
    const tell = (one: Run, at: number) => {
      seconds.set(one, at);
      this.share = Math.min(1, [...seconds.values()].reduce((a, b) => a + b, 0) / all);
    };
    const examples: Example[] = [];
    let shown = begin;
    const take = async (one: Run) => {
      const ran = await run(world(settings), one, { signal, progress: (at) => tell(one, at) });
      tell(one, duration_s);
      if (one.series) examples.push({ cell: one.cell, seed: one.seed, series: ran.series });
      return ran;
    };
    const show = async () => {
      // Curves stand in the order of the algorithms, whichever run was done first.
      examples.sort((a, b) => a.cell - b.cell);
      const report = await compare({ plan: wanted, done, examples }, { signal });
      Object.assign(this, { report, runs: done.length, seconds: (performance.now() - begin) / 1e3 });
    };
    await Promise.all(runs.map(async (one) => {
      const ran = await take(one);
      done.push({ cell: one.cell, seed: one.seed, quantities: ran.quantities });
      if (done.length < runs.length && performance.now() - shown > REDRAWN) {
        shown = Infinity;
        await show();
        shown = performance.now();
      }
    }));
    await show();
    // The first charts are drawn before more runs take the cores.
    await library();
    signal.throwIfAborted();
    await Promise.all(this.report!.wanted.map(take));
    await show();
  }
}
