// Interface to a driver; layer.cpp implements it on libmongoc.
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

// A failed command or connection, with the server's error code if the server reported it.
struct Failure : std::runtime_error {
    Failure(const std::string &text, std::optional<int> code, bool is_network)
        : std::runtime_error(text), code(code), is_network(is_network) {}
    std::optional<int> code;
    bool is_network;
};

// Requested messages: all, or those with an `_id` in a range or in a list.
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

// A cursor of any mode; the first read opens it.
class Source {
  public:
    virtual ~Source() = default;
    // The next available message, if any; throws Failure.
    virtual std::optional<Received> try_next() = 0;
    // False if no message can follow.
    virtual bool alive() = 0;
};

// Connections shared by threads; every call may throw Failure. One thread reads the sources, which share one connection.
class Target {
  public:
    explicit Target(const Settings &settings);
    ~Target();
    void ping();
    void insert(const Message &message);
    // A change stream continues after the last event of the previous one.
    std::unique_ptr<Source> open(const Query &query);
    static const char *driver();
    static std::string version();

  private:
    struct Inner;
    std::unique_ptr<Inner> inner;
};
