/* Options, clock, barrier, pacing, stamps, and what a consumer has seen. */
#ifndef DYNO_COMMON_H
#define DYNO_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#define PRODUCER_SHIFT 40
#define POSITION_LOST 136
#define NO_BATCH UINT32_MAX
/* Numbers below the newest that a consumer still expects, for each producer: more than any pool reorders. */
#define WINDOW 4096
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
void stamps_produced(uint64_t n, int64_t intended_ns, int64_t send_ns, int64_t acknowledged_ns);
void stamps_consumed(uint64_t n, int64_t send_ns, int64_t received_ns, uint32_t producer, uint32_t batch);
void stamps_flush(void);

/* What came of one producer; missing numbers ascend. */
typedef struct {
    int64_t producer, newest;
    int64_t missing[WINDOW];
    int missing_count;
} progress_t;

typedef struct {
    progress_t **producers; /* ascending */
    int producer_count;
    int64_t count, duplicates;
} seen_t;

/* Whether the message is new: inserts in flight overtake each other. */
bool seen_accept(seen_t *seen, int64_t producer, int64_t n);

#endif
