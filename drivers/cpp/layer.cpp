#include "layer.hpp"

#include <mongoc/mongoc.h>

struct Target::Inner {
    Settings settings;
    mongoc_client_pool_t *pool = nullptr;
    mongoc_write_concern_t *concern = nullptr;
};

namespace {

std::optional<int> server_code(const bson_error_t &error) {
    if (error.domain != MONGOC_ERROR_SERVER) return std::nullopt;
    return static_cast<int>(error.code);
}

// A client of the pool for as long as it is needed.
class Lent {
  public:
    explicit Lent(mongoc_client_pool_t *pool) : pool(pool), client(mongoc_client_pool_pop(pool)) {}
    ~Lent() { mongoc_client_pool_push(pool, client); }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    mongoc_client_pool_t *pool;
    mongoc_client_t *client;
};

}  // namespace

Target::Target(const Settings &settings) : inner(new Inner{settings}) {
    mongoc_log_set_handler([](mongoc_log_level_t, const char *, const char *, void *) {}, nullptr);
    mongoc_init();
    bson_error_t error;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(settings.uri.c_str(), &error);
    if (!uri) throw Failure(error.message, std::nullopt);
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

// The program ends with its connections.
Target::~Target() = default;

void Target::ping() {
    Lent lent(inner->pool);
    bson_error_t error;
    bson_t *command = BCON_NEW("ping", BCON_INT32(1));
    const bool good = mongoc_client_command_simple(lent.client, "admin", command, nullptr, nullptr, &error);
    bson_destroy(command);
    if (!good) throw Failure(error.message, server_code(error));
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
    if (!good) throw Failure(error.message, server_code(error));
}

const char *Target::driver() { return "libmongoc (C++)"; }

std::string Target::version() { return mongoc_get_version(); }
