package dyno;

import com.mongodb.CursorType;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoSocketException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandSucceededEvent;
import com.mongodb.reactivestreams.client.ChangeStreamPublisher;
import com.mongodb.reactivestreams.client.FindPublisher;
import com.mongodb.reactivestreams.client.MongoCollection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;
import org.bson.Document;
import org.bson.conversions.Bson;

/** The driver's threads deliver messages; the main thread reopens ended sources and watches the time. */
final class Consumer {
    private static final long MS = 1_000_000;
    private static final long EMPTY_PAUSE_NS = 5 * MS;
    private static final long BACK_OFF_FIRST_NS = 10 * MS;
    private static final long BACK_OFF_LAST_NS = 1000 * MS;
    private static final long LOOK_MS = 20;
    /** A source that returned nothing for this long is silent. */
    private static final long SILENT_NS = 100 * MS;

    private final Common.Options options;
    private final Common.Control control;
    private final Common.Stamps stamps;
    private final Common.Seen seen = new Common.Seen();
    private final Common.Sight sight;
    private final MongoCollection<Document> collection;
    private final String mode;
    /** Completed when the command that opens a source succeeds or fails. */
    private volatile CompletableFuture<Void> answered = new CompletableFuture<>();
    /** Ends of sources, with or without an error. */
    private final BlockingQueue<Optional<Throwable>> ends = new LinkedBlockingQueue<>();
    private Reactive.Asked<?> source;
    private volatile BsonDocument token;
    private volatile boolean isWorking;
    private volatile long lastNs;
    private volatile long lastSentNs;
    private volatile long catchUpNs;
    private volatile long backOffNs = BACK_OFF_FIRST_NS;
    /** Whether the open source has returned messages. */
    private volatile boolean hasMessages;
    private boolean isOver;
    private volatile long openedNs;
    private long opened;
    private long empty;
    private long positionLost;

    Consumer(Common.Options options, Common.Control control, Common.Stamps stamps) {
        this.options = options;
        this.control = control;
        this.stamps = stamps;
        mode = options.text("mode");
        // This driver hides empty answers; after this time, a later request has been answered.
        sight = new Common.Sight(2 * options.number("await-ms") * MS);
        MongoClientSettings settings = MongoClientSettings.builder(options.clientSettings())
                .addCommandListener(new CommandListener() {
                    @Override
                    public void commandSucceeded(CommandSucceededEvent event) {
                        if (event.getCommandName().equals(mode.equals("change-stream") ? "aggregate" : "find")) {
                            answered.complete(null);
                        }
                    }
                })
                .build();
        collection = Reactive.connect(options, settings);
        CompletableFuture<Void> isOpened = open(null);
        try {
            isOpened.join();
        } catch (CompletionException error) {
            throw error.getCause() instanceof MongoException cause ? cause : error;
        }
    }

    /** Completed when the source is open and recorded. */
    private CompletableFuture<Void> open(Common.Lost lost) {
        int batchSize = (int) options.number("batch-size");
        long awaitMs = options.number("await-ms");
        // After a lost position, read from the oldest message on.
        boolean everything = lost != null && lost.reason().equals("position-lost");
        answered = new CompletableFuture<>();
        CompletableFuture<Void> isOpened = answered.thenRun(() -> isOpen(lost));
        hasMessages = false;
        opened++;
        openedNs = options.clock.getAsLong();
        synchronized (this) {
            sight.opened(openedNs);
        }
        catchUpNs = 0;
        if (mode.equals("change-stream")) {
            Bson inserts = Aggregates.match(Filters.eq("operationType", "insert"));
            ChangeStreamPublisher<Document> watched =
                    collection.watch(List.of(inserts)).maxAwaitTime(awaitMs, TimeUnit.MILLISECONDS);
            watched = batchSize > 0 ? watched.batchSize(batchSize) : watched;
            watched = token != null ? watched.resumeAfter(token) : watched;
            source = Reactive.subscribe(watched, this::receiveEvent, this::end);
            return isOpened;
        }
        FindPublisher<Document> found = collection.find(everything ? new Document() : filter(true));
        found = batchSize > 0 ? found.batchSize(batchSize) : found;
        if (mode.equals("tailable")) {
            found = found.cursorType(CursorType.TailableAwait).maxAwaitTime(awaitMs, TimeUnit.MILLISECONDS);
        } else {
            found = found.sort(Sorts.ascending("_id"));
        }
        source = Reactive.subscribe(found, message -> receive(message, false), this::end);
        return isOpened;
    }

    private synchronized void isOpen(Common.Lost lost) {
        openedNs = options.clock.getAsLong();
        sight.opened(openedNs);
        catchUpNs = mode.equals("tailable") ? openedNs + Common.CATCH_UP_NS : 0;
        if (lost != null && !lost.reported() && !isOver) {
            lost.tell(openedNs);
        }
    }

    private void end(Throwable error) {
        catchUpNs = 0;
        // Before reporting the end, after which `answered` belongs to the next source.
        if (error != null) {
            answered.completeExceptionally(error);
        }
        ends.add(Optional.ofNullable(error));
    }

    private synchronized Bson filter(boolean newer) {
        return seen.filter(newer);
    }

    private synchronized boolean isComplete() {
        return seen.count >= options.number("messages");
    }

    Document run() throws InterruptedException {
        boolean polls = mode.equals("poll");
        control.ready();
        lastNs = Math.max(lastNs, control.startNs);
        Common.Lost lost = null;
        while (!isComplete() && !control.isStopping()) {
            Optional<Throwable> end = ends.poll(LOOK_MS, TimeUnit.MILLISECONDS);
            if (end != null) {
                lost = end.isEmpty() ? ended(hasMessages ? null : lost) : broken(end.get());
                open(lost);
            }
            long nowNs = options.clock.getAsLong();
            boolean isSilent = !isWorking && nowNs - Math.max(lastNs, openedNs) > SILENT_NS;
            if (isSilent && isTimeToAsk(nowNs)) {
                catchUp(true);
            } else if (catchUpNs != 0 && lastSentNs > catchUpNs) {
                catchUpNs = 0;
                catchUp(false);
            }
            Common.Lost blind = isSilent ? blind(nowNs) : null;
            if (blind != null) {
                source.giveUp();
                lost = blind;
                open(lost);
            }
            if (!isWorking && nowNs - lastNs > options.idleNs()) {
                control.exitCode = 5;
                break;
            }
        }
        synchronized (this) {
            isOver = true;
            return new Document("event", "done")
                    .append("messages", seen.count)
                    .append("failed", 0)
                    .append("reopened", polls ? 0 : opened - 1)
                    .append("reopened_empty", empty)
                    .append("position_lost", positionLost)
                    .append("caught_up", seen.caughtUp())
                    .append("duplicates_skipped", seen.duplicates);
        }
    }

    private void receiveEvent(ChangeStreamDocument<Document> event) {
        receive(event.getFullDocument(), false);
        token = event.getResumeToken();
    }

    private void receive(Document message, boolean byQuery) {
        try {
            // A source may have messages before the start; every driver receives them afterwards.
            control.awaitStart();
            // Only for the cursor, not for the concurrent query.
            if (!byQuery) {
                isWorking = true;
            }
            if (take(message, byQuery) && options.number("delay-us") > 0) {
                control.sleep(options.number("delay-us") * 1000);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        } finally {
            if (!byQuery) {
                isWorking = false;
            }
        }
    }

    /** Whether the message is new. */
    private synchronized boolean take(Document message, boolean byQuery) {
        if (isOver) {
            return false;
        }
        lastNs = options.clock.getAsLong();
        backOffNs = BACK_OFF_FIRST_NS;
        hasMessages |= !byQuery;
        int producer = message.getInteger("p");
        long n = message.getLong("n");
        long sentNs = message.getLong("s");
        lastSentNs = Math.min(sentNs, lastNs);
        boolean isNew = seen.accept(producer, n, byQuery);
        if (!byQuery) {
            sight.heard(lastSentNs, lastNs);
        } else if (isNew) {
            sight.found(lastSentNs, lastNs);
        }
        if (isNew) {
            stamps.consumed(n, sentNs, lastNs, producer, Common.NO_BATCH);
        }
        return isNew;
    }

    /** Whether an open tailable cursor must be monitored. */
    private boolean isTailing() {
        return mode.equals("tailable") && answered.isDone() && ends.isEmpty();
    }

    private synchronized boolean isTimeToAsk(long nowNs) {
        return isTailing() && sight.asks(nowNs);
    }

    /** Reason for abandoning the source: it does not return messages that queries find. */
    private synchronized Common.Lost blind(long nowNs) {
        return isTailing() && sight.isBlind(nowNs) ? sight.lost(nowNs) : null;
    }

    /**
     * Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent. Uses a
     * separate command from the one that opens a source. Errors surface in the source, or in the next query.
     */
    private void catchUp(boolean newer) {
        List<Bson> missing = List.of(Aggregates.match(filter(newer)));
        Reactive.subscribe(collection.aggregate(missing), message -> receive(message, true), error -> {});
    }

    /** The source is dead without an error: everything was read, or a tailable cursor found no message. */
    private Common.Lost ended(Common.Lost lost) throws InterruptedException {
        if (mode.equals("poll")) {
            control.sleep(options.number("poll-ms") * MS);
            return null;
        }
        empty++;
        control.sleep(EMPTY_PAUSE_NS);
        boolean reported = lost != null && lost.reason().equals("empty");
        return new Common.Lost("empty", null, "the cursor died without finding a message", reported);
    }

    private Common.Lost broken(Throwable error) throws InterruptedException {
        Integer code = Common.code(error);
        if (code != null && code == Common.POSITION_LOST) {
            positionLost++;
            return new Common.Lost("position-lost", code, error.getMessage(), false);
        }
        control.sleep(backOffNs);
        backOffNs = Math.min(2 * backOffNs, BACK_OFF_LAST_NS);
        boolean isNetwork = error instanceof MongoSocketException || error instanceof MongoTimeoutException;
        // In poll mode, a new query is not an event.
        return new Common.Lost(isNetwork ? "connection" : "other", code, error.getMessage(), mode.equals("poll"));
    }
}
