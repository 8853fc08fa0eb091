"use strict";
(() => {
  const sections = JSON.parse(document.getElementById("sections").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const LIGHT = ["#1f6feb", "#e4572e", "#0b9e77", "#8a3ffc", "#c99700", "#d6336c", "#0891b2", "#66788a", "#7a5c3e", "#4d7c0f"];
  const DARK = ["#6cb0ff", "#ff8a5c", "#3ddbaf", "#b794ff", "#f2c744", "#ff7eb0", "#4fd3ee", "#a9b8c7", "#c9a27e", "#a3d353"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon"];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (index) => { const p = dark.matches ? DARK : LIGHT; return p[index % p.length]; };

  function axis(a) {
    const common = {
      title: { text: a.title, font: { size: 13, color: css("--soft") }, standoff: 10 },
      gridcolor: css("--line"), linecolor: css("--line"), zeroline: false, automargin: true,
      tickfont: { size: 12, color: css("--soft") },
    };
    if (a.scale === "log") return { ...common, type: "log", exponentformat: "power", dtick: 1, minor: { ticks: "outside", ticklen: 3, tickcolor: css("--line") } };
    if (a.scale === "category") return { ...common, type: "category", showgrid: false };
    if (a.scale === "degrees") return { ...common, ticksuffix: "°", nticks: 12, exponentformat: "none" };
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

  function trace(t, section, on, names) {
    const c = colour(hue(t, section, on));
    const base = {
      name: t.name, x: t.x, y: names.length ? t.y.map((v) => (v === null ? null : names[v])) : t.y, legendgroup: t.name, showlegend: t.legend,
      visible: isShown(t, on), line: { color: c, width: 2 }, marker: { color: c },
    };
    const error = t.error.some((e) => e !== null)
      ? { error_y: { type: "data", array: t.error, color: c, thickness: 1.4, width: 4 } } : {};
    switch (t.style) {
      case "bars": return { ...base, ...error, type: "bar", width: 0.55, marker: { color: c, cornerradius: 4 }, error_y: { ...error.error_y, color: css("--ink") } };
      case "line": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: 1.8 } };
      case "step": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: t.legend ? 1.6 : 1, shape: "hv" }, opacity: t.legend ? 1 : 0.6 };
      case "thin": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: 1, shape: "hv" } };
      case "dashed": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: 1.2, dash: "dash", shape: "hv" }, opacity: 0.7 };
      case "dotted": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: 1.8, dash: "dot" } };
      case "marks": return { ...base, type: "scatter", mode: "markers", marker: { color: c, size: 5, symbol: "x-thin", line: { color: c, width: 1.2 } } };
      case "band": return { ...base, type: "scatter", mode: "lines", line: { color: c, width: 5 }, opacity: 0.85 };
      case "outline": return { ...base, type: "scatter", mode: "lines", line: { color: css("--soft"), width: 1 }, opacity: 0.55, hoverinfo: "skip" };
      case "places": return { ...base, type: "scatter", mode: "markers+text", text: t.notes, textposition: "bottom center", textfont: { size: 13, color: css("--ink") }, cliponaxis: false, marker: { color: c, size: 11, line: { color: css("--card"), width: 2 } } };
      default: return { ...base, ...error, type: "scatter", mode: "lines+markers", cliponaxis: false, marker: { color: c, size: 8, symbol: SYMBOLS[t.colour % SYMBOLS.length] } };
    }
  }

  function layout(f, end) {
    const overTime = f.x.scale === "time", map = f.x.scale === "degrees";
    const bars = f.traces.some((t) => t.style === "bars");
    return {
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 56, r: 14, t: 34, b: 46 },
      xaxis: { ...axis(f.x), ...ticks(f), ...(overTime ? { range: [0, end] } : {}), ...(f.x.range ? { range: f.x.range } : {}), ...(map ? { constrain: "domain" } : {}) },
      yaxis: { ...axis(f.y), ...(f.y.close ? {} : { rangemode: "tozero", autorangeoptions: { minallowed: 0 } }), ...(f.y.range ? { range: f.y.range } : {}), ...(map ? { scaleanchor: "x", constrain: "domain" } : {}) },
      barmode: "overlay", showlegend: !bars && f.traces.length > 1,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 13 } },
      hovermode: overTime || bars || map ? "closest" : "x unified",
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      dragmode: "zoom", modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") },
    };
  }

  const config = {
    responsive: true, displaylogo: false, displayModeBar: "hover", doubleClick: "reset",
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
    toImageButtonOptions: { format: "svg", filename: "bentpipe" },
  };

  /* Zooming one chart over time zooms all of its section. */
  function linkZoom(charts) {
    let busy = false;
    for (const chart of charts) {
      chart.on("plotly_relayout", (change) => {
        if (busy) return;
        if (!Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
        busy = true;
        const range = chart._fullLayout.xaxis.range.slice();
        Promise.all(charts.filter((c) => c !== chart).map((c) => Plotly.relayout(c, { "xaxis.range": range }))).finally(() => { busy = false; });
      });
    }
  }

  sections.forEach((section, number) => {
    const root = document.querySelector(`[data-section="${number}"]`);
    const charts = [...root.querySelectorAll(".chart")];
    // The options of each choice that are on; a place that is free is null.
    const on = new Map(section.choices.map((choice) => [choice.title, [...choice.on]]));
    const times = section.figures.filter((f) => f.x.scale === "time").flatMap((f) => f.traces.map((t) => t.x.reduce((a, b) => Math.max(a, b), 0)));
    const end = times.reduce((a, b) => Math.max(a, b), 0);
    const draw = () => section.figures.map((figure, index) =>
      Plotly.react(charts[index], figure.traces.map((t) => trace(t, section, on, figure.y.names)), layout(figure, end), config));
    const show = () => section.figures.forEach((figure, index) => Plotly.restyle(charts[index], {
      visible: figure.traces.map((t) => isShown(t, on)),
      "line.color": figure.traces.map((t) => (t.style === "outline" ? css("--soft") : colour(hue(t, section, on)))),
    }));
    // A chart without a curve says nothing.
    const hide = () => section.figures.forEach((figure, index) => {
      const frame = charts[index].closest("figure"), was = frame.hidden;
      frame.hidden = !figure.traces.some((t) => isShown(t, on));
      if (was && !frame.hidden) Plotly.Plots.resize(charts[index]);
    });
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
        show();
        hide();
      });
      row.querySelector("input")?.addEventListener("input", (event) => row.querySelectorAll("[data-option]").forEach((b) => {
        b.hidden = !b.dataset.option.includes(event.target.value.trim());
      }));
    });
    press();
    Promise.all(draw()).then(hide).then(() => linkZoom(charts.filter((_, i) => section.figures[i].x.scale === "time")));
    dark.addEventListener("change", draw);
  });
})();
