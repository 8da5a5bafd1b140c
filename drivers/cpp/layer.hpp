// What the program needs of a driver; layer.cpp has it on libmongoc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct Message {
    std::int64_t id, n, intended_ns, send_ns;
    std::int32_t producer;
    const std::vector<std::uint8_t> &pad;
};

struct Settings {
    std::string uri, database, collection, write_concern, journal;
    int pool;
};

// A command or a connection that failed; the code is the server's, if it is one of the server.
struct Failure : std::runtime_error {
    Failure(const std::string &text, std::optional<int> code, bool is_network)
        : std::runtime_error(text), code(code), is_network(is_network) {}
    std::optional<int> code;
    bool is_network;
};

// Which messages are asked for: all, or those with an `_id` inside of a range or among those named.
struct Wanted {
    bool everything;
    struct Range {
        std::optional<std::int64_t> above, below;
    };
    std::vector<Range> ranges{};
    std::vector<std::int64_t> named{};
};

enum class Mode { tailable, change_stream, poll };

struct Query {
    Mode mode;
    Wanted wanted;
    std::int64_t batch_size, await_ms;  // batch_size 0: the driver's default
};

struct Received {
    std::int64_t n, send_ns, producer;
};

// A cursor of any mode, opened by its first read.
class Source {
  public:
    virtual ~Source() = default;
    // The next message, if there is one now; throws Failure.
    virtual std::optional<Received> try_next() = 0;
    // False when no message can come any more.
    virtual bool alive() = 0;
};

// Connections that threads share; every call throws Failure. Sources are read by one thread and share one connection.
class Target {
  public:
    explicit Target(const Settings &settings);
    ~Target();
    void ping();
    void insert(const Message &message);
    // A change stream goes on after the last event of the one before.
    std::unique_ptr<Source> open(const Query &query);
    static const char *driver();
    static std::string version();

  private:
    struct Inner;
    std::unique_ptr<Inner> inner;
};
