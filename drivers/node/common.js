// What both Node.js drivers share: options, clock, barrier, pacing, stamps, and what a consumer has seen.
'use strict';

const { subscribe } = require('node:diagnostics_channel');
const fs = require('node:fs');
const readline = require('node:readline');
const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');

const CONTRACT = 1;
const NO_BATCH = 0xffffffff;
const PRODUCER_SHIFT = 40n;
const POSITION_LOST = 136;
// Pings before `ready`, one after the other: each driver starts as warm as the others.
const PINGS = 100;
// Missing numbers that a filter names one by one; what is missing below them is asked for as a range.
const NAMED = 4096;
// Numbers in one word of the record of what came.
const WORD = 32;
const FULL = 0xffffffff;
// Failed inserts that are told one by one.
const TOLD = 20;
// Timers have whole milliseconds and may be one late: this long before an intended start the event loop is only turned.
const TIMER_NS = 2_000_000n;
// After a request to stop, inserts in flight have this long to be answered.
const GRACE_MS = 2000;
const RECORD_BYTES = 32;
// A tailable cursor that is opened while inserts run may skip some of them (seen with the embedded server):
// so long after the opening what is missing is asked for.
const CATCH_UP_NS = 100_000_000n;
// While a cursor is silent, what is missing is asked for so often.
const ASK_EVERY_NS = 1_000_000_000n;
// So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind.
const BLIND_AFTER_NS = 100_000_000n;

class Usage extends Error {}

// mongodb 7.9.0 never ends an operation that it writes after the server closed the connection and before Node.js says
// `close`: it waits for a dead socket to drain. So the end is made an error, of which the driver knows at once.
subscribe('net.client.socket', ({ socket }) => {
  socket.once('end', () => socket.destroy(new Error('the server closed the connection')));
});

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
  return { maxPoolSize: options.pool, waitQueueTimeoutMS: 0, appName: 'dyno', ...selection };
}

async function warmUp(client) {
  for (let ping = 0; ping < PINGS; ping += 1) await client.db('admin').command({ ping: 1 });
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

  /** False if the wait was ended by a request to stop. */
  async waitUntil(clock, atNs) {
    for (let left = atNs - clock(); left > 0n && !this.stopping; left = atNs - clock()) {
      await (left > TIMER_NS ? sleep(Math.min(100, Number(left - TIMER_NS) / 1e6)) : turn());
    }
    return !this.stopping;
  }
}

/** Records of 32 bytes; on disk at the latest after a second. */
class Stamps {
  sent = 0;
  failed = 0;
  closed = false;

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

  /** Whether the error is one of those to tell. */
  produced(n, intendedNs, sendNs, endedNs, error) {
    if (this.closed) return false;
    const at = this.reserve();
    this.buffer.writeBigUInt64LE(n, at);
    this.buffer.writeBigInt64LE(intendedNs, at + 8);
    this.buffer.writeBigInt64LE(sendNs, at + 16);
    this.buffer.writeBigInt64LE(error ? -endedNs : endedNs, at + 24);
    if (!error) this.sent += 1;
    else this.failed += 1;
    return Boolean(error) && this.failed <= TOLD;
  }

  /** Acknowledged and failed inserts. Those that are answered later have no stamp and are not counted. */
  close() {
    this.closed = true;
    this.flush();
    return { messages: this.sent, failed: this.failed };
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

/** Whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md. */
class Sight {
  askedNs = 0n;

  opened(nowNs) {
    // What was sent later cannot have been skipped.
    this.afterNs = nowNs + CATCH_UP_NS;
    this.heard(0n, nowNs);
  }

  /** The cursor has brought a message. */
  heard(sentNs, nowNs) {
    this.heardNs = nowNs;
    if (sentNs > this.afterNs) this.afterNs = sentNs;
    // Messages that queries found since then, the start of the oldest, and when one was found that proves something.
    this.missed = 0;
    this.missedNs = nowNs;
    this.suspectNs = undefined;
  }

  /** Whether it is time for a query; the cursor is silent. */
  asks(nowNs) {
    if (nowNs - this.askedNs < ASK_EVERY_NS) return false;
    this.askedNs = nowNs;
    return true;
  }

  /** A query found a message that the cursor has not brought. */
  found(sentNs, nowNs) {
    const missedNs = sentNs > this.heardNs ? sentNs : this.heardNs;
    if (this.missed === 0 || missedNs < this.missedNs) this.missedNs = missedNs;
    this.missed += 1;
    if (sentNs > this.afterNs) this.suspectNs ??= nowNs;
  }

  /** The cursor, asked after the last query, has answered with nothing. */
  isBlind(nowNs) {
    return this.suspectNs !== undefined && nowNs - this.suspectNs >= BLIND_AFTER_NS;
  }

  /** Why the cursor is opened again. */
  lost(nowNs) {
    const message = 'the cursor did not bring what queries found';
    return { reason: 'blind', code: null, message, blind_ns: Number(nowNs - this.missedNs), found: this.missed };
  }
}

/** What came of one producer: one bit for each number, in words; a word of which nothing came is not there. */
class Progress {
  newest = -1;
  came = new Map();

  /** False if it came before. */
  mark(n) {
    const word = Math.floor(n / WORD);
    const bit = 2 ** (n % WORD);
    const came = this.came.get(word) ?? 0;
    this.newest = Math.max(this.newest, n);
    if ((came & bit) !== 0) return false;
    this.came.set(word, (came | bit) >>> 0);
    return true;
  }

  /** The newest of those that were overtaken, and the number below which there may be more. */
  overtaken() {
    const missing = [];
    for (let upper = this.newest; upper >= 0; upper -= (upper % WORD) + 1) {
      const came = this.came.get(Math.floor(upper / WORD)) ?? 0;
      for (let bit = upper % WORD; bit >= 0 && came !== FULL; bit -= 1) {
        if ((came & (2 ** bit)) !== 0) continue;
        missing.push(upper - (upper % WORD) + bit);
        if (missing.length === NAMED) return { missing, below: missing.at(-1) };
      }
    }
    return { missing, below: 0 };
  }
}

/** Which messages came, and the filter for those that did not: inserts in flight overtake each other. */
class Seen {
  count = 0;
  duplicates = 0;
  producers = new Map();
  /** The `_id` of what a query found before the cursor brought it. */
  queried = new Set();

  /** Of messages whose number has the remainder `share.index` by `share.of`: those alone come, and are counted on from 0. */
  constructor(share) {
    this.share = share;
  }

  /**
   * Whether the message is new. What the cursor brings after a query found it is no duplicate, and what a query finds
   * again is none either.
   */
  accept(producer, number, byQuery) {
    if (!this.producers.has(producer)) this.producers.set(producer, new Progress());
    const id = (BigInt(producer) << PRODUCER_SHIFT) + number;
    if (this.producers.get(producer).mark((Number(number) - this.share.index) / this.share.of)) {
      if (byQuery) this.queried.add(id);
      this.count += 1;
      return true;
    }
    if (!byQuery && !this.queried.delete(id)) this.duplicates += 1;
    return false;
  }

  /** What queries found and no cursor brought. */
  get caughtUp() {
    return this.queried.size;
  }

  /** Everything but what came; without `newer` only what was overtaken. */
  filter(newer = true) {
    const { index, of } = this.share;
    const shared = of > 1 ? { n: { $mod: [of, index] } } : {};
    if (this.producers.size === 0) return shared;
    const number = (counted) => BigInt(counted) * BigInt(of) + BigInt(index);
    const clauses = [];
    const overtaken = [];
    let above = {};
    for (const [producer, state] of [...this.producers].sort(([a], [b]) => a - b)) {
      const first = BigInt(producer) << PRODUCER_SHIFT;
      if (newer && first > 0n) clauses.push({ _id: { ...above, $lt: first } });
      above = { $gt: first + number(state.newest) };
      const { missing, below } = state.overtaken();
      for (const n of missing) overtaken.push(first + number(n));
      if (below > 0) clauses.push({ _id: { $gte: first, $lt: first + number(below) } });
    }
    if (newer) clauses.push({ _id: above });
    return { ...shared, $or: [...clauses, { _id: { $in: overtaken } }] };
  }
}

module.exports = {
  CONTRACT, NO_BATCH, PRODUCER_SHIFT, POSITION_LOST, GRACE_MS, PRODUCE, CONSUME, CATCH_UP_NS, Usage, Control, Stamps, Seen, Sight,
  parse, makeClock, clientOptions, warmUp, loadSchedule, padding, emit, fail, sleep,
};
