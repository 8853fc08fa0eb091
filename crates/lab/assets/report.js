// Reads what a report holds and draws it. `charts.js` stands before this file in the same module.

const element = (id) => document.getElementById(id);

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(element(id).textContent), (c) => c.charCodeAt(0));
  const stream = new DecompressionStream("deflate");
  const writer = stream.writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Response(stream.readable).text();
}

async function draw() {
  const [text, plotly] = await Promise.all(["sections", "plotly"].map(unpacked));
  document.head.append(Object.assign(document.createElement("script"), { textContent: plotly }));
  showCharts(document.body, JSON.parse(text));
}

if ("DecompressionStream" in window) draw();
else element("no-charts").hidden = false;
