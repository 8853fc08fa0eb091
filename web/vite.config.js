import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { wasm } from "./engine.js";
import { kept } from "./kept.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The module `kept.json`. */
const keep = {
  name: "keep",
  resolveId: (name) => (name === "kept.json" ? `\0${name}` : null),
  load: (name) => (name === "\0kept.json" ? JSON.stringify(kept()) : null),
};

/** Writes a service worker that keeps all files of this build, so that the page works without a network. */
const offline = {
  name: "offline",
  generateBundle(_options, bundle) {
    const hash = createHash("sha256");
    const files = Object.values(bundle).map((file) => {
      hash.update(file.type === "chunk" ? file.code : file.source);
      return file.fileName;
    });
    const source = `const VERSION = "bentpipe-${hash.digest("hex").slice(0, 16)}";
const FILES = ${JSON.stringify(["./", ...files.filter((name) => name !== "index.html")])};
addEventListener("install", (event) => event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)).then(() => skipWaiting())));
addEventListener("activate", (event) => event.waitUntil(caches.keys()
  .then((keys) => Promise.all(keys.filter((key) => key.startsWith("bentpipe-") && key !== VERSION).map((key) => caches.delete(key))))
  .then(() => clients.claim())));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET") event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((kept) => kept ?? fetch(event.request)));
});
`;
    this.emitFile({ type: "asset", fileName: "sw.js", source });
    // The folder is part of the checkout, so that cargo notices when its files change.
    this.emitFile({ type: "asset", fileName: ".gitignore", source: "*\n!.gitignore\n" });
  },
};

export default defineConfig({
  base: "./",
  plugins: [svelte(), keep, offline],
  resolve: {
    alias: [
      { find: /^engine\.wasm/, replacement: wasm },
      { find: /^report\//, replacement: `${here("../crates/lab/assets")}/` },
    ],
  },
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 1000, modulePreload: { polyfill: false } },
});
