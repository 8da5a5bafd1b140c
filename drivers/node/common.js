// Shared code of both Node.js drivers: options, clock, barrier, pacing, stamps, and received messages.
'use strict';

const { subscribe } = require('node:diagnostics_channel');
const fs = require('node:fs');
const readline = require('node:readline');
const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');

const CONTRACT = 1;
const NO_BATCH = 0xffffffff;
const PRODUCER_SHIFT = 40n;
const POSITION_LOST = 136;
// Pings before `ready`, one after the other, so that all drivers start equally warm.
const PINGS = 100;
// Largest number of missing messages that a filter lists one by one; lower ones are requested as a range.
const NAMED = 4096;
// Numbers in one word of the record of received messages.
const WORD = 32;
const FULL = 0xffffffff;
// Largest number of failed inserts with an event each.
const MAX_REPORTED = 20;
// Timers have whole milliseconds and may be one late, so the event loop spins for this long before an intended start.
const TIMER_NS = 2_000_000n;
// Time for answers to inserts in flight after a stop request.
const GRACE_MS = 2000;
const RECORD_BYTES = 32;
// A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages are
// requested this long after the opening.
const CATCH_UP_NS = 100_000_000n;
// Interval of queries for missing messages while a cursor is silent.
const ASK_EVERY_NS = 1_000_000_000n;
// A cursor is blind if it still returns nothing this long after a query found messages that it missed.
const BLIND_AFTER_NS = 100_000_000n;

class Usage extends Error {}

// mongodb 7.9.0 never ends an operation that it writes after the server closed the connection and before Node.js
// emits `close`: it waits for a dead socket to drain. Turn the end into an error, which the driver notices at once.
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

/** CLOCK_MONOTONIC, or CLOCK_REALTIME as read at program start, in ns. */
function makeClock(name) {
  if (name === 'monotonic') return process.hrtime.bigint;
  const offset = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6)) - process.hrtime.bigint();
  return () => process.hrtime.bigint() + offset;
}

/** Client options in addition to the connection string. */
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

/** Padding; the same bytes in every driver. */
function padding(size) {
  const pad = Buffer.alloc(size);
  let state = 42;
  for (let at = 0; at < size; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pad[at] = state >>> 24;
  }
  return pad;
}

// Written synchronously, because process.exit does not wait for a pipe.
const emit = (event) => fs.writeSync(1, `${JSON.stringify(event)}\n`);

function fail(code, message) {
  fs.writeSync(2, `${String(message).replace(/\s+/g, ' ')}\n`);
  process.exit(code);
}

/** The barrier on standard input, and all stop requests. */
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

  /** Reports readiness, and waits for the start. */
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
      // Without a start, nothing is sent.
      lines.on('close', () => this.startNs === undefined && process.exit(0));
    });
  }

  /** False if a stop request ended the wait. */
  async waitUntil(clock, atNs) {
    for (let left = atNs - clock(); left > 0n && !this.stopping; left = atNs - clock()) {
      await (left > TIMER_NS ? sleep(Math.min(100, Number(left - TIMER_NS) / 1e6)) : turn());
    }
    return !this.stopping;
  }
}

/** Stamps: records of 32 bytes, on disk after at most a second. */
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

  /** Whether to report this error as an event. */
  produced(n, intendedNs, sendNs, endedNs, error) {
    if (this.closed) return false;
    const at = this.reserve();
    this.buffer.writeBigUInt64LE(n, at);
    this.buffer.writeBigInt64LE(intendedNs, at + 8);
    this.buffer.writeBigInt64LE(sendNs, at + 16);
    this.buffer.writeBigInt64LE(error ? -endedNs : endedNs, at + 24);
    if (!error) this.sent += 1;
    else this.failed += 1;
    return Boolean(error) && this.failed <= MAX_REPORTED;
  }

  /** Acknowledged and failed inserts. Later answers have no stamp and are not counted. */
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

/** Detects blind tailable cursors; see "Blind cursors" in drivers/README.md. */
class Sight {
  askedNs = 0n;

  opened(nowNs) {
    // Messages sent later cannot have been skipped.
    this.afterNs = nowNs + CATCH_UP_NS;
    this.heard(0n, nowNs);
  }

  /** Records that the cursor returned a message. */
  heard(sentNs, nowNs) {
    this.heardNs = nowNs;
    if (sentNs > this.afterNs) this.afterNs = sentNs;
    // Messages that queries found since then, the send time of the oldest, and when a conclusive one was found.
    this.missed = 0;
    this.missedNs = nowNs;
    this.suspectNs = undefined;
  }

  /** Whether it is time for a query while the cursor is silent. */
  asks(nowNs) {
    if (nowNs - this.askedNs < ASK_EVERY_NS) return false;
    this.askedNs = nowNs;
    return true;
  }

  /** Records that a query found a message that the cursor did not return. */
  found(sentNs, nowNs) {
    const missedNs = sentNs > this.heardNs ? sentNs : this.heardNs;
    if (this.missed === 0 || missedNs < this.missedNs) this.missedNs = missedNs;
    this.missed += 1;
    if (sentNs > this.afterNs) this.suspectNs ??= nowNs;
  }

  /** Whether the cursor, which returned nothing since the last query, is blind. */
  isBlind(nowNs) {
    return this.suspectNs !== undefined && nowNs - this.suspectNs >= BLIND_AFTER_NS;
  }

  /** Reason for opening the cursor again. */
  lost(nowNs) {
    const message = 'the cursor did not return messages that queries found';
    return { reason: 'blind', code: null, message, blind_ns: Number(nowNs - this.missedNs), found: this.missed };
  }
}

/** Received messages of one producer: one bit for each number, in words; empty words are omitted. */
class Progress {
  newest = -1;
  came = new Map();

  /** False if it was received before. */
  mark(n) {
    const word = Math.floor(n / WORD);
    const bit = 2 ** (n % WORD);
    const came = this.came.get(word) ?? 0;
    this.newest = Math.max(this.newest, n);
    if ((came & bit) !== 0) return false;
    this.came.set(word, (came | bit) >>> 0);
    return true;
  }

  /** The newest overtaken messages, and the number below which there may be more. */
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

/** Received messages, and the filter for missing ones: inserts in flight overtake each other. */
class Seen {
  count = 0;
  duplicates = 0;
  producers = new Map();
  /** The `_id` of messages that a query found before the cursor returned them. */
  queried = new Set();

  /** Covers only messages with number modulo `share.of` equal to `share.index`, renumbered from 0. */
  constructor(share) {
    this.share = share;
  }

  /**
   * Whether the message is new. A message that the cursor returns after a query found it, or that a query finds
   * again, does not count as a duplicate.
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

  /** Messages that queries found and no cursor returned. */
  get caughtUp() {
    return this.queried.size;
  }

  /** Filter for all missing messages; without `newer`, only for overtaken ones. */
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
