#include "consumer.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace {

constexpr std::int64_t MS = 1'000'000;
constexpr std::int64_t EMPTY_PAUSE_NS = 5 * MS;
constexpr std::int64_t BACK_OFF_FIRST_NS = 10 * MS;
constexpr std::int64_t BACK_OFF_LAST_NS = 1000 * MS;

Mode mode_of(const std::string &word) {
    if (word == "tailable") return Mode::tailable;
    return word == "poll" ? Mode::poll : Mode::change_stream;
}

}  // namespace

Consumer::Consumer(Target &target, const options_t &options)
    : target(target), options(options), mode(mode_of(options.mode)), back_off_ns(BACK_OFF_FIRST_NS) {
    open(true);
    first = next();
}

// Filter for all missing messages; without `newer`, only for overtaken ones.
Wanted Consumer::missing(bool newer) const {
    Wanted wanted{seen.count == 0};
    std::optional<std::int64_t> above;
    for (int at = 0; at < seen.producer_count; at++) {
        const progress_t &progress = *seen.producers[at];
        const std::int64_t id = progress.producer << PRODUCER_SHIFT;
        if (newer && id > 0) wanted.ranges.push_back({above, id});
        above = id + progress.newest;
        std::int64_t overtaken[NAMED], below;
        const int count = seen_overtaken(&progress, overtaken, &below);
        if (below > 0) wanted.ranges.push_back({id - 1, id + below});
        std::transform(overtaken, overtaken + count, std::back_inserter(wanted.named),
                       [id](std::int64_t n) { return id + n; });
    }
    if (newer && above) wanted.ranges.push_back({above, std::nullopt});
    return wanted;
}

void Consumer::open(bool everything) {
    source = target.open({mode, everything ? Wanted{true} : missing(true), options.batch_size, options.await_ms});
    // The first read opens it.
    is_opening = mode == Mode::tailable;
    catch_up_ns = 0;
    opened++;
}

std::optional<Received> Consumer::next() {
    auto found = source->try_next();
    if (std::exchange(is_opening, false)) {
        const std::int64_t opened_ns = now_ns();
        sight_opened(&sight, opened_ns);
        catch_up_ns = opened_ns + CATCH_UP_NS;
    }
    return found;
}

void Consumer::tell() {
    if (!lost || std::exchange(lost->reported, true)) return;
    const std::string code = lost->code ? std::to_string(*lost->code) : "null";
    std::printf("{\"event\":\"reopened\",\"reason\":\"%s\",\"at_ns\":%" PRId64 ",\"code\":%s,\"message\":", lost->reason,
                now_ns(), code.c_str());
    print_json(lost->message.c_str());
    if (lost->found) std::printf(",\"blind_ns\":%" PRId64 ",\"found\":%" PRId64, lost->blind_ns, lost->found);
    std::printf("}\n");
}

void Consumer::receive(const Received &message, bool by_query) {
    last_ns = now_ns();
    last_sent_ns = std::min(message.send_ns, last_ns);
    back_off_ns = BACK_OFF_FIRST_NS;
    const bool is_new = seen_accept(&seen, message.producer, message.n, by_query);
    if (!by_query) {
        sight_heard(&sight, last_sent_ns, last_ns);
    } else if (is_new) {
        sight_found(&sight, last_sent_ns, last_ns);
    }
    if (!is_new) return;
    stamps_consumed(static_cast<std::uint64_t>(message.n), message.send_ns, last_ns,
                    static_cast<std::uint32_t>(message.producer), NO_BATCH);
    if (options.delay_us) control_sleep(options.delay_us * 1000);
}

// Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
void Consumer::catch_up(bool newer) {
    const auto found = target.open({Mode::poll, missing(newer), 0, 0});
    while (const auto message = found->try_next()) receive(*message, true);
}

// The source is dead without an error: everything was read, or a tailable cursor found no message.
std::optional<Consumer::Lost> Consumer::ended() {
    source.reset();
    if (mode == Mode::poll) {
        control_sleep(options.poll_ms * MS);
        return std::nullopt;
    }
    empty++;
    control_sleep(EMPTY_PAUSE_NS);
    const bool reported = lost && std::string("empty") == lost->reason;
    return Lost{"empty", std::nullopt, "the cursor died without finding a message", reported};
}

Consumer::Lost Consumer::broken(const Failure &failure) {
    source.reset();
    if (failure.code == POSITION_LOST) {
        position_lost++;
        return {"position-lost", failure.code, failure.what(), false};
    }
    control_sleep(back_off_ns);
    back_off_ns = std::min(2 * back_off_ns, BACK_OFF_LAST_NS);
    return {failure.is_network ? "connection" : "other", failure.code, failure.what(), false};
}

// The cursor does not return messages that queries find.
Consumer::Lost Consumer::blind() {
    source.reset();
    return {"blind", std::nullopt, "the cursor did not return messages that queries found", false, now_ns() - sight.missed_ns, sight.missed};
}

void Consumer::run() {
    control_ready();
    last_ns = control_start_ns();
    bool idle = false;
    while (seen.count < options.messages && !control_stopping()) {
        std::optional<Received> found = std::exchange(first, std::nullopt);
        try {
            if (!source) {
                // After a lost position, read from the oldest message on.
                open(lost && lost->code == POSITION_LOST);
            } else if (mode == Mode::tailable && idle && sight_asks(&sight, now_ns())) {
                catch_up(true);
            } else if (!found && catch_up_ns && last_sent_ns > catch_up_ns) {
                catch_up_ns = 0;
                catch_up(false);
            }
            if (!found) found = next();
            if (mode != Mode::poll) tell();
            if (!found && !source->alive()) {
                lost = ended();
            } else if (!found && mode == Mode::tailable && sight_is_blind(&sight, now_ns())) {
                lost = blind();
            }
        } catch (const Failure &failure) {
            lost = broken(failure);
        }
        idle = !found;
        if (found) {
            lost.reset();
            receive(*found, false);
        } else if (now_ns() - last_ns > options.idle_ns) {
            control_set_exit_code(5);
            break;
        }
    }
    stamps_flush();
    std::printf("{\"event\":\"done\",\"messages\":%" PRId64 ",\"failed\":0,\"reopened\":%" PRId64
                ",\"reopened_empty\":%" PRId64 ",\"position_lost\":%" PRId64 ",\"caught_up\":%" PRId64
                ",\"duplicates_skipped\":%" PRId64 "}\n",
                seen.count, mode == Mode::poll ? 0 : opened - 1, empty, position_lost, seen.caught_up, seen.duplicates);
}
