package dyno;

import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.bson.Document;
import org.bson.types.Binary;

final class Producer {
    private final Common.Options options;
    private final Common.Control control;
    private final Common.Stamps stamps;
    private final LongBuffer schedule;
    private final Binary pad;
    private final MongoCollection<Document> collection;
    private final AtomicLong next = new AtomicLong();

    Producer(Common.Options options, Common.Control control, Common.Stamps stamps) throws Common.Usage {
        this.options = options;
        this.control = control;
        this.stamps = stamps;
        schedule = options.schedule();
        pad = new Binary(Common.padding(options.number("size")));
        MongoClient client = MongoClients.create(options.clientSettings());
        for (int ping = 0; ping < Common.PINGS; ping++) {
            client.getDatabase("admin").runCommand(new Document("ping", 1));
        }
        collection = client.getDatabase(options.text("database"))
                .getCollection(options.text("collection"))
                .withWriteConcern(options.writeConcern());
    }

    Document run() throws InterruptedException {
        control.ready();
        // A blocking driver has one insert in flight per thread. If unbounded, due messages wait for a thread here,
        // in front of the pool.
        long wanted = options.isUnbounded() ? options.number("pool") : options.number("in-flight");
        List<Thread> lanes = new ArrayList<>();
        for (long lane = 0; lane < Math.min(wanted, options.number("messages")); lane++) {
            Thread thread = new Thread(this::lane);
            thread.setDaemon(true);
            thread.start();
            lanes.add(thread);
        }
        long deadline = Long.MAX_VALUE;
        for (Thread lane : lanes) {
            while (lane.isAlive() && System.nanoTime() / 1_000_000 < deadline) {
                lane.join(50);
                if (control.isStopping() && deadline == Long.MAX_VALUE) {
                    deadline = System.nanoTime() / 1_000_000 + Common.GRACE_MS;
                }
            }
        }
        return stamps.close();
    }

    private void lane() {
        boolean closed = schedule == null && !options.isUnbounded();
        try {
            for (long index = next.getAndIncrement();
                    index < options.number("messages");
                    index = next.getAndIncrement()) {
                long dueNs = control.startNs + (schedule == null ? 0 : schedule.get((int) index));
                if (!control.waitUntil(options.clock, dueNs)) {
                    return;
                }
                long sendNs = options.clock.getAsLong();
                send(options.number("first") + index, closed ? sendNs : dueNs, sendNs);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void send(long n, long intendedNs, long sendNs) {
        long producer = options.number("producer");
        Document message = new Document("_id", (producer << Common.PRODUCER_SHIFT) + n)
                .append("p", (int) producer)
                .append("n", n)
                .append("i", intendedNs)
                .append("s", sendNs)
                .append("pad", pad);
        MongoException error = null;
        try {
            collection.insertOne(message);
        } catch (MongoException caught) {
            error = caught;
        }
        long endedNs = options.clock.getAsLong();
        if (stamps.produced(n, intendedNs, sendNs, endedNs, error)) {
            Common.emit(Common.failed(n, error));
        }
    }
}
