#include "layer.hpp"

#include <mongoc/mongoc.h>

struct Target::Inner {
    Settings settings;
    mongoc_client_pool_t *pool = nullptr;
    mongoc_write_concern_t *concern = nullptr;
    // Used by the consumer.
    mongoc_collection_t *collection = nullptr;
    bson_t *token = nullptr;
};

namespace {

Failure failure(const bson_error_t &error) {
    const bool is_server = error.domain == MONGOC_ERROR_SERVER;
    const bool is_network = error.domain == MONGOC_ERROR_STREAM || error.domain == MONGOC_ERROR_SERVER_SELECTION;
    return {error.message, is_server ? std::optional<int>(error.code) : std::nullopt, is_network};
}

// A client of the pool, returned on destruction.
class Lent {
  public:
    explicit Lent(mongoc_client_pool_t *pool) : pool(pool), client(mongoc_client_pool_pop(pool)) {}
    ~Lent() { mongoc_client_pool_push(pool, client); }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    mongoc_client_pool_t *pool;
    mongoc_client_t *client;
};

class Document {
  public:
    Document() { bson_init(&bson); }
    ~Document() { bson_destroy(&bson); }
    Document(const Document &) = delete;
    Document &operator=(const Document &) = delete;
    bson_t bson;
};

void append_filter(const Wanted &wanted, bson_t *filter) {
    if (wanted.everything) return;
    bson_t clauses, clause, range, list;
    // The macros evaluate a key twice.
    std::string key;
    BSON_APPEND_ARRAY_BEGIN(filter, "$or", &clauses);
    for (const Wanted::Range &each : wanted.ranges) {
        key = std::to_string(&each - wanted.ranges.data());
        BSON_APPEND_DOCUMENT_BEGIN(&clauses, key.c_str(), &clause);
        BSON_APPEND_DOCUMENT_BEGIN(&clause, "_id", &range);
        if (each.above) BSON_APPEND_INT64(&range, "$gt", *each.above);
        if (each.below) BSON_APPEND_INT64(&range, "$lt", *each.below);
        bson_append_document_end(&clause, &range);
        bson_append_document_end(&clauses, &clause);
    }
    key = std::to_string(wanted.ranges.size());
    BSON_APPEND_DOCUMENT_BEGIN(&clauses, key.c_str(), &clause);
    BSON_APPEND_DOCUMENT_BEGIN(&clause, "_id", &range);
    BSON_APPEND_ARRAY_BEGIN(&range, "$in", &list);
    for (std::size_t id = 0; id < wanted.named.size(); id++) {
        key = std::to_string(id);
        BSON_APPEND_INT64(&list, key.c_str(), wanted.named[id]);
    }
    bson_append_array_end(&range, &list);
    bson_append_document_end(&clause, &range);
    bson_append_document_end(&clauses, &clause);
    bson_append_array_end(filter, &clauses);
}

std::int64_t field(const bson_t *document, const char *name) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) ? bson_iter_as_int64(&iter) : 0;
}

Received received(const bson_t *document) {
    return {field(document, "n"), field(document, "s"), field(document, "p")};
}

class Found : public Source {
  public:
    Found(mongoc_collection_t *collection, const Query &query) {
        Document filter, options;
        append_filter(query.wanted, &filter.bson);
        if (query.batch_size) BSON_APPEND_INT32(&options.bson, "batchSize", static_cast<int>(query.batch_size));
        if (query.mode == Mode::tailable) {
            BSON_APPEND_BOOL(&options.bson, "tailable", true);
            BSON_APPEND_BOOL(&options.bson, "awaitData", true);
            BSON_APPEND_INT64(&options.bson, "maxAwaitTimeMS", query.await_ms);
        } else {
            Document order;
            BSON_APPEND_INT32(&order.bson, "_id", 1);
            BSON_APPEND_DOCUMENT(&options.bson, "sort", &order.bson);
        }
        cursor = mongoc_collection_find_with_opts(collection, &filter.bson, &options.bson, nullptr);
    }
    ~Found() override { mongoc_cursor_destroy(cursor); }

    std::optional<Received> try_next() override {
        const bson_t *document;
        bson_error_t error;
        // Reading from a dead cursor is an error.
        if (!alive()) return std::nullopt;
        if (mongoc_cursor_next(cursor, &document)) return received(document);
        if (mongoc_cursor_error(cursor, &error)) throw failure(error);
        return std::nullopt;
    }

    bool alive() override { return mongoc_cursor_more(cursor); }

  private:
    mongoc_cursor_t *cursor;
};

class Watched : public Source {
  public:
    Watched(mongoc_collection_t *collection, const Query &query, bson_t **token) : token(token) {
        Document options;
        if (query.batch_size) BSON_APPEND_INT32(&options.bson, "batchSize", static_cast<int>(query.batch_size));
        BSON_APPEND_INT64(&options.bson, "maxAwaitTimeMS", query.await_ms);
        if (*token) BSON_APPEND_DOCUMENT(&options.bson, "resumeAfter", *token);
        bson_t *inserts =
            BCON_NEW("pipeline", "[", "{", "$match", "{", "operationType", BCON_UTF8("insert"), "}", "}", "]");
        stream = mongoc_collection_watch(collection, inserts, &options.bson);
        bson_destroy(inserts);
    }
    ~Watched() override { mongoc_change_stream_destroy(stream); }

    std::optional<Received> try_next() override {
        const bson_t *event;
        bson_error_t error;
        const bool found = mongoc_change_stream_next(stream, &event);
        if (!found && mongoc_change_stream_error_document(stream, &error, nullptr)) throw failure(error);
        if (const bson_t *newest = mongoc_change_stream_get_resume_token(stream)) {
            bson_destroy(*token);
            *token = bson_copy(newest);
        }
        bson_iter_t iter;
        if (!found || !bson_iter_init_find(&iter, event, "fullDocument")) return std::nullopt;
        std::uint32_t length;
        const std::uint8_t *data;
        bson_t document;
        bson_iter_document(&iter, &length, &data);
        bson_init_static(&document, data, length);
        return received(&document);
    }

    bool alive() override { return true; }

  private:
    mongoc_change_stream_t *stream;
    bson_t **token;
};

}  // namespace

Target::Target(const Settings &settings) : inner(new Inner{settings}) {
    mongoc_log_set_handler([](mongoc_log_level_t, const char *, const char *, void *) {}, nullptr);
    mongoc_init();
    bson_error_t error;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(settings.uri.c_str(), &error);
    if (!uri) throw failure(error);
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, settings.pool);
    if (!mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS)) {
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 5000);
    }
    inner->pool = mongoc_client_pool_new(uri);
    mongoc_uri_destroy(uri);
    mongoc_client_pool_set_error_api(inner->pool, MONGOC_ERROR_API_VERSION_2);
    mongoc_client_pool_set_appname(inner->pool, "dyno");
    inner->concern = mongoc_write_concern_new();
    const bool majority = settings.write_concern == "majority";
    const int w = majority ? MONGOC_WRITE_CONCERN_W_MAJORITY : std::stoi(settings.write_concern);
    mongoc_write_concern_set_w(inner->concern, w);
    if (!settings.journal.empty()) mongoc_write_concern_set_journal(inner->concern, settings.journal == "true");
}

// The program's end closes the connections.
Target::~Target() = default;

void Target::ping() {
    Lent lent(inner->pool);
    bson_error_t error;
    bson_t *command = BCON_NEW("ping", BCON_INT32(1));
    const bool good = mongoc_client_command_simple(lent.client, "admin", command, nullptr, nullptr, &error);
    bson_destroy(command);
    if (!good) throw failure(error);
}

void Target::insert(const Message &message) {
    Lent lent(inner->pool);
    const Settings &settings = inner->settings;
    bson_error_t error;
    bson_t document;
    bson_init(&document);
    BSON_APPEND_INT64(&document, "_id", message.id);
    BSON_APPEND_INT32(&document, "p", message.producer);
    BSON_APPEND_INT64(&document, "n", message.n);
    BSON_APPEND_INT64(&document, "i", message.intended_ns);
    BSON_APPEND_INT64(&document, "s", message.send_ns);
    const auto size = static_cast<std::uint32_t>(message.pad.size());
    static const std::uint8_t nothing = 0;
    BSON_APPEND_BINARY(&document, "pad", BSON_SUBTYPE_BINARY, size ? message.pad.data() : &nothing, size);
    auto *collection =
        mongoc_client_get_collection(lent.client, settings.database.c_str(), settings.collection.c_str());
    mongoc_collection_set_write_concern(collection, inner->concern);
    const bool good = mongoc_collection_insert_one(collection, &document, nullptr, nullptr, &error);
    mongoc_collection_destroy(collection);
    bson_destroy(&document);
    if (!good) throw failure(error);
}

std::unique_ptr<Source> Target::open(const Query &query) {
    if (!inner->collection) {
        mongoc_client_t *client = mongoc_client_pool_pop(inner->pool);
        const Settings &settings = inner->settings;
        inner->collection =
            mongoc_client_get_collection(client, settings.database.c_str(), settings.collection.c_str());
    }
    if (query.mode == Mode::change_stream) return std::make_unique<Watched>(inner->collection, query, &inner->token);
    return std::make_unique<Found>(inner->collection, query);
}

const char *Target::driver() { return "libmongoc (C++)"; }

std::string Target::version() { return mongoc_get_version(); }
