// The engine without a page, for the build and for tests.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../target", import.meta.url));
export const wasm = `${target}/wasm32-unknown-unknown/web/bentpipe_web.wasm`;
const module = new WebAssembly.Module(readFileSync(wasm));

/** Asks in an instance of its own, as the worker of the page does. */
export function ask(request) {
  const told = [], broken = [];
  const page = { progress: (seconds) => told.push(seconds), broke: (at, length) => broken.push(read(at, length)) };
  const { memory, room, ask } = new WebAssembly.Instance(module, { page }).exports;
  const read = (at, length) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = room(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  const answer = BigInt.asUintN(64, ask(at, bytes.length));
  assert.deepEqual(broken, []);
  return { told, ...JSON.parse(read(Number(answer >> 32n), Number(answer & 0xffffffffn))) };
}
