/* Options, clock, barrier, pacing, stamps, and what a consumer has seen. */
#ifndef DYNO_COMMON_H
#define DYNO_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#define PRODUCER_SHIFT 40
#define POSITION_LOST 136
#define NO_BATCH UINT32_MAX
/* Missing numbers that a filter names one by one; what is missing below them is asked for as a range. */
#define NAMED 4096
/* Numbers in one block of the record of what came. */
#define BLOCK 4096
/* Pings before `ready`, one after the other: each driver starts as warm as the others. */
#define PINGS 100
/* A tailable cursor that is opened while inserts run may skip some of them (seen with the embedded server): so
 * long after the opening what is missing is asked for. */
#define CATCH_UP_NS INT64_C(100000000)
/* While a cursor is silent, what is missing is asked for so often. */
#define ASK_EVERY_NS INT64_C(1000000000)
/* So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind. */
#define BLIND_AFTER_NS INT64_C(100000000)
/* After a request to stop, inserts in flight have this long to be answered. */
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
/* The same bytes in every driver. */
uint8_t *padding(int64_t size);
/* Writes text as a JSON string to standard output. */
void print_json(const char *text);

int64_t now_ns(void);

/* The barrier on standard input, and every reason to stop. */
void control_init(void);
void control_ready(void);
bool control_stopping(void);
int64_t control_start_ns(void);
int control_exit_code(void);
void control_set_exit_code(int code);
/* False if the wait was ended by a request to stop. */
bool control_wait_until(int64_t at_ns);
void control_sleep(int64_t pause_ns);

void stamps_open(const char *path);
/* Whether a failure is one of those to tell. */
bool stamps_produced(uint64_t n, int64_t intended_ns, int64_t send_ns, int64_t ended_ns, bool failed);
void stamps_consumed(uint64_t n, int64_t send_ns, int64_t received_ns, uint32_t producer, uint32_t batch);
void stamps_flush(void);
/* Ends a producer's stamps and prints its last event. Inserts that are answered later have no stamp and are not
 * counted. */
void stamps_close(void);

/* One bit for each of BLOCK numbers from `first` on. */
typedef struct {
    int64_t first;
    uint64_t came[BLOCK / 64], queried[BLOCK / 64];
} block_t;

/* What came of one producer; blocks ascend, one of which nothing came is not there. */
typedef struct {
    int64_t producer, newest;
    block_t **blocks;
    int64_t block_count, block_space;
} progress_t;

typedef struct {
    progress_t **producers; /* ascending */
    int producer_count;
    /* caught_up: what queries found and no cursor brought. */
    int64_t count, duplicates, caught_up;
} seen_t;

/* Whether the message is new: inserts in flight overtake each other. What the cursor brings after a query found it is
 * no duplicate, and what a query finds again is none either. */
bool seen_accept(seen_t *seen, int64_t producer, int64_t n, bool by_query);
/* The newest of those that were overtaken, NAMED at most; `below` is the number below which there may be more. */
int seen_overtaken(const progress_t *progress, int64_t *missing, int64_t *below);

/* Whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md. */
typedef struct {
    int64_t asked_ns, heard_ns;
    /* What was sent later cannot have been skipped. */
    int64_t after_ns;
    /* Messages that queries found since the cursor's last one, and the start of the oldest. */
    int64_t missed, missed_ns;
    /* When one was found that proves something; 0 if none was. */
    int64_t suspect_ns;
} sight_t;

void sight_opened(sight_t *sight, int64_t at_ns);
/* The cursor has brought a message. */
void sight_heard(sight_t *sight, int64_t sent_ns, int64_t at_ns);
/* Whether it is time for a query; the cursor is silent. */
bool sight_asks(sight_t *sight, int64_t at_ns);
/* A query found a message that the cursor has not brought. */
void sight_found(sight_t *sight, int64_t sent_ns, int64_t at_ns);
/* The cursor, asked after the last query, has answered with nothing. */
bool sight_is_blind(const sight_t *sight, int64_t at_ns);

#endif
