import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.IOException;

/** Serves an empty in-memory database on a free loopback port until standard input ends. */
public final class MemoryServer {
    private MemoryServer() {}

    public static void main(String[] arguments) throws IOException {
        MongoServer server = new MongoServer(new MemoryBackend());
        server.bind("127.0.0.1", 0);
        System.out.println("listening on port " + server.getLocalAddress().getPort());
        System.out.flush();
        while (System.in.read() != -1) {
            // Input has no meaning, only its end has.
        }
        // The data is in memory: there is nothing to close in order.
        Runtime.getRuntime().halt(0);
    }
}
