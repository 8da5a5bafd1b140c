// Draws the charts of a page without a browser, with a minimal document and canvases that write SVG. crates/pictures runs
// report.js in it, so that files show the same as the page. It is a separate bundle.

import { outline, type Shape } from "./shapes";
import { Canvas, Path, text, textWidth } from "./svg";

interface Figure {
  /** The element that the charts draw into. */
  id: string;
  /** The element whose text is the title once the chart is drawn; absent if it does not change. */
  subject: string | null;
  title: string;
  isLow: boolean;
  /** Names of the panels that have a canvas each; empty where the chart makes its own. */
  panels: string[];
}

interface Input {
  figures: Figure[];
  /** What the page has in its element `data`. */
  data: string;
  /** The styles of the page, of which the colours are taken. */
  css: string;
}

/** Width of a picture, and the room at its edges, in CSS pixels. */
const WIDTH = 1_000;
const MARGIN = 16;
/** Room between panels that stand beside each other, as in report.css. */
const GAP = 20;
const PIXELS = 2;

const TITLE = 15;
const LABEL = 12;
/** Lines of the title, of the name of a panel, and of the legend. */
const TITLE_LINE = 34;
const LABEL_LINE = 24;
const MARKER = 24;

let css = "";

/** The colour of a custom property on a light background, as browsers write it. */
function resolved(value: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(value)?.[1];
  if (!name) {
    return value;
  }
  const found = new RegExp(`${name}:\\s*(?:light-dark\\()?\\s*(#[0-9a-fA-F]+)`).exec(css)?.[1];
  if (!found) {
    throw new Error(`no colour ${name}`);
  }
  const short = found.length < 6;
  const parts = found.slice(1).match(short ? /./g : /../g) ?? [];
  const [r, g, b, a] = parts.map((part) => Number.parseInt(short ? part + part : part, 16));
  return a === undefined ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${a / 255})`;
}

const nothing = () => {};

/** What charts do with an element: they put others into it, and ask how wide it is. */
class Element {
  readonly children: Element[] = [];
  readonly style: Record<string, string> = {};
  readonly dataset: Record<string, string> = {};
  readonly classList = new Set<string>() as Set<string> & { contains(name: string): boolean; remove(name: string): void };
  parentElement: Element | null = null;
  hidden = false;
  disabled = false;
  id = "";
  type = "";
  width = 0;
  height = 0;
  private own = "";
  private room: number | null = null;
  private canvas: Canvas | null = null;

  constructor(readonly tagName: string) {
    this.classList.contains = (name) => this.classList.has(name);
    this.classList.remove = (name) => void this.classList.delete(name);
  }

  set className(name: string) {
    this.classList.clear();
    this.classList.add(name);
  }

  get textContent(): string {
    return this.own + this.children.map((child) => child.textContent).join("");
  }

  set textContent(value: string | null) {
    this.own = value ?? "";
    this.children.length = 0;
  }

  get childNodes(): Element[] {
    return this.children;
  }

  /** The text, as the only thing that is asked for. */
  get firstChild(): { nodeValue: string } {
    return { nodeValue: this.own };
  }

  get clientWidth(): number {
    return this.room ?? this.parentElement?.clientWidth ?? WIDTH - 2 * MARGIN;
  }

  set clientWidth(width: number) {
    this.room = width;
  }

  insertBefore(child: Element, before?: Element | null): Element {
    const place = before ? this.children.indexOf(before) : -1;
    this.children.splice(place < 0 ? this.children.length : place, 0, child);
    child.parentElement = this;
    return child;
  }

  appendChild(child: Element): Element {
    return this.insertBefore(child);
  }

  append(...children: Element[]): void {
    children.forEach((child) => this.insertBefore(child));
  }

  replaceChildren(...children: Element[]): void {
    this.children.length = 0;
    this.append(...children);
  }

  remove(): void {
    const siblings = this.parentElement?.children ?? [];
    const place = siblings.indexOf(this);
    if (place >= 0) {
      siblings.splice(place, 1);
    }
  }

  /** All elements below it of a name, or of a class. */
  querySelectorAll(wanted: string): Element[] {
    const is = (one: Element) => (wanted.startsWith(".") ? one.classList.has(wanted.slice(1)) : one.tagName === wanted);
    return this.children.flatMap((child) => [...(is(child) ? [child] : []), ...child.querySelectorAll(wanted)]);
  }

  querySelector(wanted: string): Element | null {
    return this.querySelectorAll(wanted)[0] ?? null;
  }

  getBoundingClientRect() {
    return { left: 0, top: 0, width: this.clientWidth, height: 0 };
  }

  getContext(): Canvas {
    this.canvas ??= new Canvas(this);
    return this.canvas;
  }

  addEventListener = nothing;
  removeEventListener = nothing;
  setAttribute = nothing;
  setPointerCapture = nothing;
}

const elements = new Map<string, Element>();
let figures: Figure[] = [];

function put(id: string, tag = "div"): Element {
  const element = new Element(tag);
  element.id = id;
  elements.set(id, element);
  return element;
}

/** Makes the elements of a page's charts; report.js is to be run after that. */
function prepare(input: Input): void {
  css = input.css;
  figures = input.figures;
  put("data").textContent = input.data;
  for (const figure of figures) {
    const element = put(figure.id);
    if (figure.isLow) {
      element.classList.add("low");
    }
    if (figure.subject) {
      put(figure.subject).textContent = figure.title;
    }
    put(`key-${figure.id}`);
    for (const _ of figure.panels) {
      const panel = new Element("div");
      panel.clientWidth = panelWidth(figure);
      panel.append(new Element("canvas"));
      element.append(panel);
    }
  }
}

function columns(figure: Figure): number {
  return figure.panels.length > 1 ? 2 : 1;
}

function panelWidth(figure: Figure): number {
  const all = WIDTH - 2 * MARGIN;
  return (all - GAP * (columns(figure) - 1)) / columns(figure);
}

/** A curve in the legend that uPlot made: its name, and how it is drawn. */
interface Entry {
  label: string;
  color: string;
  dash: string | undefined;
  shape: string | undefined;
}

function entries(element: Element): Entry[] {
  return element.querySelectorAll(".u-series").flatMap((row) => {
    const { style, dataset } = row.querySelector(".u-marker") ?? {};
    const label = row.querySelector(".u-label")?.textContent ?? "";
    return style?.["color"] ? [{ label, color: style["color"], dash: dataset?.["dash"], shape: dataset?.["shape"] }] : [];
  });
}

/** A curve or a point as the legend shows it. */
function marker({ color, dash, shape }: Entry, left: number, middle: number): string {
  const path = new Path();
  if (shape) {
    outline(path, shape as Shape, left + MARKER / 2, middle, 4.5);
    return `<path d="${path.d}" fill="${color}"/>`;
  }
  const dashes = dash ? ` stroke-dasharray="${dash}"` : "";
  return `<path d="M${left} ${middle}h${MARKER}" stroke="${color}" stroke-width="2.5" fill="none"${dashes}/>`;
}

/** The legend from a height on, and where it ends. */
function legend(found: Entry[], top: number): [string, number] {
  let [left, y] = [MARGIN, top];
  const drawn = found.map((entry) => {
    const { label } = entry;
    const width = MARKER + 6 + textWidth(label, LABEL) + 22;
    if (left > MARGIN && left + width > WIDTH - MARGIN) {
      [left, y] = [MARGIN, y + LABEL_LINE];
    }
    const line = marker(entry, left, y + 12);
    const name = text(label, left + MARKER + 6, y + 16, LABEL, resolved("var(--text)"));
    left += width;
    return line + name;
  });
  return [drawn.join(""), found.length > 0 ? y + LABEL_LINE : top];
}

/** The key of a density: its least and most, with the colours between them. */
function key(element: Element | undefined, id: string, top: number): [string, number] {
  const stops = element?.querySelector("i")?.style["background"]?.match(/rgb\([^)]*\)/g);
  const [least, most] = element?.querySelectorAll("span").map((span) => span.textContent) ?? [];
  if (!stops || !most) {
    return ["", top];
  }
  const soft = resolved("var(--text-soft)");
  const start = MARGIN + textWidth(least ?? "", LABEL) + 8;
  const colors = stops.map((stop, place) => {
    const color = `rgb(${stop.slice(4, -1).split(/[ ,]+/).join(",")})`;
    return `<stop offset="${place / (stops.length - 1)}" stop-color="${color}"/>`;
  });
  const bar = least
    ? `<linearGradient id="key-${id}">${colors.join("")}</linearGradient>` +
      `<rect x="${start}" y="${top + 7}" width="160" height="10" fill="url(#key-${id})"/>`
    : "";
  const end = least ? start + 168 : MARGIN;
  const words = text(least ?? "", MARGIN, top + 16, LABEL, soft) + text(most, end, top + 16, LABEL, soft);
  return [bar + words, top + LABEL_LINE];
}

/** A figure as a document of its own. */
function drawn(figure: Figure): string {
  const element = elements.get(figure.id);
  const title = (figure.subject && elements.get(figure.subject)?.textContent) || figure.title;
  // A page shows text in backticks as code.
  const parts = [text(title.replaceAll("`", ""), MARGIN, 22, TITLE, resolved("var(--text)"), "600")];
  let bottom = TITLE_LINE;
  const canvases = element?.querySelectorAll("canvas") ?? [];
  const across = columns(figure);
  let row = bottom;
  canvases.forEach((canvas, place) => {
    const column = place % across;
    row = column === 0 ? bottom : row;
    const left = MARGIN + column * (panelWidth(figure) + GAP);
    const label = figure.panels[place] ?? "";
    const top = row + (label ? LABEL_LINE : 0);
    if (label) {
      parts.push(text(label, left, row + 16, LABEL, resolved("var(--text)"), "600"));
    }
    parts.push(`<g transform="translate(${left} ${top}) scale(${1 / PIXELS})">${canvas.getContext().svg()}</g>`);
    bottom = Math.max(bottom, top + canvas.height / PIXELS + 8);
  });
  const [curves, after] = legend(element ? entries(element) : [], bottom);
  const [colors, end] = key(elements.get(`key-${figure.id}`), figure.id, after);
  parts.push(curves, colors);
  const height = Math.ceil(end + MARGIN / 2);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}">` +
    `<rect width="${WIDTH}" height="${height}" fill="${resolved("var(--background)")}"/>${parts.join("")}</svg>\n`
  );
}

/** The figures in the order in which they came. */
function pictures(): string[] {
  return figures.map(drawn);
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function atob(packed: string): string {
  const values = new Uint8Array(128);
  [...ALPHABET].forEach((letter, value) => {
    values[letter.charCodeAt(0)] = value;
  });
  const at = (place: number) => values[packed.charCodeAt(place)] ?? 0;
  const end = packed.replace(/=+$/, "").length;
  const pieces: string[] = [];
  for (let place = 0; place < end; place += 4) {
    const bits = (at(place) << 18) | (at(place + 1) << 12) | (at(place + 2) << 6) | at(place + 3);
    const bytes = [bits >> 16, (bits >> 8) & 255, bits & 255].slice(0, Math.min(3, end - place - 1));
    pieces.push(String.fromCharCode(...bytes));
  }
  return pieces.join("");
}

/** Whole numbers in groups of three digits: all that charts ask of it. */
class NumberFormat {
  format(value: number): string {
    return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
  }
}

const document = {
  body: new Element("body"),
  documentElement: new Element("html"),
  createElement: (tag: string) => new Element(tag),
  getElementById: (id: string) => elements.get(id) ?? null,
  querySelector: () => null,
  querySelectorAll: () => [],
};

Object.assign(globalThis, {
  window: globalThis,
  document,
  navigator: { language: "en-US" },
  devicePixelRatio: PIXELS,
  atob,
  Path2D: Path,
  Intl: {
    NumberFormat,
    DateTimeFormat: class {
      resolvedOptions = () => ({ timeZone: "UTC" });
    },
  },
  CustomEvent: class {},
  HTMLElement: Element,
  ResizeObserver: class {
    observe = nothing;
  },
  matchMedia: () => ({ matches: false, addEventListener: nothing, removeEventListener: nothing }),
  getComputedStyle: (element: Element) => ({ color: resolved(element.style["color"] ?? "") }),
  addEventListener: nothing,
  removeEventListener: nothing,
  dispatchEvent: nothing,
  headless: { prepare, pictures },
});
