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

// An insert or a connection that failed; the code is the server's, if it is one of the server.
struct Failure : std::runtime_error {
    Failure(const std::string &text, std::optional<int> code) : std::runtime_error(text), code(code) {}
    std::optional<int> code;
};

// Connections that threads share; every call throws Failure.
class Target {
  public:
    explicit Target(const Settings &settings);
    ~Target();
    void ping();
    void insert(const Message &message);
    static const char *driver();
    static std::string version();

  private:
    struct Inner;
    std::unique_ptr<Inner> inner;
};
