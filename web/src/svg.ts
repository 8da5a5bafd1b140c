// A canvas that writes SVG. It implements the part of the browser interface that the charts use.

/** Writes pixels as a PNG file in base64; crates/pictures has it. */
declare const encodePng: (pixels: Uint8Array, width: number, height: number) => string;

type Matrix = [number, number, number, number, number, number];

const FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/** Widths of the letters from the space to the tilde, in thousandths of their size, as DejaVu Sans has them; browsers of
    other systems have narrower ones, so that what fits here fits there. */
const WIDTHS = [
  318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
  636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
  1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
  603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
  500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
  635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
/** Width of all others. */
const OTHER = 650;

export function textWidth(words: string, size: number): number {
  let width = 0;
  for (let place = 0; place < words.length; place++) {
    width += WIDTHS[words.charCodeAt(place) - 32] ?? OTHER;
  }
  return (width * size) / 1_000;
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A number with as many digits as can be seen. */
function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** A colour as an attribute, with its opacity as another one: not all programs know `rgba`. */
function paint(attribute: "fill" | "stroke", style: string, alpha = 1): string {
  const numbers = /^rgba?\((.*)\)$/.exec(style)?.[1]?.split(/[ ,/]+/).map(Number);
  const opacity = (numbers?.[3] ?? (style === "transparent" ? 0 : 1)) * alpha;
  const color = numbers ? `rgb(${numbers.slice(0, 3).join(",")})` : style === "transparent" ? "none" : style;
  return ` ${attribute}="${color}"${opacity < 1 ? ` ${attribute}-opacity="${short(opacity)}"` : ""}`;
}

export function text(words: string, x: number, y: number, size: number, fill: string, weight = ""): string {
  const bold = weight ? ` font-weight="${weight}"` : "";
  const place = `x="${short(x)}" y="${short(y)}"`;
  return `<text ${place} font-family="${FAMILY}" font-size="${short(size)}"${bold}${paint("fill", fill)}>${escaped(words)}</text>`;
}

/** `Path2D`. */
export class Path {
  d = "";

  constructor(other?: Path | null) {
    this.d = other?.d ?? "";
  }

  moveTo(x: number, y: number): void {
    this.d += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.d += `${this.d ? "L" : "M"}${short(x)} ${short(y)}`;
  }

  bezierCurveTo(...points: number[]): void {
    this.d += `C${points.map(short).join(" ")}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.d += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  /** Charts draw whole circles only. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    const across = short(2 * radius);
    this.d += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${across} 0a${r} ${r} 0 1 0 -${across} 0z`;
  }

  closePath(): void {
    this.d += "z";
  }
}

interface Pixels {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/** What `save` keeps. */
interface State {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  lineJoin: string;
  lineCap: string;
  font: string;
  textAlign: string;
  textBaseline: string;
  globalAlpha: number;
  dash: number[];
  matrix: Matrix;
  clipped: string;
}

const FRESH: State = {
  fillStyle: "#000",
  strokeStyle: "#000",
  lineWidth: 1,
  lineJoin: "miter",
  lineCap: "butt",
  font: "10px sans-serif",
  textAlign: "start",
  textBaseline: "alphabetic",
  globalAlpha: 1,
  dash: [],
  matrix: [1, 0, 0, 1, 0, 0],
  clipped: "",
};

/** Where the baseline lies below the place that is given, as a share of the size. */
const BASELINES: Record<string, number> = { top: 0.82, middle: 0.35, bottom: -0.2 };
const ANCHORS: Record<string, string> = { center: "middle", right: "end", end: "end" };

/** Names of clips differ within a page, so that pictures can stand in one. */
let clips = 0;

/** `CanvasRenderingContext2D`. */
export class Canvas {
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 1;
  lineJoin = "";
  lineCap = "";
  font = "";
  textAlign = "";
  textBaseline = "";
  globalAlpha = 1;
  private dash: number[] = [];
  private matrix: Matrix = FRESH.matrix;
  private clipped = "";
  private path = new Path();
  private readonly saved: State[] = [];
  private written: string[] = [];
  private pixels: Pixels | null = null;

  constructor(readonly canvas: { width: number; height: number }) {
    Object.assign(this, FRESH);
  }

  /** What was drawn. */
  svg(): string {
    return this.written.join("");
  }

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, lineJoin, lineCap, font } = this;
    const { textAlign, textBaseline, globalAlpha, dash, matrix, clipped } = this;
    const colors = { fillStyle, strokeStyle, lineWidth, lineJoin, lineCap, font };
    this.saved.push({ ...colors, textAlign, textBaseline, globalAlpha, dash, matrix, clipped });
  }

  restore(): void {
    Object.assign(this, this.saved.pop());
  }

  private transform(...by: Matrix): void {
    const [a, b, c, d, e, f] = this.matrix;
    const [p, q, r, s, t, u] = by;
    this.matrix = [a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * t + c * u + e, b * t + d * u + f];
  }

  translate(x: number, y: number): void {
    this.transform(1, 0, 0, 1, x, y);
  }

  scale(x: number, y: number): void {
    this.transform(x, 0, 0, y, 0, 0);
  }

  rotate(angle: number): void {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.transform(cos, sin, -sin, cos, 0, 0);
  }

  private placed(): string {
    const [a, b, c, d, e, f] = this.matrix;
    const isPlain = a === 1 && b === 0 && c === 0 && d === 1 && e === 0 && f === 0;
    return isPlain ? "" : ` transform="matrix(${this.matrix.map((one) => Math.round(one * 1e4) / 1e4).join(" ")})"`;
  }

  private write(element: string): void {
    this.written.push(this.clipped ? `<g clip-path="url(#${this.clipped})">${element}</g>` : element);
  }

  setLineDash(dash: number[]): void {
    this.dash = dash;
  }

  beginPath(): void {
    this.path = new Path();
  }

  moveTo(x: number, y: number): void {
    this.path.moveTo(x, y);
  }

  lineTo(x: number, y: number): void {
    this.path.lineTo(x, y);
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.rect(x, y, width, height);
  }

  arc(x: number, y: number, radius: number): void {
    this.path.arc(x, y, radius);
  }

  closePath(): void {
    this.path.closePath();
  }

  stroke(path: Path = this.path): void {
    if (!path.d) {
      return;
    }
    const dashes = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    const ends =
      (this.lineJoin === FRESH.lineJoin ? "" : ` stroke-linejoin="${this.lineJoin}"`) +
      (this.lineCap === FRESH.lineCap ? "" : ` stroke-linecap="${this.lineCap}"`);
    const line = `${paint("stroke", this.strokeStyle, this.globalAlpha)} stroke-width="${short(this.lineWidth)}"`;
    this.write(`<path d="${path.d}" fill="none"${line}${ends}${dashes}${this.placed()}/>`);
  }

  fill(path: Path = this.path): void {
    if (path.d) {
      this.write(`<path d="${path.d}"${paint("fill", this.fillStyle, this.globalAlpha)}${this.placed()}/>`);
    }
  }

  /** Only what is inside of the path is seen until the state before is restored. */
  clip(path: Path = this.path): void {
    const id = `clip-${clips++}`;
    const outer = this.clipped ? ` clip-path="url(#${this.clipped})"` : "";
    this.written.push(`<clipPath id="${id}"${outer}><path d="${path.d}"${this.placed()}/></clipPath>`);
    this.clipped = id;
  }

  /** Charts clear all of it or nothing. */
  clearRect(): void {
    this.written = [];
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    const path = new Path();
    path.rect(x, y, width, height);
    this.fill(path);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const path = new Path();
    path.rect(x, y, width, height);
    this.stroke(path);
  }

  private get size(): number {
    return Number(/([\d.]+)px/.exec(this.font)?.[1] ?? 10);
  }

  measureText(words: string): { width: number } {
    return { width: textWidth(words, this.size) };
  }

  fillText(words: string, x: number, y: number): void {
    const down = (BASELINES[this.textBaseline] ?? 0) * this.size;
    const anchor = ANCHORS[this.textAlign];
    const drawn = text(words, x, y + down, this.size, this.fillStyle);
    const more = (anchor ? ` text-anchor="${anchor}"` : "") + this.placed();
    this.write(drawn.replace("<text", `<text${more}`));
  }

  createImageData(width: number, height: number): Pixels {
    return { width, height, data: new Uint8ClampedArray(width * height * 4) };
  }

  putImageData(pixels: Pixels): void {
    this.pixels = pixels;
  }

  /** Of another canvas that has pixels. */
  drawImage(other: { getContext(): Canvas }, x: number, y: number, width: number, height: number): void {
    const { pixels } = other.getContext();
    if (pixels) {
      const file = encodePng(new Uint8Array(pixels.data.buffer), pixels.width, pixels.height);
      const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
      const href = `href="data:image/png;base64,${file}"`;
      this.write(`<image ${place} preserveAspectRatio="none"${this.placed()} ${href}/>`);
    }
  }
}
