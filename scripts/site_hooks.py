# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hooks of `make docs` (mkdocs.yml): the notes of the algorithms in papers/ are pages as well, and links to other files of the repository become their paths."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
NOTES = sorted((ROOT / "papers").glob("*.md"))
PICTURES = sorted((ROOT / "papers").glob("*.svg"))
SECTION = "Notes of the algorithms"

# A link that leaves docs/: its text, its path from the root of the repository, its anchor.
OUTWARD = re.compile(r"\[([^\]]*)\]\((?:\.\./)+([\w./-]+)(#[\w-]+)?\)")

# An example for a table of a scenario: a test loads it there, and the site shows the table's name as title.
EXAMPLE = re.compile(r"^```toml ([\w.-]+)$", re.MULTILINE)


def on_config(config):
    for section in config.nav:
        for pages in section.values():
            for page in pages if isinstance(pages, list) else []:
                if isinstance(page, dict) and SECTION in page:
                    page[SECTION] = [f"notes/{note.name}" for note in NOTES]
    return config


def on_files(files, config):
    for file in NOTES + PICTURES:
        files.append(File.generated(config, f"notes/{file.name}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown, page, config, files):
    up = "../" * page.file.src_uri.count("/")

    def inward(match):
        text, path, anchor = match[1], match[2], match[3] or ""
        if page.file.src_uri.startswith("notes/") and path.startswith("docs/"):
            return f"[{text}]({up}{path.removeprefix('docs/')}{anchor})"
        if path.startswith("papers/") and f"notes/{Path(path).name}" in files.src_uris:
            return f"[{text}]({up}notes/{Path(path).name}{anchor})"
        if (Path(config.docs_dir) / Path(page.file.src_uri).parent / f"{'../' * match[0].count('../')}{path}").resolve().is_relative_to(config.docs_dir):
            return match[0]
        return f"{text} (`{path}`)" if text != path else f"`{path}`"

    return EXAMPLE.sub(r'```toml title="[\1]"', OUTWARD.sub(inward, markdown))
