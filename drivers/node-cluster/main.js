// Producer of `dyno tail` on the Node.js driver, its messages divided over worker processes.
'use strict';

const cluster = require('node:cluster');
const os = require('node:os');
const common = require('../node/common.js');
const { Producer } = require('../node/producer.js');

const FLUSH_MS = 100;

/** The part of `total` that the worker gets: parts differ by one at most. */
const part = (total, { index, of }) => Math.floor(total / of) + (index < total % of ? 1 : 0);

/** Where a worker puts its stamps: they go to the primary process in pieces. */
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
  const { options: given, share } = JSON.parse(process.env.DYNO_SHARE);
  const inFlight = given.inFlight === null ? Infinity : part(given.inFlight, share);
  const options = { ...given, inFlight, pool: Math.max(1, part(given.pool, share)) };
  const control = new common.Control({ signals: false });
  const stamps = new Forwarded();
  const producer = new Producer(options, control, stamps, (failed) => process.send({ failed }), share);
  await producer.open().catch((error) => {
    process.send({ unreachable: error.message }, () => process.exit(4));
    return new Promise(() => {});
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
  await producer.run();
  process.send({ done: stamps.close() }, () => process.exit(0));
}

/** As many workers as there are processors, but no more than inserts in flight or connections are allowed. */
function workerCount(options) {
  const wanted = Number(process.env.DYNO_DRIVER_WORKERS) || Math.max(2, os.availableParallelism());
  return Math.max(1, Math.min(wanted, options.inFlight, options.pool));
}

async function primary(argv) {
  const options = common.parse(argv, common.PRODUCE);
  common.loadSchedule(options);
  const stamps = new common.Stamps(options.output);
  const control = new common.Control();
  const of = workerCount(options);
  const total = { messages: 0, failed: 0, told: 0 };
  // A signal to the group reaches the workers, too: they are stopped by message, after their stamps.
  const workers = [];
  const finished = new Set();
  for (let index = 0; index < of; index += 1) {
    workers.push(cluster.fork({ DYNO_SHARE: JSON.stringify({ options, share: { index, of } }) }));
  }
  const broadcast = (message) => workers.forEach((each) => each.isConnected() && each.send(message));
  const ended = workers.map((each) => new Promise((resolve) => {
    each.on('message', (message) => {
      if (message.stamps) stamps.write(Buffer.from(message.stamps, 'base64'));
      if (message.failed && (total.told += 1) <= 20) common.emit({ event: 'failed', ...message.failed });
      if (message.done) {
        total.messages += message.done.messages;
        total.failed += message.done.failed;
        finished.add(each);
        resolve();
      }
    });
    each.on('exit', (code, signal) => {
      const check = () => finished.has(each) || common.fail(1, `a worker was ended early, by ${signal ?? `exit code ${code}`}`);
      // Its last messages may still be on their way.
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
  await Promise.all(ended);
  common.emit({ event: 'done', messages: total.messages, failed: total.failed, workers: of });
  process.exit(control.exitCode);
}

async function main(role, argv) {
  if (cluster.isWorker) {
    // The primary process decides what a signal means.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
    return worker();
  }
  if (role === 'version') return require('../node/main.js').version('mongodb-cluster', ['produce']);
  if (role !== 'produce') common.fail(2, `\`${role}\` is not one of version, produce`);
  try {
    await primary(argv);
  } catch (error) {
    common.fail(error instanceof common.Usage ? 2 : 1, error.message);
  }
}

main(process.argv[2], process.argv.slice(3));
