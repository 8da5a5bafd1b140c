// The consumer: a tailable cursor, a change stream, or a repeated query.
'use strict';

const { MongoClient, MongoError, MongoNetworkError, MongoServerSelectionError } = require('mongodb');
const common = require('./common.js');

const EMPTY_PAUSE_MS = 5;
const BACK_OFF_FIRST_MS = 10;
const BACK_OFF_LAST_MS = 1000;

/** A cursor of any mode; `batch` counts the server's replies with messages over all cursors. */
class Source {
  static batch = 0;
  static token = undefined;

  async open(collection, options, filter, { index, of }) {
    this.number = () => Source.batch * of + index;
    const common = { batchSize: options.batchSize, useBigInt64: true };
    const waits = { ...common, maxAwaitTimeMS: options.awaitMs };
    this.isStream = options.mode === 'change-stream';
    if (this.isStream) {
      const shared = of > 1 ? { 'fullDocument.n': { $mod: [of, index] } } : {};
      const inserts = [{ $match: { operationType: 'insert', ...shared } }];
      this.cursor = collection.watch(inserts, { ...waits, ...(Source.token && { resumeAfter: Source.token }) });
    } else if (options.mode === 'tailable') {
      this.cursor = collection.find(filter, { ...waits, tailable: true, awaitData: true });
    } else {
      this.cursor = collection.find(filter, common).sort({ _id: 1 });
    }
    // The first read opens the cursor.
    this.first = await this.read();
  }

  async tryNext() {
    const first = this.first;
    this.first = undefined;
    return first ?? this.read();
  }

  async read() {
    if (this.isStream) {
      const event = await this.cursor.tryNext();
      Source.token = this.cursor.resumeToken;
      return event?.fullDocument;
    }
    if (!this.alive() && this.cursor.bufferedCount() === 0) return null;
    const isNewBatch = this.cursor.bufferedCount() === 0;
    const document = await this.cursor.tryNext();
    if (document && isNewBatch) Source.batch += 1;
    return document;
  }

  batch() {
    return this.isStream ? common.NO_BATCH : this.number();
  }

  alive() {
    return this.isStream ? !this.cursor.closed : !this.cursor.closed && !this.cursor.id?.isZero();
  }

  close() {
    return this.cursor.close().catch(() => {});
  }
}

class Consumer {
  opened = 0;
  empty = 0;
  positionLost = 0;
  lastSentNs = 0n;
  catchUpNs = undefined;
  backOffMs = BACK_OFF_FIRST_MS;
  source = undefined;

  /** Receives the messages with number modulo `share.of` equal to `share.index`. */
  constructor(options, control, stamps, onReopened, share = { index: 0, of: 1 }) {
    Object.assign(this, { options, control, stamps, onReopened, share });
    this.seen = new common.Seen(share);
    this.sight = new common.Sight();
    this.isTailable = options.mode === 'tailable';
    this.clock = common.makeClock(options.clock);
  }

  async open() {
    const { options } = this;
    const client = new MongoClient(options.uri, common.clientOptions(options));
    await common.warmUp(client);
    this.collection = client.db(options.database).collection(options.collection);
    await this.openSource(undefined);
  }

  async openSource(lost) {
    // After a lost position, read from the oldest message on.
    const seen = lost?.reason === 'position-lost' ? new common.Seen(this.share) : this.seen;
    const source = new Source();
    await source.open(this.collection, this.options, seen.filter(), this.share);
    this.source = source;
    this.opened += 1;
    const nowNs = this.clock();
    this.sight.opened(nowNs);
    this.catchUpNs = this.isTailable ? nowNs + common.CATCH_UP_NS : undefined;
  }

  async run() {
    const { options, control, clock } = this;
    const polls = options.mode === 'poll';
    const idleNs = options.idleS * 1e9;
    this.lastNs = control.startNs;
    let lost;
    let idle = false;
    while (this.seen.count < options.messages && !control.stopping) {
      let document;
      try {
        if (!this.source) {
          await this.openSource(lost);
          if (lost && !polls && !lost.reported) {
            const { reported, ...why } = lost;
            this.onReopened({ ...why, at_ns: Number(clock()) });
          }
        } else if (this.isTailable && idle && this.sight.asks(clock())) {
          await this.catchUp(true);
        } else if (this.catchUpNs && this.lastSentNs > this.catchUpNs) {
          this.catchUpNs = undefined;
          await this.catchUp(false);
        }
        document = await this.source.tryNext();
        if (!document && !this.source.alive()) lost = await this.ended(lost);
        else if (!document && this.isTailable && this.sight.isBlind(clock())) {
          await this.close();
          lost = this.sight.lost(clock());
        }
      } catch (error) {
        if (!(error instanceof MongoError)) throw error;
        lost = await this.broken(error);
      }
      idle = !document;
      if (document) {
        await this.receive(document, this.source?.batch() ?? common.NO_BATCH);
        lost = undefined;
      } else if (Number(clock() - this.lastNs) > idleNs) {
        control.exitCode = 5;
        break;
      }
    }
    return this.sums();
  }

  sums() {
    return {
      messages: this.seen.count,
      failed: 0,
      reopened: this.options.mode === 'poll' ? 0 : this.opened - 1,
      reopened_empty: this.empty,
      position_lost: this.positionLost,
      caught_up: this.seen.caughtUp,
      duplicates_skipped: this.seen.duplicates,
    };
  }

  async receive({ p, n, s }, batch, byQuery = false) {
    const receivedNs = (this.lastNs = this.clock());
    this.lastSentNs = s < receivedNs ? s : receivedNs;
    this.backOffMs = BACK_OFF_FIRST_MS;
    const isNew = this.seen.accept(p, n, byQuery);
    if (!byQuery) this.sight.heard(this.lastSentNs, receivedNs);
    else if (isNew) this.sight.found(this.lastSentNs, receivedNs);
    if (!isNew) return;
    this.stamps.consumed(n, s, receivedNs, p, batch);
    if (!this.options.delayUs) return;
    this.isWorking = true;
    await common.sleep(this.options.delayUs / 1000);
    this.isWorking = false;
  }

  /** Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent. */
  async catchUp(newer) {
    const missing = this.collection.find(this.seen.filter(newer), { useBigInt64: true });
    for await (const document of missing) await this.receive(document, common.NO_BATCH, true);
  }

  /** The cursor is dead without an error: everything was read, or a tailable cursor found no message. */
  async ended(lost) {
    await this.close();
    if (this.options.mode === 'poll') {
      await common.sleep(this.options.pollMs);
      return undefined;
    }
    this.empty += 1;
    await common.sleep(EMPTY_PAUSE_MS);
    const message = 'the cursor died without finding a message';
    return { reason: 'empty', code: null, message, reported: lost?.reason === 'empty' };
  }

  async broken(error) {
    await this.close();
    const lost = { reason: 'other', code: error.code ?? null, message: error.message };
    if (error.code === common.POSITION_LOST) {
      this.positionLost += 1;
      return { ...lost, reason: 'position-lost' };
    }
    if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) lost.reason = 'connection';
    await common.sleep(this.backOffMs);
    this.backOffMs = Math.min(2 * this.backOffMs, BACK_OFF_LAST_MS);
    return lost;
  }

  async close() {
    const source = this.source;
    this.source = undefined;
    await source?.close();
  }
}

module.exports = { Consumer };
