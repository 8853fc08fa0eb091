// Geometry of a constellation at a moment. Positions are in Earth radii and turn with the Earth.
import type { Sky, SkyPath } from "./engine";

export type Point = [number, number, number];

const LIGHT_KM_PER_S = 299792.458, EARTH_RADIUS_KM = 6378;

/** Positions of all satellites at `at` seconds, between the two times that the engine tells. */
export function positionsAt({ at_s, positions }: Sky, at: number): Float64Array {
  const next = Math.max(1, at_s.findIndex((time) => time >= at)), before = positions[next - 1]!, after = positions[next] ?? before;
  const share = Math.max(0, Math.min(1, (at - at_s[next - 1]!) / ((at_s[next] ?? Infinity) - at_s[next - 1]!)));
  return Float64Array.from(before, (value, i) => value * (1 - share) + after[i]! * share);
}

/** The present path of each pair of ends. */
export function pathsAt({ paths }: Sky, at: number): SkyPath[] {
  const present = new Map<string, SkyPath>();
  for (const path of paths) if (path.at_s <= at) present.set(path.name, path);
  return [...present.values()];
}

/** Times in the interval at which the path of this name changes. */
export function handoversOf({ paths, at_s }: Sky, name: string): number[] {
  return paths.filter((path) => path.name === name && path.at_s > 0 && path.at_s >= at_s[0]!).map((path) => path.at_s);
}

/** Positions on a path: stations and satellites. */
export function pointsOf({ stations }: Sky, { ends: [from, to], satellites }: SkyPath, satellite: (number: number) => Point): Point[] {
  const ground = (end: number | null): Point[] => end === null ? [] : [stations[end]!.position];
  return [...ground(from), ...satellites.map(satellite), ...ground(to)];
}

/** Propagation delay of a path. */
export function delayMs(sky: Sky, path: SkyPath, at: number): number {
  const all = positionsAt(sky, at), satellite = (number: number): Point => [all[3 * number]!, all[3 * number + 1]!, all[3 * number + 2]!];
  const places = pointsOf(sky, path, satellite);
  const length = places.slice(1).reduce((sum, [x, y, z], i) => sum + Math.hypot(x - places[i]![0], y - places[i]![1], z - places[i]![2]), 0);
  return (length * EARTH_RADIUS_KM / LIGHT_KM_PER_S) * 1e3;
}

/** A point as seen from above `centre` (degrees east and north): to the right, upwards, and towards the viewer. */
export function depth([x, y, z]: Point, [longitude, latitude]: [number, number]): Point {
  const [sin, cos] = [Math.sin(longitude * Math.PI / 180), Math.cos(longitude * Math.PI / 180)];
  const [up, level] = [Math.sin(latitude * Math.PI / 180), Math.cos(latitude * Math.PI / 180)];
  const towards = x * cos + y * sin;
  return [y * cos - x * sin, z * level - towards * up, towards * level + z * up];
}
