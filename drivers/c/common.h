/* Options, clock, barrier, pacing, stamps, and received messages. */
#ifndef DYNO_COMMON_H
#define DYNO_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#define PRODUCER_SHIFT 40
#define POSITION_LOST 136
#define NO_BATCH UINT32_MAX
/* Largest number of missing messages that a filter lists one by one; lower ones are requested as a range. */
#define NAMED 4096
/* Numbers in one block of the record of received messages. */
#define BLOCK 4096
/* Pings before `ready`, one after the other, so that all drivers start equally warm. */
#define PINGS 100
/* A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages are
 * requested this long after the opening. */
#define CATCH_UP_NS INT64_C(100000000)
/* Interval of queries for missing messages while a cursor is silent. */
#define ASK_EVERY_NS INT64_C(1000000000)
/* A cursor is blind if it still returns nothing this long after a query found messages that it missed. */
#define BLIND_AFTER_NS INT64_C(100000000)
/* Time for answers to inserts in flight after a stop request. */
#define GRACE_NS INT64_C(2000000000)

typedef struct {
    const char *uri, *database, *collection, *output, *clock, *write_concern, *journal, *schedule, *mode;
    int64_t messages, pool, producer, first, size, in_flight; /* in_flight 0: unbounded */
    int64_t producers, await_ms, batch_size, poll_ms, delay_us, idle_ns;
} options_t;

/* Ends the program with one line on standard error. */
void fail(int code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* Reads the options of a role; a wrong one ends the program with exit code 2. */
void parse_options(options_t *options, const char *role, int count, char **arguments);
/* Intended starts in ns after the start instant, NULL for a closed loop. */
uint64_t *load_schedule(const options_t *options);
/* Padding; the same bytes in every driver. */
uint8_t *padding(int64_t size);
/* Writes text as a JSON string to standard output. */
void print_json(const char *text);

int64_t now_ns(void);

/* The barrier on standard input, and all stop requests. */
void control_init(void);
void control_ready(void);
bool control_stopping(void);
int64_t control_start_ns(void);
int control_exit_code(void);
void control_set_exit_code(int code);
/* False if a stop request ended the wait. */
bool control_wait_until(int64_t at_ns);
void control_sleep(int64_t pause_ns);

void stamps_open(const char *path);
/* Whether to report this failure as an event. */
bool stamps_produced(uint64_t n, int64_t intended_ns, int64_t send_ns, int64_t ended_ns, bool failed);
void stamps_consumed(uint64_t n, int64_t send_ns, int64_t received_ns, uint32_t producer, uint32_t batch);
void stamps_flush(void);
/* Closes a producer's stamps, and prints its last event. Later answers have no stamp and are not counted. */
void stamps_close(void);

/* One bit for each of BLOCK numbers from `first` on. */
typedef struct {
    int64_t first;
    uint64_t came[BLOCK / 64], queried[BLOCK / 64];
} block_t;

/* Received messages of one producer, in ascending blocks; empty blocks are omitted. */
typedef struct {
    int64_t producer, newest;
    block_t **blocks;
    int64_t block_count, block_space;
} progress_t;

typedef struct {
    progress_t **producers; /* ascending */
    int producer_count;
    /* caught_up: messages that queries found and no cursor returned. */
    int64_t count, duplicates, caught_up;
} seen_t;

/* Whether the message is new: inserts in flight overtake each other. A message that the cursor returns after a query
 * found it, or that a query finds again, does not count as a duplicate. */
bool seen_accept(seen_t *seen, int64_t producer, int64_t n, bool by_query);
/* The newest overtaken messages, at most NAMED; there may be more below the number `below`. */
int seen_overtaken(const progress_t *progress, int64_t *missing, int64_t *below);

/* Detects blind tailable cursors; see "Blind cursors" in drivers/README.md. */
typedef struct {
    int64_t asked_ns, heard_ns;
    /* Messages sent later cannot have been skipped. */
    int64_t after_ns;
    /* Messages that queries found since the cursor's last one, and the send time of the oldest. */
    int64_t missed, missed_ns;
    /* When a conclusive message was found; 0 if none was. */
    int64_t suspect_ns;
} sight_t;

void sight_opened(sight_t *sight, int64_t at_ns);
/* Records that the cursor returned a message. */
void sight_heard(sight_t *sight, int64_t sent_ns, int64_t at_ns);
/* Whether it is time for a query while the cursor is silent. */
bool sight_asks(sight_t *sight, int64_t at_ns);
/* Records that a query found a message that the cursor did not return. */
void sight_found(sight_t *sight, int64_t sent_ns, int64_t at_ns);
/* Whether the cursor, which returned nothing since the last query, is blind. */
bool sight_is_blind(const sight_t *sight, int64_t at_ns);

#endif
