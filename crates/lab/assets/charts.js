// Draws the charts of a report. The report of the command line and the laboratory in a browser use this module; both load Plotly first.

// Long columns are differences in units of 1 / scale; null is a gap.
function column(c) {
  if (Array.isArray(c)) return c;
  let units = 0;
  return c.by.map((by) => (by === null ? null : (units += by) / c.scale));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
// Okabe and Ito's colours, which the colour-blind tell apart; yellow is too pale for a light ground.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#16202c", "#8a8f98"];
const DARK = ["#56b4e9", "#f0803c", "#2fc79b", "#e3a3c6", "#e69f00", "#f0e442", "#ffffff", "#9aa5b1"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon"];
// Marks on a long curve: they tell curves apart where colours do not.
const MARKS = 12;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/* How charts look: on the screen, in print, and in a picture for a paper. Sizes are in pixels, 96 of which are an inch. */
const screenLook = () => ({ ink: css("--ink"), soft: css("--soft"), line: css("--line"), ground: "rgba(0,0,0,0)", card: css("--card"), curves: dark.matches ? DARK : LIGHT, narrow: innerWidth < 600, font: 13, stroke: 1, margin: { l: 48, r: 12, t: 30, b: 42 }, family: getComputedStyle(document.body).fontFamily });
const PAPER = { ink: "#000000", soft: "#333333", line: "#dddddd", ground: "#ffffff", card: "#ffffff", curves: LIGHT, font: 8.5 * 96 / 72, stroke: 0.65, margin: { l: 40, r: 8, t: 24, b: 34 }, family: "Arial, Helvetica, sans-serif" };

function axis(a, look) {
  const common = {
    title: { text: a.title, font: { size: look.font, color: look.soft }, standoff: 8 },
    gridcolor: look.line, linecolor: look.line, zeroline: false, automargin: true,
    tickfont: { size: look.font - 1, color: look.soft },
  };
  if (a.scale === "log") return { ...common, type: "log", exponentformat: "power", dtick: 1, minor: { ticks: "outside", ticklen: 3, tickcolor: look.line } };
  if (a.scale === "category") return { ...common, type: "category", showgrid: false };
  if (a.scale === "degrees") return { ...common, ticksuffix: "°", nticks: 12, exponentformat: "none", showticklabels: !look.narrow };
  if (a.names.length) return { ...common, type: "category", categoryorder: "array", categoryarray: a.names, range: [a.names.length - 0.5, -0.5] };
  return { ...common, exponentformat: "none", separatethousands: true };
}

// Powers of ten label a logarithmic axis only where the points lie on them; few points elsewhere are labelled themselves.
function ticks(f) {
  if (f.x.scale !== "log") return {};
  const points = [...new Set(f.traces.flatMap((t) => [...t.x]))].sort((a, b) => a - b);
  const even = points.every((x) => Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-9);
  if (even || points.length > 8) return {};
  const label = (x) => (x < 1e-3 ? x.toExponential() : x.toLocaleString("en", { maximumSignificantDigits: 6 }));
  return { tickmode: "array", tickvals: points, ticktext: points.map(label), minor: { ticks: "" } };
}

const isShown = (t, on) => t.shown_by.every((pick) => on.get(pick.choice).includes(pick.option));

// Where there are more options than colours, a curve has the colour of the place that its option takes among those that are on.
function hue(t, section, on) {
  const pick = t.shown_by.find(({ choice }) => section.choices.some((c) => c.title === choice && c.most > 1 && c.options.length > LIGHT.length));
  const place = pick ? on.get(pick.choice).indexOf(pick.option) : -1;
  return place < 0 ? t.colour : place;
}

function trace(t, hue, f, look) {
  const names = f.y.names;
  const c = look.curves[hue % look.curves.length], symbol = SYMBOLS[hue % SYMBOLS.length], wide = (pixels) => pixels * look.stroke;
  const base = {
    type: "scatter", name: t.name, x: t.x, y: names.length ? t.y.map((v) => (v === null ? null : names[v])) : t.y,
    legendgroup: t.name, showlegend: t.legend, line: { color: c, width: wide(2) }, marker: { color: c },
  };
  const error = t.error.some((e) => e !== null)
    ? { error_y: { type: "data", array: t.error, color: c, thickness: wide(1.4), width: wide(4) } } : {};
  const marked = t.legend && t.x.length > MARKS && f.x.scale === "time"
    ? { mode: "lines+markers", marker: { color: c, size: wide(7), symbol, maxdisplayed: MARKS } } : { mode: "lines" };
  switch (t.style) {
    case "bars": return { ...base, ...error, type: "bar", width: 0.55, marker: { color: c, cornerradius: 4 }, error_y: { ...error.error_y, color: look.ink } };
    case "line": return { ...base, ...marked, line: { color: c, width: wide(1.8) } };
    case "step": return { ...base, ...marked, line: { color: c, width: wide(t.legend ? 1.6 : 1), shape: "hv" }, opacity: t.legend ? 1 : 0.6 };
    case "thin": return { ...base, ...marked, line: { color: c, width: wide(1), shape: "hv" } };
    case "dashed": return { ...base, mode: "lines", line: { color: c, width: wide(1.2), dash: "dash", shape: "hv" }, opacity: 0.7 };
    case "dotted": return { ...base, mode: "lines", line: { color: c, width: wide(1.8), dash: "dot" } };
    case "marks": return { ...base, mode: "markers", marker: { color: c, size: wide(5), symbol: "x-thin", line: { color: c, width: wide(1.2) } } };
    case "band": return { ...base, mode: "lines", line: { color: c, width: wide(5) }, opacity: 0.85 };
    case "outline": return { ...base, mode: "lines", line: { color: look.soft, width: wide(1) }, opacity: 0.55, hoverinfo: "skip" };
    case "places": return { ...base, mode: "markers+text", text: t.notes, textposition: "bottom center", textfont: { size: look.font, color: look.ink }, cliponaxis: false, marker: { color: c, symbol, size: wide(11), line: { color: look.card, width: wide(2) } } };
    default: return { ...base, ...error, mode: "lines+markers", cliponaxis: false, marker: { color: c, size: wide(8), symbol } };
  }
}

function layout(f, end, look) {
  const overTime = f.x.scale === "time", map = f.x.scale === "degrees";
  const bars = f.traces.some((t) => t.style === "bars");
  return {
    font: { family: look.family, size: look.font, color: look.ink },
    paper_bgcolor: look.ground, plot_bgcolor: look.ground,
    margin: look.margin,
    xaxis: { ...axis(f.x, look), ...ticks(f), ...(overTime ? { range: [0, end] } : {}), ...(f.x.range ? { range: f.x.range } : {}), ...(map ? { constrain: "domain" } : {}) },
    yaxis: { ...axis(f.y, look), ...(f.y.close ? {} : { rangemode: "tozero", autorangeoptions: { minallowed: 0 } }), ...(f.y.range ? { range: f.y.range } : {}), ...(map ? { scaleanchor: "x", constrain: "domain" } : {}) },
    barmode: "overlay", showlegend: !bars && f.traces.filter((t) => t.legend).length > 1,
    legend: { orientation: "h", x: 0, ...(map && look.narrow ? { y: 0, yanchor: "top" } : { y: 1.02, yanchor: "bottom" }), font: { size: look.font } },
    hovermode: overTime || bars || map ? "closest" : "x unified",
    hoverlabel: { bgcolor: look.card, bordercolor: look.line, font: { color: look.ink } },
    dragmode: "zoom", uirevision: "kept", modebar: { bgcolor: "rgba(0,0,0,0)", color: look.soft, activecolor: css("--accent") },
    ...(look.width ? { width: look.width, height: look.height } : { autosize: true }),
  };
}

const config = {
  responsive: true, displaylogo: false, displayModeBar: "hover", doubleClick: "reset",
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]],
};

/* Files */

const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

function save(name, ending, content) {
  const address = typeof content === "string" && content.startsWith("data:") ? content : URL.createObjectURL(new Blob([content]));
  Object.assign(document.createElement("a"), { href: address, download: `${name}.${ending}` }).click();
}

// One line for each point: the curve, where it lies, and half of its confidence interval.
function csv(f, traces) {
  const field = (v) => (v === null || v === undefined ? "" : /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : String(v));
  const errors = traces.some((t) => t.error.some((e) => e !== null));
  const head = ["curve", f.x.title || "x", f.y.title || f.title, ...(errors ? ["ci95"] : [])];
  const rows = traces.flatMap((t) => t.x.map((x, i) => [t.name, x, f.y.names[t.y[i]] ?? t.y[i], ...(errors ? [t.error[i]] : [])]));
  return [head, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}
class Chart {
  constructor(page, section, number, place, on) {
    Object.assign(this, { page, section, figure: section.figures[number], place, on, frame: place.closest("figure") });
    const times = section.figures.filter((f) => f.x.scale === "time").flatMap((f) => f.traces.map((t) => t.x.reduce((a, b) => Math.max(a, b), 0)));
    this.end = times.reduce((a, b) => Math.max(a, b), 0);
    this.frame.addEventListener("click", ({ target }) => { if (target.dataset.file) this.save(target.dataset.file); });
  }

  get shown() { return this.figure.traces.filter((t) => isShown(t, this.on)); }

  spec(look) {
    const figure = { ...this.figure, traces: this.shown };
    return [figure.traces.map((t) => trace(t, hue(t, this.section, this.on), figure, look)), layout(figure, this.end, look)];
  }

  // A chart without a curve says nothing.
  async draw(look = screenLook()) {
    this.frame.hidden = this.shown.length === 0;
    if (this.frame.hidden) return;
    const drawn = Plotly.react(this.place, ...this.spec(look), config);
    if (!this.listens) this.place.on("plotly_relayout", (change) => this.follow(change));
    this.listens = true;
    await drawn;
  }

  get range() { return this.place._fullLayout?.xaxis.range; }

  // Zooming one chart over time zooms all of its section.
  follow(change) {
    if (this.figure.x.scale !== "time" || !Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
    const range = [...this.range];
    const others = this.page.charts.filter((c) => c.section === this.section && c.figure.x.scale === "time" && c.listens);
    for (const other of others) if (String(other.range) !== String(range)) Plotly.relayout(other.place, { "xaxis.range": range });
  }

  print() {
    const width = this.figure.wide ? 660 : 318;
    const height = this.figure.x.scale === "degrees" ? 360 : 210;
    this.draw({ ...PAPER, width, height });
  }

  // A picture has the part of the chart that is zoomed to.
  async save(ending) {
    const name = slug(`${this.page.root.dataset.name} ${this.figure.title || this.section.title}`);
    if (ending === "csv") return save(name, ending, csv(this.figure, this.shown));
    const inches = Number(this.frame.querySelector("select").value);
    const high = inches > 4 ? 3.2 : 2.4, [width, height] = [96 * inches, 96 * high];
    const [data, layout] = this.spec({ ...PAPER, width, height });
    const { xaxis, yaxis } = this.place._fullLayout;
    const zoomed = { ...layout, xaxis: { ...layout.xaxis, range: xaxis.range }, yaxis: { ...layout.yaxis, range: yaxis.range } };
    // 600 dots an inch, as journals ask of drawings.
    const scale = ending === "png" ? 600 / 96 : 1;
    const url = await Plotly.toImage({ data, layout: zoomed, config }, { format: ending, width, height, scale });
    if (ending === "png") return save(name, ending, url);
    const svg = decodeURIComponent(url.slice(url.indexOf(",") + 1));
    return save(name, ending, svg.replace(/ width="[^"]*" height="[^"]*"/, ` width="${inches}in" height="${high}in"`));
  }
}
async function show(page, section, number) {
  const root = page.root.querySelector(`[data-section="${number}"]`);
  // The options of each choice that are on; a place that is free is null.
  const on = new Map(section.choices.map((choice) => [choice.title, [...choice.on]]));
  const charts = [...root.querySelectorAll(".chart")].map((place, index) => new Chart(page, section, index, place, on));
  page.charts.push(...charts);
  const rows = [...root.querySelectorAll(".choices")];
  const press = () => rows.forEach((row, index) => row.querySelectorAll("[data-option]").forEach((b) =>
    b.setAttribute("aria-pressed", on.get(section.choices[index].title).includes(b.dataset.option))));
  // The option that has been on for longest makes room for one more than may be on.
  const toggle = (choice, option) => {
    const places = on.get(choice.title), place = places.indexOf(option);
    if (choice.most === 1) places.splice(0, 1, option);
    else if (place >= 0) places[place] = null;
    else {
      const free = places.indexOf(null);
      if (free >= 0) places[free] = option;
      else if (places.length < choice.most) places.push(option);
      else { places[choice.next = (choice.next ?? 0) % choice.most] = option; choice.next += 1; }
    }
  };
  rows.forEach((row, index) => {
    row.addEventListener("click", (event) => {
      const option = event.target.dataset.option;
      if (option === undefined) return;
      toggle(section.choices[index], option);
      press();
      charts.forEach((chart) => chart.draw());
    });
    row.querySelector("input")?.addEventListener("input", (event) => row.querySelectorAll("[data-option]").forEach((b) => {
      b.hidden = !b.dataset.option.includes(event.target.value.trim());
    }));
  });
  press();
  for (const chart of charts) {
    await chart.draw();
    // The browser shows each chart before the next is drawn.
    await new Promise((resolve) => { setTimeout(resolve); });
  }
}

/* Draws all charts of `sections` in `root`, which has a place for each. Returns the page; `close` ends it before another one takes its place. */
export function showCharts(root, sections) {
  for (const t of sections.flatMap((s) => s.figures).flatMap((f) => f.traces)) [t.x, t.y] = [column(t.x), column(t.y)];
  const events = new AbortController(), signal = events.signal;
  const page = { root, charts: [], close: () => { events.abort(); page.charts.forEach((chart) => Plotly.purge(chart.place)); } };
  const redraw = () => page.charts.forEach((chart) => chart.draw());
  dark.addEventListener("change", redraw, { signal });
  addEventListener("beforeprint", () => page.charts.forEach((chart) => chart.print()), { signal });
  addEventListener("afterprint", redraw, { signal });
  const drawn = async () => {
    for (const [number, section] of sections.entries()) if (!signal.aborted) await show(page, section, number);
    root.dataset.drawn = page.charts.length;
  };
  page.drawn = drawn();
  return page;
}
