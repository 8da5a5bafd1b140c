// What both Node.js drivers share: options, clock, barrier, pacing, stamps, and what a consumer has seen.
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const CONTRACT = 1;
const NO_BATCH = 0xffffffff;
const PRODUCER_SHIFT = 40n;
const POSITION_LOST = 136;
// Numbers below the newest that a consumer still expects, for each producer: more than any pool reorders.
const WINDOW = 4096n;
const SPIN_NS = 50_000n;
// After a request to stop, inserts in flight have this long to be answered.
const GRACE_MS = 2000;
const RECORD_BYTES = 32;

class Usage extends Error {}

const whole = (low, high) => (text) => {
  if (!/^[0-9]+$/.test(text) || Number(text) < low || Number(text) > high) {
    throw new Usage(`must be a whole number from ${low} to ${high}`);
  }
  return Number(text);
};
const seconds = (text) => {
  if (!(Number(text) > 0 && Number(text) < 1e9)) throw new Usage('must be above 0');
  return Number(text);
};
const oneOf = (...words) => (text) => {
  if (!words.includes(text)) throw new Usage(`must be one of ${words.join(', ')}`);
  return text;
};
const text = (value) => value;
const required = Symbol('required');
const MOST_MESSAGES = 2 ** 40 - 1;

const COMMON = {
  database: [text, required],
  collection: [text, required],
  output: [text, required],
  messages: [whole(0, MOST_MESSAGES), required],
  pool: [whole(1, 100_000), 100],
  clock: [oneOf('monotonic', 'realtime'), 'monotonic'],
};
const PRODUCE = {
  ...COMMON,
  producer: [whole(0, 65535), 0],
  first: [whole(0, MOST_MESSAGES), 0],
  size: [whole(0, 16_000_000), 0],
  'in-flight': [(value) => (value === 'unbounded' ? Infinity : whole(1, 1_000_000)(value)), 1],
  'write-concern': [(value) => (value === 'majority' ? value : whole(0, 50)(value)), 1],
  journal: [(value) => oneOf('true', 'false')(value) === 'true', undefined],
  schedule: [text, undefined],
};
const CONSUME = {
  ...COMMON,
  mode: [oneOf('tailable', 'change-stream', 'poll'), 'tailable'],
  producers: [whole(1, 65536), 1],
  'await-ms': [whole(1, 3_600_000), 1000],
  'batch-size': [whole(1, 1_000_000), undefined],
  'poll-ms': [whole(0, 3_600_000), 1],
  'idle-s': [seconds, 30],
  'delay-us': [whole(0, 1_000_000_000), 0],
};

/** Options by name, in camel case. */
function parse(argv, known) {
  const options = {};
  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  for (const [name, [, value]] of Object.entries(known)) options[camel(name)] = value;
  for (let at = 0; at < argv.length; at += 2) {
    const name = argv[at].replace(/^--/, '');
    if (!argv[at].startsWith('--') || !Object.hasOwn(known, name)) {
      throw new Usage(`unknown option \`${argv[at]}\``);
    }
    if (at + 1 === argv.length) throw new Usage(`option \`--${name}\` needs a value`);
    try {
      options[camel(name)] = known[name][0](argv[at + 1]);
    } catch (error) {
      throw new Usage(`option \`--${name}\`: \`${argv[at + 1]}\` ${error.message}`);
    }
  }
  for (const name of Object.keys(known)) {
    if (options[camel(name)] === required) throw new Usage(`option \`--${name}\` is missing`);
  }
  options.uri = process.env.DYNO_URI;
  if (!options.uri) throw new Usage('the environment variable DYNO_URI is missing');
  return options;
}

/** CLOCK_MONOTONIC, or CLOCK_REALTIME as it was when the program started, in ns. */
function makeClock(name) {
  if (name === 'monotonic') return process.hrtime.bigint;
  const offset = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6)) - process.hrtime.bigint();
  return () => process.hrtime.bigint() + offset;
}

/** Options of the client that the connection string does not have. */
function clientOptions(options) {
  const selection = /serverselectiontimeoutms/i.test(options.uri) ? {} : { serverSelectionTimeoutMS: 5000 };
  return { maxPoolSize: options.pool, appName: 'dyno', ...selection };
}

/** Intended starts in ns after the start instant, undefined for a closed loop. */
function loadSchedule(options) {
  if (options.schedule === undefined) return undefined;
  try {
    const data = fs.readFileSync(options.schedule);
    const schedule = new BigUint64Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
    if (schedule.length >= options.messages) return schedule;
    throw new Usage(`${schedule.length} entries for ${options.messages} messages`);
  } catch (error) {
    throw new Usage(`option \`--schedule\`: ${error.message}`);
  }
}

/** The same bytes in every driver. */
function padding(size) {
  const pad = Buffer.alloc(size);
  let state = 42;
  for (let at = 0; at < size; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pad[at] = state >>> 24;
  }
  return pad;
}

// Written at once: process.exit does not wait for a pipe.
const emit = (event) => fs.writeSync(1, `${JSON.stringify(event)}\n`);

function fail(code, message) {
  fs.writeSync(2, `${String(message).replace(/\s+/g, ' ')}\n`);
  process.exit(code);
}

/** The barrier on standard input, and every reason to stop. */
class Control {
  startNs = undefined;
  stopping = false;
  exitCode = 0;
  onStop = () => {};

  constructor({ signals } = { signals: true }) {
    for (const signal of signals ? ['SIGINT', 'SIGTERM'] : []) process.on(signal, () => this.stop(130));
  }

  stop(code) {
    if (this.startNs === undefined) process.exit(code);
    this.exitCode = code;
    this.stopping = true;
    this.onStop();
  }

  /** Says that all is open, and waits for the start. */
  ready() {
    fs.writeSync(1, 'ready\n');
    return new Promise((resolve) => {
      const lines = readline.createInterface({ input: process.stdin });
      lines.on('line', (line) => {
        const words = line.trim().split(/\s+/);
        if (words[0] === 'start' && words.length === 2 && this.startNs === undefined) {
          this.startNs = BigInt(words[1]);
          resolve();
        } else if (line.trim() === 'stop') {
          this.stop(0);
        }
      });
      // Without a start nothing is sent.
      lines.on('close', () => this.startNs === undefined && process.exit(0));
    });
  }

  /** False if the wait was ended by a request to stop. Timers have whole milliseconds and may be one late. */
  async waitUntil(clock, atNs) {
    for (let left = atNs - clock(); left > 0n && !this.stopping; left = atNs - clock()) {
      if (left > SPIN_NS) await sleep(Math.min(100, Math.ceil(Number(left) / 1e6)));
    }
    return !this.stopping;
  }
}

/** Records of 32 bytes; on disk at the latest after a second. */
class Stamps {
  constructor(path) {
    try {
      this.file = fs.openSync(path, 'w');
    } catch (error) {
      throw new Usage(`option \`--output\`: ${error.message}`);
    }
    this.buffer = Buffer.alloc(2048 * RECORD_BYTES);
    this.length = 0;
    setInterval(() => this.flush(), 500).unref();
  }

  flush() {
    this.write(this.buffer.subarray(0, this.length));
    this.length = 0;
  }

  write(records) {
    for (let at = 0; at < records.length; ) at += fs.writeSync(this.file, records, at);
  }

  reserve() {
    if (this.length === this.buffer.length) this.flush();
    this.length += RECORD_BYTES;
    return this.length - RECORD_BYTES;
  }

  produced(n, intendedNs, sendNs, acknowledgedNs) {
    const at = this.reserve();
    this.buffer.writeBigUInt64LE(n, at);
    this.buffer.writeBigInt64LE(intendedNs, at + 8);
    this.buffer.writeBigInt64LE(sendNs, at + 16);
    this.buffer.writeBigInt64LE(acknowledgedNs, at + 24);
  }

  consumed(n, sendNs, receivedNs, producer, batch) {
    const at = this.reserve();
    this.buffer.writeBigUInt64LE(n, at);
    this.buffer.writeBigInt64LE(sendNs, at + 8);
    this.buffer.writeBigInt64LE(receivedNs, at + 16);
    this.buffer.writeUInt32LE(producer, at + 24);
    this.buffer.writeUInt32LE(batch, at + 28);
  }
}

/** Which messages came, and the filter for those that did not: inserts in flight overtake each other. */
class Seen {
  count = 0;
  duplicates = 0;
  producers = new Map();

  /** Whether the message is new. */
  accept(producer, n) {
    if (!this.producers.has(producer)) this.producers.set(producer, { newest: -1n, missing: new Set() });
    const state = this.producers.get(producer);
    if (n > state.newest) {
      const oldest = n > WINDOW ? n - WINDOW : 0n;
      for (let at = state.newest + 1n > oldest ? state.newest + 1n : oldest; at < n; at += 1n) state.missing.add(at);
      state.newest = n;
      // A set gives its members in the order they were added, the oldest first.
      while (state.missing.size > WINDOW) state.missing.delete(state.missing.values().next().value);
    } else if (!state.missing.delete(n)) {
      this.duplicates += 1;
      return false;
    }
    this.count += 1;
    return true;
  }

  /** Everything but what came; without `newer` only what was overtaken. */
  filter(newer = true) {
    if (this.producers.size === 0) return {};
    const clauses = [];
    const missing = [];
    let above = {};
    for (const [producer, state] of [...this.producers].sort(([a], [b]) => a - b)) {
      const first = BigInt(producer) << PRODUCER_SHIFT;
      if (newer && first > 0n) clauses.push({ _id: { ...above, $lt: first } });
      above = { $gt: first + state.newest };
      for (const n of state.missing) missing.push(first + n);
    }
    if (newer) clauses.push({ _id: above });
    if (missing.length > 0 || !newer) clauses.push({ _id: { $in: missing } });
    return clauses.length === 1 ? clauses[0] : { $or: clauses };
  }
}

module.exports = {
  CONTRACT, NO_BATCH, PRODUCER_SHIFT, POSITION_LOST, GRACE_MS, PRODUCE, CONSUME, Usage, Control, Stamps, Seen,
  parse, makeClock, clientOptions, loadSchedule, padding, emit, fail, sleep,
};
