// Producer and consumer of `dyno tail` in C++: threads, each with one insert in flight. Options, barrier and stamps
// come from drivers/c; only layer.hpp depends on a driver.
#include "consumer.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace {

void version() {
    std::printf(
        "{\"contract\":1,\"language\":\"c++\",\"driver\":\"%s\",\"driver_version\":\"%s\",\"runtime\":\"g++\","
        "\"runtime_version\":\"%s\",\"roles\":[\"produce\",\"consume\"],\"in_flight\":[\"one\",\"bounded\",\"unbounded\"],"
        "\"unbounded\":\"program\",\"modes\":[\"tailable\",\"change-stream\",\"poll\"],\"pool\":true}\n",
        Target::driver(), Target::version().c_str(), __VERSION__);
}

struct Producer {
    options_t options;
    Target &target;
    std::vector<std::uint8_t> pad;
    const std::uint64_t *schedule;
    std::atomic<std::int64_t> next{0}, lanes{0};
    std::mutex report{};

    void send(std::int64_t n, std::int64_t intended_ns, std::int64_t send_ns) {
        const std::int64_t id = (options.producer << PRODUCER_SHIFT) + n;
        std::optional<Failure> failure;
        try {
            target.insert({id, n, intended_ns, send_ns, static_cast<std::int32_t>(options.producer), pad});
        } catch (const Failure &caught) {
            failure = caught;
        }
        const std::int64_t ended_ns = now_ns();
        if (stamps_produced(static_cast<std::uint64_t>(n), intended_ns, send_ns, ended_ns, failure.has_value())) {
            const std::lock_guard<std::mutex> lock(report);
            const std::string code = failure->code ? std::to_string(*failure->code) : "null";
            std::printf("{\"event\":\"failed\",\"n\":%lld,\"code\":%s,\"message\":", static_cast<long long>(n), code.c_str());
            print_json(failure->what());
            std::printf("}\n");
        }
    }

    void lane() {
        const bool closed = !schedule && options.in_flight != 0;
        for (std::int64_t index = next++; index < options.messages; index = next++) {
            const std::int64_t due_ns = control_start_ns() + (schedule ? static_cast<std::int64_t>(schedule[index]) : 0);
            if (!control_wait_until(due_ns)) break;
            const std::int64_t send_ns = now_ns();
            send(options.first + index, closed ? send_ns : due_ns, send_ns);
        }
        lanes--;
    }

    void run() {
        control_ready();
        // If unbounded, due messages wait for a thread here, in front of the pool.
        const std::int64_t wanted = std::min(options.in_flight ? options.in_flight : options.pool, options.messages);
        lanes = wanted;
        try {
            for (std::int64_t at = 0; at < wanted; at++) std::thread([this] { lane(); }).detach();
        } catch (const std::system_error &error) {
            fail(1, "cannot start %lld threads: %s", static_cast<long long>(wanted), error.what());
        }
        std::int64_t give_up_ns = INT64_MAX;
        while (lanes > 0 && now_ns() < give_up_ns) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (control_stopping() && give_up_ns == INT64_MAX) give_up_ns = now_ns() + GRACE_NS;
        }
        const std::lock_guard<std::mutex> lock(report);
        stamps_close();
    }
};

}  // namespace

int main(int count, char **arguments) {
    const std::string role = count > 1 ? arguments[1] : "";
    if (role == "version") {
        version();
        return 0;
    }
    const bool produces = role == "produce";
    if (!produces && role != "consume") fail(2, "`%s` is not one of version, produce, consume", role.c_str());
    options_t options;
    parse_options(&options, role.c_str(), count - 2, arguments + 2);
    std::uint64_t *schedule = load_schedule(&options);
    std::uint8_t *bytes = padding(options.size);
    stamps_open(options.output);
    control_init();
    try {
        Target target({options.uri, options.database, options.collection, options.write_concern,
                       options.journal ? options.journal : "", static_cast<int>(options.pool)});
        for (int at = 0; at < PINGS; at++) target.ping();
        if (produces) {
            Producer{options, target, {bytes, bytes + options.size}, schedule}.run();
        } else {
            Consumer(target, options).run();
        }
        std::fflush(stdout);
        _exit(control_exit_code());
    } catch (const Failure &failure) {
        fail(4, "cannot use the server: %s", failure.what());
    }
}
