package dyno;

import com.mongodb.MongoException;
import com.mongodb.reactivestreams.client.MongoClient;
import com.mongodb.reactivestreams.client.MongoClients;
import com.mongodb.reactivestreams.client.MongoCollection;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.bson.Document;
import org.bson.types.Binary;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** Producer of {@code dyno tail} on the reactive Java driver: one thread subscribes, the driver's threads answer. */
public final class Reactive {
    private final Common.Options options;
    private final Common.Control control;
    private final Common.Stamps stamps;
    private final LongBuffer schedule;
    private final Binary pad;
    private final MongoCollection<Document> collection;
    /** Permits for inserts in flight; as many as there can be messages where that is not bounded. */
    private final Semaphore slots;
    private final int most;

    private Reactive(Common.Options options, Common.Control control, Common.Stamps stamps) throws Common.Usage {
        this.options = options;
        this.control = control;
        this.stamps = stamps;
        schedule = options.schedule();
        pad = new Binary(Common.padding(options.number("size")));
        most = options.isUnbounded() ? Integer.MAX_VALUE : (int) options.number("in-flight");
        slots = new Semaphore(most);
        MongoClient client = MongoClients.create(options.clientSettings());
        for (int ping = 0; ping < Common.PINGS; ping++) {
            CompletableFuture<Throwable> answer = new CompletableFuture<>();
            // An end without an error is null.
            subscribe(client.getDatabase("admin").runCommand(new Document("ping", 1)), answer::complete);
            if (answer.join() instanceof RuntimeException error) {
                throw error;
            }
        }
        collection = client.getDatabase(options.text("database"))
                .getCollection(options.text("collection"))
                .withWriteConcern(options.writeConcern());
    }

    private Document run() throws InterruptedException {
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
        subscribe(collection.insertOne(message), error -> answered(n, intendedNs, sendNs, error));
    }

    /** Asks for everything; {@code end} gets the error, or null. */
    private static <T> void subscribe(Publisher<T> publisher, Consumer<Throwable> end) {
        publisher.subscribe(new Subscriber<>() {
            @Override
            public void onSubscribe(Subscription subscription) {
                subscription.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(T result) {}

            @Override
            public void onError(Throwable error) {
                end.accept(error);
            }

            @Override
            public void onComplete() {
                end.accept(null);
            }
        });
    }

    private void answered(long n, long intendedNs, long sendNs, Throwable error) {
        long endedNs = options.clock.getAsLong();
        if (stamps.produced(n, intendedNs, sendNs, endedNs, error)) {
            Common.emit(Common.failed(n, error));
        }
        slots.release();
    }

    /** Runs one role of the contract. */
    public static void main(String[] arguments) throws InterruptedException {
        String role = arguments.length > 0 ? arguments[0] : "";
        if (role.equals("version")) {
            Common.version("mongodb-driver-reactivestreams", List.of("produce"), "driver");
            return;
        }
        if (!role.equals("produce")) {
            Common.fail(2, "`" + role + "` is not one of version, produce");
        }
        try {
            Common.Options options = new Common.Options(role, Arrays.copyOfRange(arguments, 1, arguments.length));
            Common.Stamps stamps = new Common.Stamps(options.text("output"));
            Common.Control control = new Common.Control();
            Document done = new Reactive(options, control, stamps).run();
            stamps.flush();
            Common.emit(done);
            control.end();
        } catch (Common.Usage error) {
            Common.fail(2, error.getMessage());
        } catch (MongoException | IllegalArgumentException error) {
            Common.fail(4, "cannot use the server: " + error.getMessage());
        }
    }
}
