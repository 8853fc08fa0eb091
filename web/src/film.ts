// The packets of an interval, drawn at any moment of it.
import type { Watched } from "./engine";

const KIND = { data: 0, again: 1, probe: 2, ack: 3, lost: 4 } as const;
// The colours of the charts.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#16202c", "#8a8f98"];
const DARK = ["#56b4e9", "#f0803c", "#2fc79b", "#e3a3c6", "#e69f00", "#f0e442", "#ffffff", "#9aa5b1"];
/** Points along a line of the picture. */
const POINTS = 120;
/** Gauges that fit a page. */
const GAUGES = 8;
/** Seconds of real time for which a lost packet is marked. */
const MARKED = 0.35;

const dark = matchMedia("(prefers-color-scheme: dark)");
const palette = () => (dark.matches ? DARK : LIGHT);

interface Track { x: Float32Array; y: Float32Array }

export class Film {
  /** Seconds. */
  readonly until: number;
  private readonly order: Uint32Array;
  private readonly offered: Float64Array;
  private readonly left: Float64Array;
  private readonly ended: Float64Array;
  private readonly longest: number;
  private readonly most: number;
  private readonly windows = new Map<number, { at: number[]; segments: number[] }>();
  private readonly queues: { link: number; name: string; most: number }[];
  private tracks: (Track | null)[] = [];
  private traced = "";
  private image: ImageData | null = null;

  constructor(readonly watched: Watched) {
    const { hops, windows } = watched, count = hops.link.length;
    this.until = watched.until_us / 1e6;
    const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => hops.offered[a]! - hops.offered[b]!);
    this.order = order;
    const sorted = (of: number[]) => Float64Array.from(order, (i) => of[i]! / 1e6);
    [this.offered, this.left, this.ended] = [sorted(hops.offered), sorted(hops.left), sorted(hops.ended)];
    let longest = 0;
    for (let i = 0; i < count; i += 1) longest = Math.max(longest, this.ended[i]! - this.offered[i]!);
    this.longest = longest;
    for (const [i, flow] of windows.flow.entries()) {
      if (!this.windows.has(flow)) this.windows.set(flow, { at: [], segments: [] });
      const of = this.windows.get(flow)!;
      of.at.push(windows.at[i]! / 1e6);
      of.segments.push(windows.segments[i]!);
    }
    this.most = windows.segments.reduce((a, b) => Math.max(a, b), 1);
    this.queues = this.fullest();
  }

  /** The links whose queues grow longest in this interval, the longest first. */
  private fullest() {
    const { links, hops } = this.watched;
    const now = new Float64Array(links.length), most = new Float64Array(links.length);
    const changes: [number, number, number][] = [];
    for (let i = 0; i < this.order.length; i += 1) if (this.left[i]! > this.offered[i]!) changes.push([this.offered[i]!, 1, hops.link[this.order[i]!]!], [this.left[i]!, -1, hops.link[this.order[i]!]!]);
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const [, by, link] of changes) most[link] = Math.max(most[link]!, (now[link]! += by));
    const queues = links.map(({ name, direction }, link) => ({ link, name: `${name} ${direction === "forward" ? "→" : "←"}`, most: most[link]! }));
    return queues.filter((queue) => queue.most > 1).sort((a, b) => b.most - a.most).slice(0, GAUGES);
  }

  /** First of the sorted packets that is offered later than `at`. */
  private after(at: number): number {
    let [low, high] = [0, this.offered.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offered[middle]! <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  windowsAt(at: number) {
    return [...this.windows].slice(0, GAUGES).map(([flow, { at: times, segments }]) => {
      let [low, high] = [0, times.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle]! <= at) low = middle + 1;
        else high = middle;
      }
      const value = low > 0 ? segments[low - 1]! : 0;
      return { name: this.watched.flows[flow] ?? "", segments: value, share: value / this.most, colour: palette()[flow % LIGHT.length]! };
    });
  }

  queuesAt(at: number) {
    const waiting = new Map<number, number>();
    for (let i = this.after(at) - 1; i >= 0 && this.offered[i]! >= at - this.longest; i -= 1) {
      const link = this.watched.hops.link[this.order[i]!]!;
      if (this.left[i]! > at) waiting.set(link, (waiting.get(link) ?? 0) + 1);
    }
    return this.queues.map(({ link, name, most }) => ({ name, packets: waiting.get(link) ?? 0, share: (waiting.get(link) ?? 0) / most }));
  }

  /** Reads the lines of the picture that is visible, in pixels of the canvas. */
  private trace(canvas: HTMLCanvasElement, picture: HTMLElement): void {
    const svg = [...picture.querySelectorAll("svg")].find((one) => one.getBoundingClientRect().width > 0);
    const frame = canvas.parentElement!, box = svg?.getBoundingClientRect();
    if (!svg || !box) return;
    const key = `${box.width} ${box.height} ${frame.scrollWidth} ${svg.classList} ${devicePixelRatio}`;
    if (key === this.traced) return;
    this.traced = key;
    Object.assign(canvas.style, { width: `${frame.scrollWidth}px`, height: `${frame.scrollHeight}px` });
    [canvas.width, canvas.height] = [frame.scrollWidth * devicePixelRatio, frame.scrollHeight * devicePixelRatio];
    const outer = frame.getBoundingClientRect(), view = svg.viewBox.baseVal, scale = box.width / view.width;
    const [dx, dy] = [box.left - outer.left + frame.scrollLeft - frame.clientLeft, box.top - outer.top - frame.clientTop];
    // The two directions of a line stand side by side.
    const [sideways, upwards] = svg.classList.contains("down") ? [4, 0] : [0, 4];
    const lines = new Map([...svg.querySelectorAll<SVGPathElement>("path[data-link]")].map((path) => [path.dataset.link!, path]));
    this.tracks = this.watched.links.map(({ group, direction }) => {
      const path = lines.get(group);
      if (!path) return null;
      const track = { x: new Float32Array(POINTS + 1), y: new Float32Array(POINTS + 1) }, length = path.getTotalLength();
      const turned = (direction === "reverse") !== ("backwards" in path.dataset);
      for (let i = 0; i <= POINTS; i += 1) {
        const point = path.getPointAtLength(length * (turned ? 1 - i / POINTS : i / POINTS));
        const side = direction === "forward" ? -1 : 1;
        [track.x[i], track.y[i]] = [dx + (point.x - view.x) * scale + side * sideways, dy + (point.y - view.y) * scale + side * upwards];
      }
      return track;
    });
  }

  /** Draws the packets at `at` seconds. `speed` is simulated over real time. */
  draw(canvas: HTMLCanvasElement, picture: HTMLElement, at: number, speed: number): void {
    this.trace(canvas, picture);
    const ink = canvas.getContext("2d")!, colours = palette(), { hops } = this.watched;
    if (this.image?.width !== canvas.width || this.image.height !== canvas.height) this.image = ink.createImageData(canvas.width, canvas.height);
    const sheet = { pixels: new Uint32Array(this.image.data.buffer), width: canvas.width, height: canvas.height }, crosses: [Track, number][] = [];
    sheet.pixels.fill(0);
    const lost = getComputedStyle(canvas).getPropertyValue("--lost"), soft = getComputedStyle(canvas).getPropertyValue("--soft");
    let drawn = 0;
    const marked = MARKED * speed, waiting = new Uint16Array(this.tracks.length);
    for (let i = this.after(at) - 1; i >= 0 && this.offered[i]! >= at - this.longest - marked; i -= 1) {
      const hop = this.order[i]!, track = this.tracks[hops.link[hop]!], kind = hops.kind[hop]!;
      if (!track) continue;
      if (kind === KIND.lost) {
        if (this.ended[i]! + marked > at) crosses.push([track, this.ended[i]! > this.offered[i]! ? POINTS / 2 : 0]);
        continue;
      }
      if (this.ended[i]! <= at) continue;
      const left = this.left[i]!;
      // What waits stands in a pile at the beginning of its line.
      const pile = at < left ? (waiting[hops.link[hop]!]! += 1) : 0;
      const place = pile ? 0 : Math.min(POINTS, Math.round((POINTS * (at - left)) / Math.max(1e-9, this.ended[i]! - left)));
      const [x, y] = [track.x[place]! + (pile ? -(pile % 10) * 2.5 : 0), track.y[place]! - (pile ? Math.floor(pile / 10) * 3 : 0)];
      drawn += 1;
      stamp(sheet, stampOf(kind, kind === KIND.ack ? soft : colours[hops.flow[hop]! % colours.length]!), x * devicePixelRatio, y * devicePixelRatio);
    }
    ink.putImageData(this.image, 0, 0);
    ink.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    for (const [track, place] of crosses) cross(ink, track, place, lost);
    canvas.dataset.drawn = String(drawn);
  }
}

/** Half of the width of a stamp in pixels of the page. */
const HALF = 6;
const stamps = new Map<string, { pixels: Uint32Array; width: number }>();

/** Returns the pixels of a packet, drawn once: copying them is faster than filling 5,000 circles in each frame. */
function stampOf(kind: number, colour: string) {
  const key = `${kind} ${colour} ${devicePixelRatio}`, known = stamps.get(key);
  if (known) return known;
  const width = Math.ceil(2 * HALF * devicePixelRatio), canvas = new OffscreenCanvas(width, width), ink = canvas.getContext("2d")!;
  ink.scale(devicePixelRatio, devicePixelRatio);
  ink.translate(HALF, HALF);
  ink.fillStyle = ink.strokeStyle = colour;
  ink.lineWidth = 1.6;
  ink.beginPath();
  if (kind === KIND.again) ink.rect(-4, -4, 8, 8);
  else ink.arc(0, 0, kind === KIND.ack ? 1.5 : 3, 0, 2 * Math.PI);
  if (kind === KIND.probe) ink.stroke();
  else ink.fill();
  const made = { pixels: new Uint32Array(ink.getImageData(0, 0, width, width).data.buffer), width };
  stamps.set(key, made);
  return made;
}

/** Copies a stamp with its centre at a pixel of the sheet. An opaque pixel covers others. */
function stamp(sheet: { pixels: Uint32Array; width: number; height: number }, { pixels, width }: ReturnType<typeof stampOf>, x: number, y: number): void {
  const left = Math.round(x - width / 2), top = Math.round(y - width / 2);
  for (let row = Math.max(0, -top); row < width && top + row < sheet.height; row += 1) {
    for (let column = Math.max(0, -left); column < width && left + column < sheet.width; column += 1) {
      const pixel = pixels[row * width + column]!, place = (top + row) * sheet.width + left + column;
      if (pixel !== 0 && pixel >>> 24 >= sheet.pixels[place]! >>> 24) sheet.pixels[place] = pixel;
    }
  }
}

function cross(ink: CanvasRenderingContext2D, track: Track, place: number, colour: string): void {
  const [x, y] = [track.x[place]!, track.y[place]! - 8];
  ink.strokeStyle = colour;
  ink.lineWidth = 2;
  ink.beginPath();
  ink.moveTo(x - 4, y - 4);
  ink.lineTo(x + 4, y + 4);
  ink.moveTo(x + 4, y - 4);
  ink.lineTo(x - 4, y + 4);
  ink.stroke();
}
