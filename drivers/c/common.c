#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 50000
#define SLICE_NS 100000000
#define MOST_MESSAGES ((INT64_C(1) << PRODUCER_SHIFT) - 1)
#define RECORD_BYTES 32

void fail(int code, const char *format, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *at = line; *at; at++) {
        if (*at == '\n') *at = ' ';
    }
    fprintf(stderr, "%s\n", line);
    fflush(stdout);
    _exit(code);
}

/* Options */

typedef struct {
    const char *name;
    const char **text;
    int64_t *number;
    int64_t low, high;
    const char *words; /* allowed words with spaces around, NULL: any */
    const char *zero;  /* word that stands for the number 0 */
} known_t;

static void take(const known_t *known, const char *value) {
    if (known->number) {
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (known->zero && strcmp(value, known->zero) == 0) {
            *known->number = 0;
        } else if (errno || *end || value[0] < '0' || value[0] > '9' || number < known->low || number > known->high) {
            fail(2, "option `--%s`: `%s` must be a whole number from %lld to %lld", known->name, value,
                 (long long)known->low, (long long)known->high);
        } else {
            *known->number = number;
        }
        return;
    }
    if (known->words) {
        char word[64];
        snprintf(word, sizeof word, " %s ", value);
        if (strchr(value, ' ') || !strstr(known->words, word)) {
            fail(2, "option `--%s`: `%s` must be one of%s", known->name, value, known->words);
        }
    }
    *known->text = value;
}

static void take_seconds(int64_t *to, const char *value) {
    char *end;
    double seconds = strtod(value, &end);
    if (*end || end == value || !(seconds > 0 && seconds < 1e9)) fail(2, "option `--idle-s`: `%s` must be above 0", value);
    *to = (int64_t)(seconds * 1e9);
}

void parse_options(options_t *o, const char *role, int count, char **arguments) {
    *o = (options_t){.clock = "monotonic", .write_concern = "1", .mode = "tailable", .messages = -1, .pool = 100,
                     .in_flight = 1, .producers = 1, .await_ms = 1000, .poll_ms = 1, .idle_ns = INT64_C(30000000000)};
    const known_t common[] = {
        {.name = "database", .text = &o->database},
        {.name = "collection", .text = &o->collection},
        {.name = "output", .text = &o->output},
        {.name = "clock", .text = &o->clock, .words = " monotonic realtime "},
        {.name = "messages", .number = &o->messages, .high = MOST_MESSAGES},
        {.name = "pool", .number = &o->pool, .low = 1, .high = 100000},
        {0},
    };
    int64_t concern;
    const known_t produce[] = {
        {.name = "producer", .number = &o->producer, .high = 65535},
        {.name = "first", .number = &o->first, .high = MOST_MESSAGES},
        {.name = "size", .number = &o->size, .high = 16000000},
        {.name = "in-flight", .number = &o->in_flight, .low = 1, .high = 1000000, .zero = "unbounded"},
        {.name = "write-concern", .number = &concern, .high = 50, .zero = "majority"},
        {.name = "journal", .text = &o->journal, .words = " true false "},
        {.name = "schedule", .text = &o->schedule},
        {0},
    };
    const known_t consume[] = {
        {.name = "mode", .text = &o->mode, .words = " tailable change-stream poll "},
        {.name = "producers", .number = &o->producers, .low = 1, .high = 65536},
        {.name = "await-ms", .number = &o->await_ms, .low = 1, .high = 3600000},
        {.name = "batch-size", .number = &o->batch_size, .low = 1, .high = 1000000},
        {.name = "poll-ms", .number = &o->poll_ms, .high = 3600000},
        {.name = "delay-us", .number = &o->delay_us, .high = 1000000000},
        {.name = "idle-s", .words = "seconds"},
        {0},
    };
    const known_t *tables[] = {common, strcmp(role, "produce") == 0 ? produce : consume};
    for (int at = 0; at < count; at += 2) {
        const known_t *known = NULL;
        for (int table = 0; table < 2 && strncmp(arguments[at], "--", 2) == 0; table++) {
            for (const known_t *entry = tables[table]; entry->name; entry++) {
                if (strcmp(entry->name, arguments[at] + 2) == 0) known = entry;
            }
        }
        if (!known) fail(2, "unknown option `%s`", arguments[at]);
        if (at + 1 == count) fail(2, "option `%s` needs a value", arguments[at]);
        if (strcmp(known->name, "idle-s") == 0) {
            take_seconds(&o->idle_ns, arguments[at + 1]);
            continue;
        }
        take(known, arguments[at + 1]);
        if (known->number == &concern) o->write_concern = arguments[at + 1];
    }
    for (const known_t *entry = common; entry->name; entry++) {
        if (entry->text ? !*entry->text : *entry->number < 0) fail(2, "option `--%s` is missing", entry->name);
    }
    o->uri = getenv("DYNO_URI");
    if (!o->uri || !*o->uri) fail(2, "the environment variable DYNO_URI is missing");
    extern clockid_t chosen_clock;
    chosen_clock = strcmp(o->clock, "realtime") == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

uint64_t *load_schedule(const options_t *options) {
    if (!options->schedule) return NULL;
    FILE *file = fopen(options->schedule, "rb");
    if (!file) fail(2, "option `--schedule`: %s", strerror(errno));
    uint64_t *schedule = malloc((size_t)(options->messages + 1) * sizeof *schedule);
    size_t entries = fread(schedule, sizeof *schedule, (size_t)options->messages, file);
    fclose(file);
    if ((int64_t)entries < options->messages) {
        fail(2, "option `--schedule`: %zu entries for %lld messages", entries, (long long)options->messages);
    }
    return schedule;
}

uint8_t *padding(int64_t size) {
    uint8_t *pad = malloc((size_t)size + 1);
    uint32_t state = 42;
    for (int64_t at = 0; at < size; at++) {
        state = state * 1664525u + 1013904223u;
        pad[at] = (uint8_t)(state >> 24);
    }
    return pad;
}

void print_json(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            printf("\\%c", byte);
        } else if (byte < 0x20) {
            printf("\\u%04x", byte);
        } else {
            putchar(byte);
        }
    }
    putchar('"');
}

/* Clock and control */

clockid_t chosen_clock;

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(chosen_clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static _Atomic int64_t start_ns;
static atomic_int exit_code;
static atomic_bool stopping;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;

static void stop(int code) {
    if (start_ns == 0) _exit(code);
    exit_code = code;
    stopping = true;
}

static void signalled(int number) {
    (void)number;
    stop(130);
}

static void *read_input(void *unused) {
    char *line = NULL;
    size_t capacity = 0;
    long long at;
    while (getline(&line, &capacity, stdin) >= 0) {
        if (start_ns == 0 && sscanf(line, "start %lld", &at) == 1) {
            pthread_mutex_lock(&start_lock);
            start_ns = at;
            pthread_cond_signal(&started);
            pthread_mutex_unlock(&start_lock);
        } else if (strncmp(line, "stop", 4) == 0) {
            stop(0);
        }
    }
    /* Without a start, nothing is sent. */
    if (start_ns == 0) _exit(0);
    free(line);
    return unused;
}

void control_init(void) {
    struct sigaction action = {.sa_handler = signalled, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void control_ready(void) {
    pthread_t thread;
    puts("ready");
    pthread_create(&thread, NULL, read_input, NULL);
    pthread_mutex_lock(&start_lock);
    while (start_ns == 0) pthread_cond_wait(&started, &start_lock);
    pthread_mutex_unlock(&start_lock);
}

bool control_stopping(void) { return stopping; }
int64_t control_start_ns(void) { return start_ns; }
int control_exit_code(void) { return exit_code; }
void control_set_exit_code(int code) { exit_code = code; }

void control_sleep(int64_t pause_ns) {
    while (pause_ns > 0 && !stopping) {
        int64_t slice = pause_ns < SLICE_NS ? pause_ns : SLICE_NS;
        nanosleep(&(struct timespec){.tv_nsec = slice}, NULL);
        pause_ns -= slice;
    }
}

bool control_wait_until(int64_t at_ns) {
    for (int64_t left = at_ns - now_ns(); left > 0 && !stopping; left = at_ns - now_ns()) {
        if (left > SPIN_NS) control_sleep(left - SPIN_NS < SLICE_NS ? left - SPIN_NS : SLICE_NS);
    }
    return !stopping;
}

/* Stamps: records of 32 bytes, on disk after at most a second. */

static FILE *stamps;

static void *flush_often(void *unused) {
    for (;;) {
        usleep(500000);
        stamps_flush();
    }
    return unused;
}

void stamps_open(const char *path) {
    pthread_t thread;
    stamps = fopen(path, "wb");
    if (!stamps) fail(2, "option `--output`: %s", strerror(errno));
    setvbuf(stamps, NULL, _IOFBF, 1 << 16);
    pthread_create(&thread, NULL, flush_often, NULL);
}

static pthread_mutex_t stamps_lock = PTHREAD_MUTEX_INITIALIZER;
static bool stamps_closed;
static int64_t sent, failures;

static void write_record(int64_t first, int64_t second, int64_t third, int64_t fourth) {
    int64_t record[RECORD_BYTES / 8] = {first, second, third, fourth};
    fwrite(record, RECORD_BYTES, 1, stamps);
}

bool stamps_produced(uint64_t n, int64_t intended_ns, int64_t send_ns, int64_t ended_ns, bool failed) {
    pthread_mutex_lock(&stamps_lock);
    bool tell = false;
    if (!stamps_closed) {
        write_record((int64_t)n, intended_ns, send_ns, failed ? -ended_ns : ended_ns);
        if (failed) {
            tell = ++failures <= 20;
        } else {
            sent++;
        }
    }
    pthread_mutex_unlock(&stamps_lock);
    return tell;
}

void stamps_consumed(uint64_t n, int64_t send_ns, int64_t received_ns, uint32_t producer, uint32_t batch) {
    write_record((int64_t)n, send_ns, received_ns, (int64_t)((uint64_t)batch << 32 | producer));
}

void stamps_flush(void) {
    if (fflush(stamps) != 0) fail(1, "cannot write stamps: %s", strerror(errno));
}

void stamps_close(void) {
    pthread_mutex_lock(&stamps_lock);
    stamps_closed = true;
    stamps_flush();
    pthread_mutex_unlock(&stamps_lock);
    printf("{\"event\":\"done\",\"messages\":%lld,\"failed\":%lld}\n", (long long)sent, (long long)failures);
}

/* Received messages */

static progress_t *progress_of(seen_t *seen, int64_t producer) {
    int at = 0;
    while (at < seen->producer_count && seen->producers[at]->producer < producer) at++;
    if (at == seen->producer_count || seen->producers[at]->producer != producer) {
        seen->producers = realloc(seen->producers, (size_t)(seen->producer_count + 1) * sizeof *seen->producers);
        size_t behind = (size_t)(seen->producer_count - at);
        memmove(seen->producers + at + 1, seen->producers + at, behind * sizeof *seen->producers);
        progress_t *progress = calloc(1, sizeof *progress);
        progress->producer = producer;
        progress->newest = -1;
        seen->producers[at] = progress;
        seen->producer_count++;
    }
    return seen->producers[at];
}

static block_t *block_of(progress_t *progress, int64_t n) {
    int64_t first = n - n % BLOCK, at = progress->block_count;
    /* What comes is nearly always of the last blocks. */
    while (at > 0 && progress->blocks[at - 1]->first > first) at--;
    if (at > 0 && progress->blocks[at - 1]->first == first) return progress->blocks[at - 1];
    if (progress->block_count == progress->block_space) {
        progress->block_space = 2 * progress->block_space + 16;
        progress->blocks = realloc(progress->blocks, (size_t)progress->block_space * sizeof *progress->blocks);
    }
    size_t behind = (size_t)(progress->block_count - at);
    memmove(progress->blocks + at + 1, progress->blocks + at, behind * sizeof *progress->blocks);
    block_t *block = calloc(1, sizeof *block);
    block->first = first;
    progress->blocks[at] = block;
    progress->block_count++;
    return block;
}

bool seen_accept(seen_t *seen, int64_t producer, int64_t n, bool by_query) {
    progress_t *progress = progress_of(seen, producer);
    block_t *block = block_of(progress, n);
    int64_t at = (n % BLOCK) / 64;
    uint64_t bit = UINT64_C(1) << (n % 64);
    if (n > progress->newest) progress->newest = n;
    if (!(block->came[at] & bit)) {
        block->came[at] |= bit;
        if (by_query) {
            block->queried[at] |= bit;
            seen->caught_up++;
        }
        seen->count++;
        return true;
    }
    if (by_query) return false;
    if (block->queried[at] & bit) {
        block->queried[at] &= ~bit;
        seen->caught_up--;
    } else {
        seen->duplicates++;
    }
    return false;
}

int seen_overtaken(const progress_t *progress, int64_t *missing, int64_t *below) {
    static const uint64_t nothing[BLOCK / 64];
    int count = 0;
    int64_t block = progress->block_count - 1;
    for (int64_t upper = progress->newest; upper >= 0; upper -= upper % 64 + 1) {
        while (block >= 0 && progress->blocks[block]->first > upper) block--;
        bool is_there = block >= 0 && upper - progress->blocks[block]->first < BLOCK;
        uint64_t came = (is_there ? progress->blocks[block]->came : nothing)[(upper % BLOCK) / 64];
        for (int64_t n = upper; n >= upper - upper % 64 && came != UINT64_MAX; n--) {
            if (came & UINT64_C(1) << (n % 64)) continue;
            missing[count++] = n;
            if (count == NAMED) {
                *below = n;
                return count;
            }
        }
    }
    *below = 0;
    return count;
}

/* Blind cursors */

void sight_opened(sight_t *sight, int64_t at_ns) {
    sight->after_ns = at_ns + CATCH_UP_NS;
    sight_heard(sight, 0, at_ns);
}

void sight_heard(sight_t *sight, int64_t sent_ns, int64_t at_ns) {
    sight->heard_ns = at_ns;
    if (sent_ns > sight->after_ns) sight->after_ns = sent_ns;
    sight->missed = sight->suspect_ns = 0;
    sight->missed_ns = INT64_MAX;
}

bool sight_asks(sight_t *sight, int64_t at_ns) {
    if (at_ns - sight->asked_ns < ASK_EVERY_NS) return false;
    sight->asked_ns = at_ns;
    return true;
}

void sight_found(sight_t *sight, int64_t sent_ns, int64_t at_ns) {
    int64_t missed_ns = sent_ns > sight->heard_ns ? sent_ns : sight->heard_ns;
    if (missed_ns < sight->missed_ns) sight->missed_ns = missed_ns;
    sight->missed++;
    if (sent_ns > sight->after_ns && sight->suspect_ns == 0) sight->suspect_ns = at_ns;
}

bool sight_is_blind(const sight_t *sight, int64_t at_ns) {
    return sight->suspect_ns && at_ns - sight->suspect_ns >= BLIND_AFTER_NS;
}
