// Files that the user gave to the page, for scenarios that name them. A link has their names only.
class Files {
  /** Texts by name. */
  all = $state.raw<Record<string, string>>({});

  async add(chosen: Iterable<File>): Promise<void> {
    const texts = await Promise.all([...chosen].map(async (file): Promise<[string, string]> => [file.name, await file.text()]));
    this.all = { ...this.all, ...Object.fromEntries(texts) };
  }

  remove(name: string): void {
    this.all = Object.fromEntries(Object.entries(this.all).filter(([other]) => other !== name));
  }
}

export const files = new Files();
