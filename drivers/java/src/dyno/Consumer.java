package dyno;

import com.mongodb.CursorType;
import com.mongodb.MongoException;
import com.mongodb.MongoSocketException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.FindIterable;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;
import org.bson.Document;
import org.bson.conversions.Bson;

final class Consumer {
    private static final long MS = 1_000_000;
    private static final long EMPTY_PAUSE_NS = 5 * MS;
    private static final long BACK_OFF_FIRST_NS = 10 * MS;
    private static final long BACK_OFF_LAST_NS = 1000 * MS;

    private final Common.Options options;
    private final Common.Control control;
    private final Common.Stamps stamps;
    private final Common.Seen seen = new Common.Seen();
    private final Common.Sight sight = new Common.Sight(0);
    private final MongoCollection<Document> collection;
    /** At most one of the two is open. */
    private MongoCursor<Document> cursor;
    private MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream;
    private BsonDocument token;
    private int batch;
    private long opened;
    private long empty;
    private long positionLost;
    private long lastNs;
    private long lastSentNs;
    private long catchUpNs;
    private long backOffNs = BACK_OFF_FIRST_NS;

    Consumer(Common.Options options, Common.Control control, Common.Stamps stamps) {
        this.options = options;
        this.control = control;
        this.stamps = stamps;
        MongoClient client = MongoClients.create(options.clientSettings());
        for (int ping = 0; ping < Common.PINGS; ping++) {
            client.getDatabase("admin").runCommand(new Document("ping", 1));
        }
        collection = client.getDatabase(options.text("database")).getCollection(options.text("collection"));
        open(null);
    }

    private void open(Common.Lost lost) {
        int batchSize = (int) options.number("batch-size");
        long awaitMs = options.number("await-ms");
        // After a lost position, read from the oldest message on.
        boolean everything = lost != null && lost.reason().equals("position-lost");
        Bson filter = everything ? new Document() : seen.filter(true);
        FindIterable<Document> found = collection.find(filter).batchSize(batchSize);
        switch (options.text("mode")) {
            case "tailable" -> {
                found = found.cursorType(CursorType.TailableAwait).maxAwaitTime(awaitMs, TimeUnit.MILLISECONDS);
                cursor = found.cursor();
                long openedNs = options.clock.getAsLong();
                sight.opened(openedNs);
                catchUpNs = openedNs + Common.CATCH_UP_NS;
            }
            case "poll" -> cursor = found.sort(Sorts.ascending("_id")).cursor();
            default -> {
                Bson inserts = Aggregates.match(Filters.eq("operationType", "insert"));
                ChangeStreamIterable<Document> watched = collection.watch(List.of(inserts))
                        .maxAwaitTime(awaitMs, TimeUnit.MILLISECONDS);
                watched = batchSize > 0 ? watched.batchSize(batchSize) : watched;
                watched = token != null ? watched.resumeAfter(token) : watched;
                stream = watched.cursor();
            }
        }
        opened++;
    }

    Document run() throws InterruptedException {
        control.ready();
        boolean polls = options.text("mode").equals("poll");
        boolean isTailable = options.text("mode").equals("tailable");
        lastNs = control.startNs;
        Common.Lost lost = null;
        boolean idle = false;
        while (seen.count < options.number("messages") && !control.isStopping()) {
            Document document = null;
            try {
                if (cursor == null && stream == null) {
                    open(lost);
                    if (lost != null && !lost.reported()) {
                        lost = lost.tell(options.clock.getAsLong());
                    }
                } else if (isTailable && idle && sight.asks(options.clock.getAsLong())) {
                    catchUp(true);
                } else if (catchUpNs != 0 && lastSentNs > catchUpNs) {
                    catchUpNs = 0;
                    catchUp(false);
                }
                document = tryNext();
                if (document == null && !isAlive()) {
                    lost = ended(lost);
                } else if (document == null && isTailable && sight.isBlind(options.clock.getAsLong())) {
                    close();
                    lost = sight.lost(options.clock.getAsLong());
                }
            } catch (MongoException error) {
                lost = broken(error);
            }
            idle = document == null;
            if (!idle) {
                receive(document, stream == null ? batch : Common.NO_BATCH, false);
                lost = null;
            } else if (options.clock.getAsLong() - lastNs > options.idleNs()) {
                control.exitCode = 5;
                break;
            }
        }
        return new Document("event", "done")
                .append("messages", seen.count)
                .append("failed", 0)
                .append("reopened", polls ? 0 : opened - 1)
                .append("reopened_empty", empty)
                .append("position_lost", positionLost)
                .append("caught_up", seen.caughtUp())
                .append("duplicates_skipped", seen.duplicates);
    }

    private Document tryNext() {
        if (stream != null) {
            ChangeStreamDocument<Document> event = stream.tryNext();
            token = stream.getResumeToken();
            return event == null ? null : event.getFullDocument();
        }
        boolean isNewBatch = cursor.available() == 0;
        // Only waiting cursors support `tryNext`.
        boolean polls = options.text("mode").equals("poll");
        Document document = polls ? (cursor.hasNext() ? cursor.next() : null) : cursor.tryNext();
        batch += document != null && isNewBatch ? 1 : 0;
        return document;
    }

    private boolean isAlive() {
        return stream != null || cursor.getServerCursor() != null && !options.text("mode").equals("poll");
    }

    private void receive(Document document, int batch, boolean byQuery) throws InterruptedException {
        long receivedNs = options.clock.getAsLong();
        lastNs = receivedNs;
        backOffNs = BACK_OFF_FIRST_NS;
        int producer = document.getInteger("p");
        long n = document.getLong("n");
        long sentNs = document.getLong("s");
        lastSentNs = Math.min(sentNs, receivedNs);
        boolean isNew = seen.accept(producer, n, byQuery);
        if (!byQuery) {
            sight.heard(lastSentNs, receivedNs);
        } else if (isNew) {
            sight.found(lastSentNs, receivedNs);
        }
        if (!isNew) {
            return;
        }
        stamps.consumed(n, sentNs, receivedNs, producer, batch);
        if (options.number("delay-us") > 0) {
            control.sleep(options.number("delay-us") * 1000);
        }
    }

    /** Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent. */
    private void catchUp(boolean newer) throws InterruptedException {
        try (MongoCursor<Document> missing = collection.find(seen.filter(newer)).cursor()) {
            while (missing.hasNext()) {
                receive(missing.next(), Common.NO_BATCH, true);
            }
        }
    }

    /** The cursor is dead without an error: everything was read, or a tailable cursor found no message. */
    private Common.Lost ended(Common.Lost lost) throws InterruptedException {
        close();
        if (options.text("mode").equals("poll")) {
            control.sleep(options.number("poll-ms") * MS);
            return null;
        }
        empty++;
        control.sleep(EMPTY_PAUSE_NS);
        boolean reported = lost != null && lost.reason().equals("empty");
        return new Common.Lost("empty", null, "the cursor died without finding a message", reported);
    }

    private Common.Lost broken(MongoException error) throws InterruptedException {
        close();
        Integer code = Common.code(error);
        if (code != null && code == Common.POSITION_LOST) {
            positionLost++;
            return new Common.Lost("position-lost", code, error.getMessage(), false);
        }
        control.sleep(backOffNs);
        backOffNs = Math.min(2 * backOffNs, BACK_OFF_LAST_NS);
        boolean connection = error instanceof MongoSocketException || error instanceof MongoTimeoutException;
        return new Common.Lost(connection ? "connection" : "other", code, error.getMessage(), false);
    }

    private void close() {
        try {
            if (cursor != null) {
                cursor.close();
            }
            if (stream != null) {
                stream.close();
            }
        } catch (MongoException error) {
            // The loss is already known.
        }
        cursor = null;
        stream = null;
    }
}
