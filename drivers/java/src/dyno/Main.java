package dyno;

import com.mongodb.MongoException;
import java.util.List;
import org.bson.Document;

/** Producer and consumer of {@code dyno tail} on the synchronous Java driver: threads, each with one insert in flight. */
public final class Main {
    private Main() {}

    /** Runs one role of the contract. */
    public static void main(String[] arguments) throws InterruptedException {
        String role = arguments.length > 0 ? arguments[0] : "";
        if (role.equals("version")) {
            Common.version("mongodb-driver-sync", List.of("produce", "consume"), "program");
            return;
        }
        if (!role.equals("produce") && !role.equals("consume")) {
            Common.fail(2, "`" + role + "` is not one of version, produce, consume");
        }
        try {
            Common.Options options =
                    new Common.Options(role, java.util.Arrays.copyOfRange(arguments, 1, arguments.length));
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
