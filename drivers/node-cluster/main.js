// Producer and consumer of `dyno tail` on the Node.js driver, with messages divided over worker processes.
'use strict';

const cluster = require('node:cluster');
const os = require('node:os');
const common = require('../node/common.js');
const { Consumer } = require('../node/consumer.js');
const { Producer } = require('../node/producer.js');

const FLUSH_MS = 100;
const LOOK_MS = 20;
const RECORD_BYTES = 32;
const MAX_REPORTED = 20;

/** The worker's part of `total`; parts differ by at most one. */
const part = (total, { index, of }) => Math.floor(total / of) + (index < total % of ? 1 : 0);

const ROLES = { produce: common.PRODUCE, consume: common.CONSUME };

/** A worker's stamps, which go to the primary process in pieces. */
class Forwarded extends common.Stamps {
  constructor() {
    super('/dev/null');
    setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  write(records) {
    if (records.length > 0) process.send({ stamps: Buffer.from(records).toString('base64') });
  }
}

async function worker() {
  const { role, options: given, share } = JSON.parse(process.env.DYNO_SHARE);
  const options = { ...given, pool: Math.max(1, part(given.pool, share)) };
  const control = new common.Control({ signals: false });
  const stamps = new Forwarded();
  const send = (event) => (fields) => process.send({ event: { event, ...fields } });
  let program;
  if (role === 'produce') {
    options.inFlight = given.inFlight === null ? Infinity : part(given.inFlight, share);
    program = new Producer(options, control, stamps, send('failed'), share);
  } else {
    // Only the primary process knows when everything was received, or nothing for too long.
    Object.assign(options, { messages: Infinity, idleS: Infinity });
    program = new Consumer(options, control, stamps, send('reopened'), share);
    // Duplicates and long work do not count as idle time.
    setInterval(() => {
      if (program.lastNs) process.send({ lastNs: String(program.isWorking ? program.clock() : program.lastNs) });
    }, FLUSH_MS).unref();
  }
  await program.open().catch((error) => {
    process.send({ unreachable: error.message }, () => process.exit(4));
    return new Promise(() => {});
  });
  const stopped = new Promise((resolve) => {
    // A producer waits for its answers; a consumer need not wait for its cursor.
    if (role === 'consume') control.onStop = resolve;
  });
  const started = new Promise((resolve) => {
    process.on('message', ({ startNs, stop }) => {
      if (stop) return control.stop(0);
      control.startNs = BigInt(startNs);
      resolve();
    });
  });
  process.send({ ready: true });
  await started;
  await Promise.race([program.run(), stopped]);
  const sums = stamps.close();
  process.send({ done: role === 'produce' ? sums : program.sums() }, () => process.exit(0));
}

/** One worker per processor, but no more than allowed inserts in flight or connections. */
function workerCount(options) {
  const wanted = Number(process.env.DYNO_DRIVER_WORKERS) || Math.max(2, os.availableParallelism());
  return Math.max(1, Math.min(wanted, options.inFlight ?? Infinity, options.pool));
}

/** Stamps of all workers, and the time of the last activity; stamps beyond the requested number are dropped. */
class Received {
  messages = 0;
  lastNs = 0n;

  constructor(options, stamps) {
    Object.assign(this, { most: options.messages, stamps, clock: common.makeClock(options.clock) });
  }

  take(records) {
    const piece = records.subarray(0, (this.most - this.messages) * RECORD_BYTES);
    this.stamps.write(piece);
    this.messages += piece.length / RECORD_BYTES;
  }

  /** Records a worker's activity at this instant. */
  isHeard(ns) {
    if (ns > this.lastNs) this.lastNs = ns;
  }

  isComplete() {
    return this.messages >= this.most;
  }

  isIdle(idleS) {
    return Number(this.clock() - this.lastNs) > idleS * 1e9;
  }
}

async function primary(role, argv) {
  const options = common.parse(argv, ROLES[role]);
  common.loadSchedule(options);
  const received = new Received(options, new common.Stamps(options.output));
  const control = new common.Control();
  const of = workerCount(options);
  const total = {};
  let reported = 0;
  // A signal to the group also reaches the workers; they are stopped by a message, after their stamps.
  const workers = [];
  const finished = new Set();
  for (let index = 0; index < of; index += 1) {
    workers.push(cluster.fork({ DYNO_SHARE: JSON.stringify({ role, options, share: { index, of } }) }));
  }
  const broadcast = (message) => workers.forEach((each) => each.isConnected() && each.send(message));
  const ended = workers.map((each) => new Promise((resolve) => {
    each.on('message', (message) => {
      if (message.lastNs) received.isHeard(BigInt(message.lastNs));
      if (message.stamps) received.take(Buffer.from(message.stamps, 'base64'));
      if (message.event && (message.event.event !== 'failed' || (reported += 1) <= MAX_REPORTED)) common.emit(message.event);
      if (message.done) {
        for (const [name, sum] of Object.entries(message.done)) total[name] = (total[name] ?? 0) + sum;
        finished.add(each);
        resolve();
      }
    });
    each.on('exit', (code, signal) => {
      const check = () => finished.has(each) || common.fail(1, `a worker was ended early, by ${signal ?? `exit code ${code}`}`);
      // Its last messages may still be in transit.
      if (each.isConnected()) each.once('disconnect', check);
      else check();
    });
  }));
  process.on('exit', () => workers.forEach((each) => each.process.kill('SIGKILL')));
  await Promise.all(workers.map((each) => new Promise((resolve) => {
    each.on('message', (message) => {
      if (message.unreachable) common.fail(4, `cannot use the server: ${message.unreachable}`);
      if (message.ready) resolve();
    });
  })));
  control.onStop = () => broadcast({ stop: true });
  await control.ready();
  broadcast({ startNs: String(control.startNs) });
  if (role === 'consume') {
    received.lastNs = control.startNs;
    setInterval(() => {
      if (control.stopping) return;
      if (received.isComplete()) control.stop(0);
      else if (received.isIdle(options.idleS)) control.stop(5);
    }, LOOK_MS);
  }
  await Promise.all(ended);
  // A worker's usage counts for its parent only after it was reaped.
  await Promise.all(workers.map((each) => each.isDead() || new Promise((resolve) => each.once('exit', resolve))));
  if (role === 'consume') total.messages = received.messages;
  common.emit({ event: 'done', ...total, workers: of });
  process.exit(control.exitCode);
}

async function main(role, argv) {
  if (cluster.isWorker) {
    // The primary process handles signals.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
    return worker();
  }
  if (role === 'version') return require('../node/main.js').version('mongodb-cluster');
  if (!Object.hasOwn(ROLES, role)) common.fail(2, `\`${role}\` is not one of version, produce, consume`);
  try {
    await primary(role, argv);
  } catch (error) {
    common.fail(error instanceof common.Usage ? 2 : 1, error.message);
  }
}

main(process.argv[2], process.argv.slice(3));
