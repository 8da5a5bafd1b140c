package dyno;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoNamespace;
import com.mongodb.WriteConcern;
import com.mongodb.client.model.Filters;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.bson.Document;
import org.bson.conversions.Bson;

/** Shared code of both Java drivers: options, clock, barrier, pacing, stamps, and received messages. */
final class Common {
    static final int NO_BATCH = -1;
    static final int PRODUCER_SHIFT = 40;
    static final int POSITION_LOST = 136;
    static final long SPIN_NS = 50_000;
    /** Time for answers to inserts in flight after a stop request. */
    static final long GRACE_MS = 2000;
    /** Pings before {@code ready}, one after the other, so that all drivers start equally warm. */
    static final int PINGS = 100;
    /** Largest number of failed inserts with an event each. */
    private static final int MAX_REPORTED = 20;
    /** Largest number of missing messages that a filter lists one by one; lower ones are requested as a range. */
    private static final int NAMED = 4096;
    /** Numbers in one word of the record of received messages. */
    private static final int WORD = 64;
    private static final long MOST_MESSAGES = (1L << PRODUCER_SHIFT) - 1;
    private static final int RECORD_BYTES = 32;
    /**
     * A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages
     * are requested this long after the opening.
     */
    static final long CATCH_UP_NS = 100_000_000;
    /** Interval of queries for missing messages while a cursor is silent. */
    private static final long ASK_EVERY_NS = 1_000_000_000;
    /** A cursor is blind if it still returns nothing this long after a query found messages that it missed. */
    private static final long BLIND_AFTER_NS = 100_000_000;

    private Common() {}

    /** An unknown or malformed option. */
    static final class Usage extends Exception {
        Usage(String message) {
            super(message);
        }
    }

    /** Options by name, as numbers and words. */
    static final class Options {
        private final Map<String, Object> values = new LinkedHashMap<>();
        private final Map<String, Function<String, Object>> known = new LinkedHashMap<>();
        final String uri;
        final LongSupplier clock;

        Options(String role, String[] arguments) throws Usage {
            define("database", null, text -> text);
            define("collection", null, text -> text);
            define("output", null, text -> text);
            define("messages", null, whole(0, MOST_MESSAGES));
            define("pool", 100L, whole(1, 100_000));
            define("clock", "monotonic", oneOf("monotonic", "realtime"));
            if (role.equals("produce")) {
                define("producer", 0L, whole(0, 65535));
                define("first", 0L, whole(0, MOST_MESSAGES));
                define("size", 0L, whole(0, 16_000_000));
                define("in-flight", 1L, text -> text.equals("unbounded") ? (Object) 0L : whole(1, 1_000_000).apply(text));
                define("write-concern", "1", text -> text.equals("majority") ? text : whole(0, 50).apply(text).toString());
                define("journal", "", oneOf("true", "false"));
                define("schedule", "", text -> text);
            } else {
                define("mode", "tailable", oneOf("tailable", "change-stream", "poll"));
                define("producers", 1L, whole(1, 65536));
                define("await-ms", 1000L, whole(1, 3_600_000));
                define("batch-size", 0L, whole(1, 1_000_000));
                define("poll-ms", 1L, whole(0, 3_600_000));
                define("idle-s", 30.0, Common::seconds);
                define("delay-us", 0L, whole(0, 1_000_000_000));
            }
            parse(arguments);
            uri = System.getenv("DYNO_URI");
            if (uri == null || uri.isEmpty()) {
                throw new Usage("the environment variable DYNO_URI is missing");
            }
            clock = text("clock").equals("monotonic") ? System::nanoTime : Common::realtime;
        }

        private void define(String name, Object value, Function<String, Object> parser) {
            values.put(name, value);
            known.put(name, parser);
        }

        private void parse(String[] arguments) throws Usage {
            for (int at = 0; at < arguments.length; at += 2) {
                String name = arguments[at].replaceFirst("^--", "");
                if (!arguments[at].startsWith("--") || !known.containsKey(name)) {
                    throw new Usage("unknown option `" + arguments[at] + "`");
                }
                if (at + 1 == arguments.length) {
                    throw new Usage("option `--" + name + "` needs a value");
                }
                try {
                    values.put(name, known.get(name).apply(arguments[at + 1]));
                } catch (IllegalArgumentException error) {
                    throw new Usage("option `--" + name + "`: `" + arguments[at + 1] + "` " + error.getMessage());
                }
            }
            for (Map.Entry<String, Object> entry : values.entrySet()) {
                if (entry.getValue() == null) {
                    throw new Usage("option `--" + entry.getKey() + "` is missing");
                }
            }
        }

        long number(String name) {
            return (Long) values.get(name);
        }

        String text(String name) {
            return (String) values.get(name);
        }

        long idleNs() {
            return (long) ((Double) values.get("idle-s") * 1e9);
        }

        boolean isUnbounded() {
            return number("in-flight") == 0;
        }

        MongoNamespace namespace() {
            return new MongoNamespace(text("database"), text("collection"));
        }

        WriteConcern writeConcern() {
            String w = text("write-concern");
            WriteConcern concern = w.equals("majority") ? WriteConcern.MAJORITY : new WriteConcern(Integer.parseInt(w));
            String journal = text("journal");
            return journal.isEmpty() ? concern : concern.withJournal(journal.equals("true"));
        }

        MongoClientSettings clientSettings() {
            // Standard error is reserved for the one line with the reason for the end.
            Logger.getLogger("org.mongodb.driver").setLevel(Level.OFF);
            MongoClientSettings.Builder builder = MongoClientSettings.builder();
            builder.applyConnectionString(new ConnectionString(uri)).applicationName("dyno");
            // Waits for a connection have no limit: they are the producer's own queue.
            builder.applyToConnectionPoolSettings(
                    pool -> pool.maxSize((int) number("pool")).maxWaitTime(-1, TimeUnit.MILLISECONDS));
            if (!uri.toLowerCase().contains("serverselectiontimeoutms")) {
                builder.applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(5, TimeUnit.SECONDS));
            }
            return builder.build();
        }

        /** Intended starts in ns after the start instant, null for a closed loop. */
        LongBuffer schedule() throws Usage {
            if (text("schedule").isEmpty()) {
                return null;
            }
            try {
                byte[] data = Files.readAllBytes(Path.of(text("schedule")));
                if (data.length / 8 < number("messages")) {
                    throw new Usage("option `--schedule`: " + data.length / 8 + " entries for " + number("messages"));
                }
                return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
            } catch (IOException error) {
                throw new Usage("option `--schedule`: " + error);
            }
        }
    }

    private static Function<String, Object> whole(long low, long high) {
        return text -> {
            if (!text.matches("[0-9]{1,18}") || Long.parseLong(text) < low || Long.parseLong(text) > high) {
                throw new IllegalArgumentException("must be a whole number from " + low + " to " + high);
            }
            return Long.parseLong(text);
        };
    }

    private static Function<String, Object> oneOf(String... words) {
        return text -> {
            if (!List.of(words).contains(text)) {
                throw new IllegalArgumentException("must be one of " + String.join(", ", words));
            }
            return text;
        };
    }

    private static Object seconds(String text) {
        double value = Double.parseDouble(text);
        if (!(value > 0 && value < 1e9)) {
            throw new IllegalArgumentException("must be above 0");
        }
        return value;
    }

    private static long realtime() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    /** Padding; the same bytes in every driver. */
    static byte[] padding(long size) {
        byte[] pad = new byte[(int) size];
        int state = 42;
        for (int at = 0; at < pad.length; at++) {
            state = state * 1664525 + 1013904223;
            pad[at] = (byte) (state >>> 24);
        }
        return pad;
    }

    static synchronized void emit(Document event) {
        System.out.println(event.toJson());
        System.out.flush();
    }

    static void fail(int code, String message) {
        System.err.println(message.replaceAll("\\s+", " ").trim());
        Runtime.getRuntime().halt(code);
    }

    static void version(String driver, List<String> roles, String unbounded) {
        List<String> modes = roles.contains("consume") ? List.of("tailable", "change-stream", "poll") : List.of();
        emit(new Document("contract", 1)
                .append("language", "java")
                .append("driver", driver)
                .append("driver_version", com.mongodb.internal.build.MongoDriverVersion.VERSION)
                .append("runtime", System.getProperty("java.vm.name"))
                .append("runtime_version", System.getProperty("java.version"))
                .append("roles", roles)
                .append("in_flight", List.of("one", "bounded", "unbounded"))
                .append("unbounded", unbounded)
                .append("modes", modes)
                .append("pool", true));
    }

    /** The server's code of an error, or null. */
    static Integer code(Throwable error) {
        int code = error instanceof MongoException ? ((MongoException) error).getCode() : -1;
        return code > 0 ? code : null;
    }

    static Document failed(long n, Throwable error) {
        return new Document("event", "failed")
                .append("n", n)
                .append("code", code(error))
                .append("message", error.getMessage());
    }

    /** The barrier on standard input, and all stop requests. */
    static final class Control {
        volatile long startNs;
        volatile int exitCode;
        final CountDownLatch stopped = new CountDownLatch(1);
        private final CountDownLatch started = new CountDownLatch(1);
        private final CountDownLatch ended = new CountDownLatch(1);

        Control() {
            // A signal starts this hook; it must halt the JVM itself to control the exit code.
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                stop(130);
                try {
                    ended.await(GRACE_MS + 3000, TimeUnit.MILLISECONDS);
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
                Runtime.getRuntime().halt(130);
            }));
        }

        private void stop(int code) {
            if (startNs == 0) {
                Runtime.getRuntime().halt(code);
            }
            exitCode = code;
            stopped.countDown();
        }

        boolean isStopping() {
            return stopped.getCount() == 0;
        }

        /** Reports readiness, and waits for the start. */
        void ready() throws InterruptedException {
            System.out.println("ready");
            System.out.flush();
            Thread reader = new Thread(this::read);
            reader.setDaemon(true);
            reader.start();
            awaitStart();
        }

        void awaitStart() throws InterruptedException {
            started.await();
        }

        private void read() {
            try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = input.readLine(); line != null; line = input.readLine()) {
                    String[] words = line.trim().split("\\s+");
                    if (words[0].equals("start") && words.length == 2 && startNs == 0) {
                        startNs = Long.parseLong(words[1]);
                        started.countDown();
                    } else if (line.trim().equals("stop")) {
                        stop(0);
                    }
                }
            } catch (IOException error) {
                // Treated as the end of the input.
            }
            // Without a start, nothing is sent.
            if (startNs == 0) {
                Runtime.getRuntime().halt(0);
            }
        }

        /** False if a stop request ended the pause. */
        boolean sleep(long pauseNs) throws InterruptedException {
            return !stopped.await(pauseNs, TimeUnit.NANOSECONDS);
        }

        /** False if a stop request ended the wait. */
        boolean waitUntil(LongSupplier clock, long atNs) throws InterruptedException {
            for (long left = atNs - clock.getAsLong(); left > 0; left = atNs - clock.getAsLong()) {
                if (left > 100_000_000) {
                    sleep(left - 50_000_000);
                } else if (left > SPIN_NS) {
                    LockSupport.parkNanos(left - SPIN_NS);
                }
                if (isStopping()) {
                    return false;
                }
            }
            return !isStopping();
        }

        void end() {
            ended.countDown();
            Runtime.getRuntime().halt(exitCode);
        }
    }

    /** Stamps: records of 32 bytes, on disk after at most a second. */
    static final class Stamps {
        private final FileOutputStream file;
        private final ByteBuffer buffer = ByteBuffer.allocate(2048 * RECORD_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        private boolean closed;
        private long sent;
        private long failed;

        Stamps(String path) throws Usage {
            try {
                file = new FileOutputStream(path);
            } catch (IOException error) {
                throw new Usage("option `--output`: " + error.getMessage());
            }
            Thread flusher = new Thread(() -> {
                while (true) {
                    LockSupport.parkNanos(500_000_000);
                    flush();
                }
            });
            flusher.setDaemon(true);
            flusher.start();
        }

        synchronized void flush() {
            try {
                file.write(buffer.array(), 0, buffer.position());
                buffer.clear();
            } catch (IOException error) {
                fail(1, "cannot write stamps: " + error.getMessage());
            }
        }

        /** Whether to report this error as an event. */
        synchronized boolean produced(long n, long intendedNs, long sendNs, long endedNs, Throwable error) {
            if (closed) {
                return false;
            }
            if (!buffer.hasRemaining()) {
                flush();
            }
            buffer.putLong(n).putLong(intendedNs).putLong(sendNs).putLong(error == null ? endedNs : -endedNs);
            sent += error == null ? 1 : 0;
            failed += error == null ? 0 : 1;
            return error != null && failed <= MAX_REPORTED;
        }

        /** The last event of a producer. Later answers have no stamp and are not counted. */
        synchronized Document close() {
            closed = true;
            return new Document("event", "done").append("messages", sent).append("failed", failed);
        }

        synchronized void consumed(long n, long sendNs, long receivedNs, int producer, int batch) {
            if (!buffer.hasRemaining()) {
                flush();
            }
            buffer.putLong(n).putLong(sendNs).putLong(receivedNs).putInt(producer).putInt(batch);
        }
    }

    /** Detects blind tailable cursors; see "Blind cursors" in drivers/README.md. */
    static final class Sight {
        private final long blindAfterNs;
        private long askedNs;
        private long heardNs;
        /** Messages sent later cannot have been skipped. */
        private long afterNs;
        /** Messages that queries found since the cursor's last one, and the send time of the oldest. */
        private long missed;
        private long missedNs;
        /** When a conclusive message was found; 0 if none was. */
        private long suspectNs;

        /** {@code extraNs}: time after which the cursor was certainly asked again, for drivers that hide empty answers. */
        Sight(long extraNs) {
            blindAfterNs = BLIND_AFTER_NS + extraNs;
        }

        void opened(long nowNs) {
            afterNs = nowNs + CATCH_UP_NS;
            heard(0, nowNs);
        }

        /** Records that the cursor returned a message. */
        void heard(long sentNs, long nowNs) {
            heardNs = nowNs;
            afterNs = Math.max(afterNs, sentNs);
            missed = 0;
            missedNs = Long.MAX_VALUE;
            suspectNs = 0;
        }

        /** Whether it is time for a query while the cursor is silent. */
        boolean asks(long nowNs) {
            boolean isTime = nowNs - askedNs >= ASK_EVERY_NS;
            askedNs = isTime ? nowNs : askedNs;
            return isTime;
        }

        /** Records that a query found a message that the cursor did not return. */
        void found(long sentNs, long nowNs) {
            missed++;
            missedNs = Math.min(missedNs, Math.max(sentNs, heardNs));
            if (suspectNs == 0 && sentNs > afterNs) {
                suspectNs = nowNs;
            }
        }

        /** Whether the cursor, which returned nothing since the last query, is blind. */
        boolean isBlind(long nowNs) {
            return suspectNs != 0 && nowNs - suspectNs >= blindAfterNs;
        }

        /** Reason for opening the cursor again. */
        Lost lost(long nowNs) {
            String message = "the cursor did not return messages that queries found";
            return new Lost("blind", null, message, false, nowNs - missedNs, missed);
        }
    }

    /** Reason for opening a source again; for a blind cursor, how long it was blind, and how many messages queries
     * found in that time. */
    record Lost(String reason, Integer code, String message, boolean reported, long blindNs, long found) {
        Lost(String reason, Integer code, String message, boolean reported) {
            this(reason, code, message, reported, 0, 0);
        }

        /** This reason, after its event was reported. */
        Lost tell(long atNs) {
            Document event = new Document("event", "reopened")
                    .append("reason", reason)
                    .append("at_ns", atNs)
                    .append("code", code)
                    .append("message", message);
            if (found > 0) {
                event.append("blind_ns", blindNs).append("found", found);
            }
            emit(event);
            return new Lost(reason, code, message, true);
        }
    }

    /** Received messages of one producer: one bit for each number, in words; empty words are omitted. */
    private static final class Progress {
        private long newest = -1;
        private final Map<Long, Long> came = new HashMap<>();

        /** False if it was received before. */
        boolean mark(long n) {
            long bit = 1L << (n % WORD);
            long word = came.getOrDefault(n / WORD, 0L);
            newest = Math.max(newest, n);
            came.put(n / WORD, word | bit);
            return (word & bit) == 0;
        }

        /** Adds the newest overtaken messages; returns the number below which there may be more. */
        long overtaken(long first, List<Long> ids) {
            int left = NAMED;
            for (long upper = newest; upper >= 0; upper -= upper % WORD + 1) {
                long word = came.getOrDefault(upper / WORD, 0L);
                for (long n = upper; n >= upper - upper % WORD && word != -1; n--) {
                    if ((word & 1L << (n % WORD)) == 0) {
                        ids.add(first + n);
                        left--;
                    }
                    if (left == 0) {
                        return n;
                    }
                }
            }
            return 0;
        }
    }

    /** Received messages, and the filter for missing ones: inserts in flight overtake each other. */
    static final class Seen {
        long count;
        long duplicates;
        private final TreeMap<Integer, Progress> producers = new TreeMap<>();
        /** The {@code _id} of messages that a query found before the cursor returned them. */
        private final Set<Long> queried = new HashSet<>();

        /**
         * Whether the message is new. A message that the cursor returns after a query found it, or that a query finds
         * again, does not count as a duplicate.
         */
        boolean accept(int producer, long n, boolean byQuery) {
            long id = ((long) producer << PRODUCER_SHIFT) + n;
            if (producers.computeIfAbsent(producer, key -> new Progress()).mark(n)) {
                if (byQuery) {
                    queried.add(id);
                }
                count++;
                return true;
            }
            if (!byQuery && !queried.remove(id)) {
                duplicates++;
            }
            return false;
        }

        /** Messages that queries found and no cursor returned. */
        int caughtUp() {
            return queried.size();
        }

        /** Filter for all missing messages; without {@code newer}, only for overtaken ones. */
        Bson filter(boolean newer) {
            if (producers.isEmpty()) {
                return new Document();
            }
            List<Bson> clauses = new ArrayList<>();
            List<Long> overtaken = new ArrayList<>();
            Document above = new Document();
            for (Map.Entry<Integer, Progress> entry : producers.entrySet()) {
                long first = (long) entry.getKey() << PRODUCER_SHIFT;
                if (newer && first > 0) {
                    clauses.add(new Document("_id", above.append("$lt", first)));
                }
                above = new Document("$gt", first + entry.getValue().newest);
                long below = entry.getValue().overtaken(first, overtaken);
                if (below > 0) {
                    clauses.add(new Document("_id", new Document("$gte", first).append("$lt", first + below)));
                }
            }
            if (newer) {
                clauses.add(new Document("_id", above));
            }
            clauses.add(Filters.in("_id", overtaken));
            return Filters.or(clauses);
        }
    }
}
