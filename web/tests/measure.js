// Numbers that the texts of the stories name, measured in the worlds of their steps.
const KINDS = { data: 0, again: 1, probe: 2, ack: 3, lost: 4 };
const LIGHT_KM_PER_S = 299792.458, EARTH_RADIUS_KM = 6378;

/** The experiment of a step, or of one of its facts. */
export const worldOf = (story, step, fact = {}) => ({
  scenario: fact.scenario ?? step.scenario ?? story.scenario,
  cc: fact.cc ?? (step.cc ?? story.cc)[0],
  set: fact.set ? [...(step.set ?? story.set), ...fact.set] : step.set ?? story.set,
});

function delayMs({ stations, at_s, positions }, path, at) {
  const after = Math.max(1, at_s.findIndex((time) => time >= at)), share = (at - at_s[after - 1]) / (at_s[after] - at_s[after - 1]);
  const satellite = (number) => [0, 1, 2].map((axis) => positions[after - 1][3 * number + axis] * (1 - share) + positions[after][3 * number + axis] * share);
  const places = [stations[path.ends[0]].position, ...path.satellites.map(satellite), stations[path.ends[1]].position];
  const length = places.slice(1).reduce((sum, place, i) => sum + Math.hypot(...place.map((axis, k) => axis - places[i][k])), 0);
  return (length * EARTH_RADIUS_KM / LIGHT_KM_PER_S) * 1e3;
}

/** Measures one fact with the engine, which `watch(world, from, until)`, `run(world)` and `text(scenario)` ask. */
export function measure({ watch, run, text }, world, fact) {
  switch (fact.what) {
    case "given": return [text(world.scenario), ...world.set].some((part) => part.includes(fact.text)) ? fact.text : "not in the scenario";
    case "window": {
      const { windows, flows } = watch(world, Math.max(0, fact.at - 0.01), fact.at);
      const flow = flows.indexOf(fact.flow);
      const last = windows.at.findLastIndex((at, i) => windows.flow[i] === flow && at <= fact.at * 1e6);
      return String(Math.round(windows.segments[last]));
    }
    case "window-change": {
      const { windows, flows } = watch(world, fact.after, fact.after + 5);
      const flow = flows.indexOf(fact.flow), own = (i) => windows.flow[i] === flow;
      const before = windows.segments[windows.at.findLastIndex((at, i) => own(i) && at <= fact.after * 1e6)];
      return (windows.at.find((at, i) => own(i) && at > fact.after * 1e6 && windows.segments[i] !== before) / 1e6).toFixed(1);
    }
    case "packets": {
      // The engine tells a packet when it is lost or has arrived.
      const { hops, links } = watch(world, fact.from, fact.until + 3);
      const there = (i) => (!fact.link || links[hops.link[i]].group === fact.link) && (!fact.direction || links[hops.link[i]].direction === fact.direction);
      const counted = hops.kind.filter((kind, i) => kind === KINDS[fact.kind] && there(i) && hops.offered[i] >= fact.from * 1e6 && hops.offered[i] <= fact.until * 1e6);
      return String(counted.length);
    }
    case "goodput": {
      const { groups } = run(world);
      const bps = groups.filter(({ name }) => fact.group === "*" || name === fact.group).reduce((sum, group) => sum + group.goodput_bps, 0);
      return bps >= 1e8 ? String(Math.round(bps / 1e6)) : (bps / 1e6).toPrecision(2);
    }
    default: {
      const { sky } = watch(world, fact.at - 5, fact.at + 5);
      const path = sky.paths.findLast(({ at_s }) => at_s <= fact.at);
      if (fact.what === "path-change") return String(path.at_s);
      if (fact.what === "satellites") return String(path.satellites.length);
      if (fact.what === "handovers") return String(path.handovers);
      return delayMs(sky, path, fact.at).toFixed(1);
    }
  }
}
