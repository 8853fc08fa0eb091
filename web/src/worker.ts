// One request at a time, each in an instance of its own: after a panic nothing of it is used again.

interface Exports {
  memory: WebAssembly.Memory;
  room(length: number): number;
  ask(request: number, length: number): bigint;
}

addEventListener("message", async ({ data: { module, request } }: MessageEvent<{ module: WebAssembly.Module; request: string }>) => {
  let panic = "";
  const page = {
    progress: (seconds: number) => postMessage({ seconds }),
    broke: (at: number, length: number) => { panic = read(at, length); },
  };
  const { exports } = await WebAssembly.instantiate(module, { page });
  const { memory, room, ask } = exports as unknown as Exports;
  const read = (at: number, length: number) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
  try {
    const bytes = new TextEncoder().encode(request);
    const at = room(bytes.length);
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    const answer = BigInt.asUintN(64, ask(at, bytes.length));
    postMessage({ answer: read(Number(answer >> 32n), Number(answer & 0xffffffffn)) });
  } catch (error) {
    postMessage({ broke: `The simulator broke: ${panic || error}` });
  }
});
