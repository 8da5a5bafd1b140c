package dyno;

import com.mongodb.reactivestreams.client.MongoCollection;
import java.nio.LongBuffer;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.bson.types.Binary;

/** One thread subscribes; the driver's threads handle answers. */
final class Producer {
    private final Common.Options options;
    private final Common.Control control;
    private final Common.Stamps stamps;
    private final LongBuffer schedule;
    private final Binary pad;
    private final MongoCollection<Document> collection;
    /** Permits for inserts in flight; without a bound, one for each possible message. */
    private final Semaphore slots;
    private final int most;

    Producer(Common.Options options, Common.Control control, Common.Stamps stamps) throws Common.Usage {
        this.options = options;
        this.control = control;
        this.stamps = stamps;
        schedule = options.schedule();
        pad = new Binary(Common.padding(options.number("size")));
        most = options.isUnbounded() ? Integer.MAX_VALUE : (int) options.number("in-flight");
        slots = new Semaphore(most);
        collection = Reactive.connect(options, options.clientSettings()).withWriteConcern(options.writeConcern());
    }

    Document run() throws InterruptedException {
        control.ready();
        for (long index = 0; index < options.number("messages"); index++) {
            long dueNs = control.startNs + (schedule == null ? 0 : schedule.get((int) index));
            if (!control.waitUntil(options.clock, dueNs)) {
                break;
            }
            while (!slots.tryAcquire(100, TimeUnit.MILLISECONDS) && !control.isStopping()) {}
            if (control.isStopping()) {
                break;
            }
            long sendNs = options.clock.getAsLong();
            send(options.number("first") + index, schedule == null ? sendNs : dueNs, sendNs);
        }
        long givenUp = Long.MAX_VALUE;
        while (!slots.tryAcquire(most, 100, TimeUnit.MILLISECONDS) && System.nanoTime() < givenUp) {
            if (control.isStopping() && givenUp == Long.MAX_VALUE) {
                givenUp = System.nanoTime() + Common.GRACE_MS * 1_000_000;
            }
        }
        return stamps.close();
    }

    private void send(long n, long intendedNs, long sendNs) {
        long producer = options.number("producer");
        Document message = new Document("_id", (producer << Common.PRODUCER_SHIFT) + n)
                .append("p", (int) producer)
                .append("n", n)
                .append("i", intendedNs)
                .append("s", sendNs)
                .append("pad", pad);
        Reactive.subscribe(
                collection.insertOne(message), result -> {}, error -> answered(n, intendedNs, sendNs, error));
    }

    private void answered(long n, long intendedNs, long sendNs, Throwable error) {
        long endedNs = options.clock.getAsLong();
        if (stamps.produced(n, intendedNs, sendNs, endedNs, error)) {
            Common.emit(Common.failed(n, error));
        }
        slots.release();
    }
}
