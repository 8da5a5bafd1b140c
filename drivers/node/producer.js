// The producer: one event loop, inserts in flight as promises.
'use strict';

const { Binary, MongoClient } = require('mongodb');
const { setImmediate: turn } = require('node:timers/promises');
const common = require('./common.js');

// Sends of an unbounded producer after which the event loop runs.
const YIELD_EVERY = 256;

class Producer {
  inFlight = 0;
  wake = () => {};

  /** Sends the messages with index modulo `share.of` equal to `share.index`. */
  constructor(options, control, stamps, onFailed, share = { index: 0, of: 1 }) {
    Object.assign(this, { options, control, stamps, onFailed, share });
    this.clock = common.makeClock(options.clock);
    this.schedule = common.loadSchedule(options);
    this.pad = new Binary(common.padding(options.size));
  }

  async open() {
    const { options } = this;
    const client = new MongoClient(options.uri, common.clientOptions(options));
    await common.warmUp(client);
    const writeConcern = { w: options.writeConcern };
    if (options.journal !== undefined) writeConcern.journal = options.journal;
    this.collection = client.db(options.database).collection(options.collection, { writeConcern });
  }

  async run() {
    const { options, control, clock, schedule } = this;
    control.onStop = () => this.wake();
    for (let index = this.share.index; index < options.messages; index += this.share.of) {
      const dueNs = control.startNs + (schedule ? schedule[index] : 0n);
      if (clock() < dueNs && !(await control.waitUntil(clock, dueNs))) break;
      if (options.inFlight === Infinity && this.inFlight % YIELD_EVERY === 0) await turn();
      while (this.inFlight >= options.inFlight && !control.stopping) await this.change();
      if (control.stopping) break;
      const sendNs = clock();
      this.send(BigInt(options.first + index), schedule ? dueNs : sendNs, sendNs);
    }
    let over = false;
    const limit = (ms) => setTimeout(() => ((over = true), this.wake()), ms).unref();
    control.onStop = () => limit(common.GRACE_MS);
    if (control.stopping) limit(common.GRACE_MS);
    while (this.inFlight > 0 && !over) await this.change();
  }

  /** The next answer, or a stop request. */
  change() {
    return new Promise((resolve) => (this.wake = resolve));
  }

  async send(n, intendedNs, sendNs) {
    const { options } = this;
    this.inFlight += 1;
    let error;
    try {
      const _id = (BigInt(options.producer) << common.PRODUCER_SHIFT) + n;
      await this.collection.insertOne({ _id, p: options.producer, n, i: intendedNs, s: sendNs, pad: this.pad });
    } catch (caught) {
      error = caught;
    }
    const endedNs = this.clock();
    this.inFlight -= 1;
    if (this.stamps.produced(n, intendedNs, sendNs, endedNs, error)) {
      this.onFailed({ n: Number(n), code: error.code ?? null, message: error.message });
    }
    this.wake();
  }
}

module.exports = { Producer };
