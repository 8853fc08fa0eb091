// Files that the user gave to the page, for scenarios that name them. A link has their names only.

/** Maximum size in MiB. Every run gets the texts of all files. */
const MOST = 16;

async function textOf(file: File): Promise<string> {
  if (file.size > MOST * 2 ** 20) throw new Error(`found ${(file.size / 2 ** 20).toFixed(1)} MiB, accepted: at most ${MOST} MiB`);
  const bytes = await file.arrayBuffer().catch(() => { throw new Error("found no file that can be read, accepted: a text file"); });
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch { /* The same refusal follows. */ }
  throw new Error("found bytes that are no text, accepted: a text file in UTF-8");
}

class Files {
  /** Texts by name. */
  all = $state.raw<Record<string, string>>({});
  /** Reasons why files of the last choice were refused, one on each line. */
  refused = $state("");

  async add(chosen: Iterable<File>): Promise<void> {
    const texts: Record<string, string> = {}, refused: string[] = [];
    // The list of a drop is empty after its event.
    for (const file of [...chosen]) {
      try {
        texts[file.name] = await textOf(file);
      } catch (error) {
        refused.push(`${file.name}: ${(error as Error).message}`);
      }
    }
    this.all = { ...this.all, ...texts };
    this.refused = refused.join("\n");
  }

  remove(name: string): void {
    this.all = Object.fromEntries(Object.entries(this.all).filter(([other]) => other !== name));
  }
}

export const files = new Files();
