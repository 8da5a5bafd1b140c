// The consumer: a tailable cursor, a change stream, or a repeated query.
#pragma once

#include "layer.hpp"

extern "C" {
#include "../c/common.h"
}

class Consumer {
  public:
    // Opens the first cursor; throws Failure.
    Consumer(Target &target, const options_t &options);
    // Returns after the last event.
    void run();

  private:
    // Reason for opening a source again.
    struct Lost {
        const char *reason;
        std::optional<int> code;
        std::string message;
        bool reported;
        // For a blind cursor: how long it was blind, and how many messages queries found in that time.
        std::int64_t blind_ns = 0, found = 0;
    };

    void open(bool everything);
    void tell();
    void receive(const Received &message, bool by_query);
    void catch_up(bool newer);
    std::optional<Received> next();
    std::optional<Lost> ended();
    Lost broken(const Failure &failure);
    Lost blind();
    Wanted missing(bool newer) const;

    Target &target;
    options_t options;
    Mode mode;
    std::unique_ptr<Source> source;
    std::optional<Received> first;
    std::optional<Lost> lost;
    seen_t seen{};
    sight_t sight{};
    std::int64_t opened = 0, empty = 0, position_lost = 0, last_ns = 0, last_sent_ns = 0, catch_up_ns = 0, back_off_ns;
    bool is_opening = false;
};
