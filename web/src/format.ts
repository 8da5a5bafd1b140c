// Numbers on axes and in legends. The Rust code formats the tables of the page.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Three significant digits without an exponent. */
function digits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 100 || magnitude === 0) {
    return value.toFixed(0);
  }
  return value.toFixed(magnitude >= 10 ? 1 : 2);
}

/** As short as an axis wants it: `50 ms` and not `50.0 ms`. */
function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function scaled(us: number, write: (value: number) => string): string {
  // The thresholds are below the powers of ten by the amount that rounding to three digits adds.
  if (us >= 999_500) return `${write(us / 1_000_000)} s`;
  if (us >= 999.5) return `${write(us / 1_000)} ms`;
  if (us >= 0.9995 || us === 0) return `${write(us)} µs`;
  return `${write(us * 1_000)} ns`;
}

/** A latency in a legend: `1.23 ms`. */
export function latency(us: number): string {
  return scaled(us, digits);
}

/** A latency on an axis: `50 ms`. */
export function latencyTick(us: number): string {
  return scaled(us, short);
}

/** A rate in a legend: `103,412/s`. */
export function rate(perSecond: number): string {
  const text = perSecond >= 1_000 ? grouped.format(perSecond) : digits(perSecond);
  return `${text}/s`;
}

/** A rate on an axis: `100 k`. */
export function rateTick(perSecond: number): string {
  if (perSecond >= 1_000_000) return `${short(perSecond / 1_000_000)} M`;
  if (perSecond >= 10_000) return `${short(perSecond / 1_000)} k`;
  return perSecond >= 1_000 ? grouped.format(perSecond) : short(perSecond);
}

/** A number of things in a legend: `1,024`, or `12.5` between two of them. */
export function count(value: number): string {
  return value >= 1_000 ? grouped.format(value) : short(value);
}

/** A share in a legend: `12.3 %`. */
export function share(ratio: number): string {
  return `${short(ratio * 100)} %`;
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A size in powers of 1024, such as `12.3 MiB`. */
export function bytes(size: number): string {
  let power = 0;
  // The bound is below 1024 by the amount that rounding to three digits adds.
  while (power < SIZES.length - 1 && Math.abs(size) / 1024 ** power >= 1_000) {
    power += 1;
  }
  return `${short(size / 1024 ** power)} ${SIZES[power]}`;
}

/** A size per second: `12.3 MiB/s`. */
export function bytesRate(size: number): string {
  return `${bytes(size)}/s`;
}

/** A time on the axis: `30 s`, `2:30`, `1:05:00`. */
export function clock(seconds: number, longest: number): string {
  if (longest < 120) {
    return `${short(seconds)} s`;
  }
  const whole = Math.round(seconds);
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60;
  const rest = `${two(minutes)}:${two(whole % 60)}`;
  return longest < 3_600 ? rest : `${Math.floor(whole / 3_600)}:${rest}`;
}

/** The percentile of `1 / (1 - quantile)`: 1000 is `99.9 %`. */
export function percentile(inverse: number): string {
  if (inverse <= 1) {
    return "0 %";
  }
  // One digit per nine, and one more for levels between two of them.
  const nines = Math.log10(inverse);
  const decimals = Math.max(0, Math.ceil(nines - 1e-6) - 2);
  const isNines = Math.abs(nines - Math.round(nines)) < 1e-6;
  const percent = 100 * (1 - 1 / inverse);
  return `${percent.toFixed(isNines || inverse === 2 ? decimals : decimals + 2)} %`;
}
