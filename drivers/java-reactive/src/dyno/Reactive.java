package dyno;

import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.reactivestreams.client.MongoClient;
import com.mongodb.reactivestreams.client.MongoClients;
import com.mongodb.reactivestreams.client.MongoCollection;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.bson.Document;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** Producer and consumer of {@code dyno tail} on the reactive Java driver. */
public final class Reactive {
    private Reactive() {}

    static MongoCollection<Document> connect(Common.Options options, MongoClientSettings settings) {
        MongoClient client = MongoClients.create(settings);
        for (int ping = 0; ping < Common.PINGS; ping++) {
            CompletableFuture<Throwable> answer = new CompletableFuture<>();
            // Null means an end without an error.
            subscribe(client.getDatabase("admin").runCommand(new Document("ping", 1)), pong -> {}, answer::complete);
            if (answer.join() instanceof RuntimeException error) {
                throw error;
            }
        }
        return client.getDatabase(options.text("database")).getCollection(options.text("collection"));
    }

    /** Requests all results; {@code end} gets the error, or null. */
    static <T> Asked<T> subscribe(
            Publisher<T> publisher,
            java.util.function.Consumer<T> each,
            java.util.function.Consumer<Throwable> end) {
        Asked<T> asked = new Asked<>(each, end);
        publisher.subscribe(asked);
        return asked;
    }

    /** A subscription that can be abandoned. */
    static final class Asked<T> implements Subscriber<T> {
        private final java.util.function.Consumer<T> each;
        private final java.util.function.Consumer<Throwable> end;
        private volatile Subscription subscription;
        private volatile boolean isGivenUp;

        private Asked(java.util.function.Consumer<T> each, java.util.function.Consumer<Throwable> end) {
            this.each = each;
            this.end = end;
        }

        /** From here on, neither results nor the end are reported. */
        void giveUp() {
            isGivenUp = true;
            subscription.cancel();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            this.subscription = subscription;
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(T result) {
            if (!isGivenUp) {
                each.accept(result);
            }
        }

        @Override
        public void onError(Throwable error) {
            if (!isGivenUp) {
                end.accept(error);
            }
        }

        @Override
        public void onComplete() {
            onError(null);
        }
    }

    /** Runs one role of the contract. */
    public static void main(String[] arguments) throws InterruptedException {
        String role = arguments.length > 0 ? arguments[0] : "";
        if (role.equals("version")) {
            Common.version("mongodb-driver-reactivestreams", List.of("produce", "consume"), "driver");
            return;
        }
        if (!role.equals("produce") && !role.equals("consume")) {
            Common.fail(2, "`" + role + "` is not one of version, produce, consume");
        }
        try {
            Common.Options options = new Common.Options(role, Arrays.copyOfRange(arguments, 1, arguments.length));
            Common.Stamps stamps = new Common.Stamps(options.text("output"));
            Common.Control control = new Common.Control();
            Document done = role.equals("produce")
                    ? new Producer(options, control, stamps).run()
                    : new Consumer(options, control, stamps).run();
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
