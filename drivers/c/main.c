/* Producer and consumer of `dyno tail` on libmongoc: threads, each with one insert in flight. */
#define _GNU_SOURCE
#include "common.h"

#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define EMPTY_PAUSE_NS (5 * MS)
#define BACK_OFF_FIRST_NS (10 * MS)
#define BACK_OFF_LAST_NS (1000 * MS)

static options_t options;
static mongoc_client_pool_t *pool;

static void version(void) {
    printf("{\"contract\":1,\"language\":\"c\",\"driver\":\"libmongoc\",\"driver_version\":\"%s\","
           "\"runtime\":\"gcc\",\"runtime_version\":\"%s\",\"roles\":[\"produce\",\"consume\"],"
           "\"in_flight\":[\"one\",\"bounded\",\"unbounded\"],\"unbounded\":\"program\","
           "\"modes\":[\"tailable\",\"change-stream\",\"poll\"],\"pool\":true}\n",
           mongoc_get_version(), __VERSION__);
}

static void connect_pool(void) {
    bson_error_t error;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(options.uri, &error);
    if (!uri) fail(4, "cannot use the server: %s", error.message);
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, (int32_t)options.pool);
    if (!mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS)) {
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 5000);
    }
    pool = mongoc_client_pool_new(uri);
    mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
    mongoc_client_pool_set_appname(pool, "dyno");
    mongoc_uri_destroy(uri);
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    bson_t *ping = BCON_NEW("ping", BCON_INT32(1));
    for (int at = 0; at < PINGS; at++) {
        if (!mongoc_client_command_simple(client, "admin", ping, NULL, NULL, &error)) {
            fail(4, "cannot use the server: %s", error.message);
        }
    }
    bson_destroy(ping);
    mongoc_client_pool_push(pool, client);
}

/* Prints an event about an error. Client errors have their own domain, with codes that are not the server's. */
static void print_error(const bson_error_t *error) {
    if (error->domain == MONGOC_ERROR_SERVER) {
        printf("\"code\":%u,\"message\":", error->code);
    } else {
        printf("\"code\":null,\"message\":");
    }
    print_json(error->message);
    printf("}\n");
}

/* Producer */

static uint64_t *schedule;
static uint8_t *pad;
static _Atomic int64_t next_index;
static atomic_int lanes_running;
static pthread_mutex_t report = PTHREAD_MUTEX_INITIALIZER;

static mongoc_write_concern_t *write_concern(void) {
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    if (strcmp(options.write_concern, "majority") == 0) {
        mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
    } else {
        mongoc_write_concern_set_w(concern, atoi(options.write_concern));
    }
    if (options.journal) mongoc_write_concern_set_journal(concern, strcmp(options.journal, "true") == 0);
    return concern;
}

static void send_message(mongoc_collection_t *collection, int64_t n, int64_t intended_ns, int64_t send_ns) {
    bson_t message = BSON_INITIALIZER;
    bson_error_t error;
    BSON_APPEND_INT64(&message, "_id", (options.producer << PRODUCER_SHIFT) + n);
    BSON_APPEND_INT32(&message, "p", (int32_t)options.producer);
    BSON_APPEND_INT64(&message, "n", n);
    BSON_APPEND_INT64(&message, "i", intended_ns);
    BSON_APPEND_INT64(&message, "s", send_ns);
    BSON_APPEND_BINARY(&message, "pad", BSON_SUBTYPE_BINARY, pad, (uint32_t)options.size);
    bool good = mongoc_collection_insert_one(collection, &message, NULL, NULL, &error);
    int64_t ended_ns = now_ns();
    bson_destroy(&message);
    if (stamps_produced((uint64_t)n, intended_ns, send_ns, ended_ns, !good)) {
        pthread_mutex_lock(&report);
        printf("{\"event\":\"failed\",\"n\":%lld,", (long long)n);
        print_error(&error);
        pthread_mutex_unlock(&report);
    }
}

static void *lane(void *unused) {
    /* A client is one connection to each server; additional lanes wait for one. */
    bool closed = !schedule && options.in_flight != 0;
    mongoc_write_concern_t *concern = write_concern();
    for (int64_t index = next_index++; index < options.messages; index = next_index++) {
        int64_t due_ns = control_start_ns() + (schedule ? (int64_t)schedule[index] : 0);
        if (!control_wait_until(due_ns)) break;
        int64_t send_ns = now_ns();
        mongoc_client_t *client = mongoc_client_pool_pop(pool);
        mongoc_collection_t *collection = mongoc_client_get_collection(client, options.database, options.collection);
        mongoc_collection_set_write_concern(collection, concern);
        send_message(collection, options.first + index, closed ? send_ns : due_ns, send_ns);
        mongoc_collection_destroy(collection);
        mongoc_client_pool_push(pool, client);
    }
    mongoc_write_concern_destroy(concern);
    lanes_running--;
    return unused;
}

static void produce(void) {
    control_ready();
    /* A blocking driver has one insert in flight per thread. If unbounded, due messages wait for a thread here, in
     * front of the pool. */
    int64_t lanes = options.in_flight ? options.in_flight : options.pool;
    if (lanes > options.messages) lanes = options.messages;
    for (int64_t at = 0; at < lanes; at++) {
        pthread_t thread;
        lanes_running++;
        if (pthread_create(&thread, NULL, lane, NULL) != 0) fail(1, "cannot start %lld threads", (long long)lanes);
        pthread_detach(thread);
    }
    int64_t give_up_ns = INT64_MAX;
    while (lanes_running > 0 && now_ns() < give_up_ns) {
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
        if (control_stopping() && give_up_ns == INT64_MAX) give_up_ns = now_ns() + GRACE_NS;
    }
    pthread_mutex_lock(&report);
    stamps_close();
}

/* Consumer */

typedef enum { NOT_LOST, EMPTY, LOST_POSITION, CONNECTION, BLIND, OTHER } reason_t;
static const char *const REASONS[] = {"", "empty", "position-lost", "connection", "blind", "other"};

static mongoc_collection_t *collection;
static mongoc_cursor_t *cursor;
static mongoc_change_stream_t *stream;
static bson_t *token;
static seen_t seen;
static sight_t sight;
static bool is_opening;
static int64_t opened, empty, position_lost, last_ns, last_sent_ns, catch_up_ns, back_off_ns = BACK_OFF_FIRST_NS;

static void append_range(bson_t *clauses, int *at, const int64_t *above, const int64_t *below) {
    bson_t clause, range;
    char key[16];
    snprintf(key, sizeof key, "%d", (*at)++);
    bson_append_document_begin(clauses, key, -1, &clause);
    BSON_APPEND_DOCUMENT_BEGIN(&clause, "_id", &range);
    if (above) BSON_APPEND_INT64(&range, "$gt", *above);
    if (below) BSON_APPEND_INT64(&range, "$lt", *below);
    bson_append_document_end(&clause, &range);
    bson_append_document_end(clauses, &clause);
}

/* Filter for all missing messages; without `newer`, only for overtaken ones. */
static bson_t *seen_filter(bool newer) {
    static int64_t overtaken[NAMED];
    bson_t *filter = bson_new(), clauses, clause, range, list;
    if (seen.producer_count == 0) return filter;
    int at = 0, listed = 0;
    int64_t above = 0;
    char key[16];
    BSON_APPEND_ARRAY_BEGIN(filter, "$or", &clauses);
    for (int p = 0; p < seen.producer_count && newer; p++) {
        int64_t first = seen.producers[p]->producer << PRODUCER_SHIFT;
        if (first > 0) append_range(&clauses, &at, p > 0 ? &above : NULL, &first);
        above = first + seen.producers[p]->newest;
    }
    if (newer) append_range(&clauses, &at, &above, NULL);
    for (int p = 0; p < seen.producer_count; p++) {
        int64_t before = (seen.producers[p]->producer << PRODUCER_SHIFT) - 1, below;
        seen_overtaken(seen.producers[p], overtaken, &below);
        below += before + 1;
        if (below > before + 1) append_range(&clauses, &at, &before, &below);
    }
    snprintf(key, sizeof key, "%d", at);
    bson_append_document_begin(&clauses, key, -1, &clause);
    BSON_APPEND_DOCUMENT_BEGIN(&clause, "_id", &range);
    BSON_APPEND_ARRAY_BEGIN(&range, "$in", &list);
    for (int p = 0; p < seen.producer_count; p++) {
        int64_t first = seen.producers[p]->producer << PRODUCER_SHIFT, below;
        int count = seen_overtaken(seen.producers[p], overtaken, &below);
        for (int missing = 0; missing < count; missing++) {
            snprintf(key, sizeof key, "%d", listed++);
            BSON_APPEND_INT64(&list, key, first + overtaken[missing]);
        }
    }
    bson_append_array_end(&range, &list);
    bson_append_document_end(&clause, &range);
    bson_append_document_end(&clauses, &clause);
    bson_append_array_end(filter, &clauses);
    return filter;
}

static void open_source(reason_t lost) {
    bson_t query = BSON_INITIALIZER;
    if (options.batch_size) BSON_APPEND_INT32(&query, "batchSize", (int32_t)options.batch_size);
    if (strcmp(options.mode, "change-stream") == 0) {
        bson_t *inserts = BCON_NEW("pipeline", "[", "{", "$match", "{", "operationType", BCON_UTF8("insert"), "}", "}", "]");
        BSON_APPEND_INT64(&query, "maxAwaitTimeMS", options.await_ms);
        if (token) BSON_APPEND_DOCUMENT(&query, "resumeAfter", token);
        stream = mongoc_collection_watch(collection, inserts, &query);
        bson_destroy(inserts);
    } else {
        /* After a lost position, read from the oldest message on. */
        bson_t *filter = lost == LOST_POSITION ? bson_new() : seen_filter(true);
        if (strcmp(options.mode, "tailable") == 0) {
            BSON_APPEND_BOOL(&query, "tailable", true);
            BSON_APPEND_BOOL(&query, "awaitData", true);
            BSON_APPEND_INT64(&query, "maxAwaitTimeMS", options.await_ms);
            /* The first read opens it. */
            is_opening = true;
            catch_up_ns = 0;
        } else {
            bson_t *order = BCON_NEW("_id", BCON_INT32(1));
            BSON_APPEND_DOCUMENT(&query, "sort", order);
            bson_destroy(order);
        }
        cursor = mongoc_collection_find_with_opts(collection, filter, &query, NULL);
        bson_destroy(filter);
    }
    bson_destroy(&query);
    opened++;
}

static void close_source(void) {
    if (cursor) mongoc_cursor_destroy(cursor);
    if (stream) mongoc_change_stream_destroy(stream);
    cursor = NULL;
    stream = NULL;
}

static int64_t field(const bson_t *document, const char *name) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) ? bson_iter_as_int64(&iter) : 0;
}

static void receive(const bson_t *document, bool by_query) {
    int64_t received_ns = now_ns(), producer = field(document, "p"), n = field(document, "n"), sent_ns = field(document, "s");
    last_ns = received_ns;
    last_sent_ns = sent_ns < received_ns ? sent_ns : received_ns;
    back_off_ns = BACK_OFF_FIRST_NS;
    bool is_new = seen_accept(&seen, producer, n, by_query);
    if (!by_query) {
        sight_heard(&sight, last_sent_ns, received_ns);
    } else if (is_new) {
        sight_found(&sight, last_sent_ns, received_ns);
    }
    if (!is_new) return;
    stamps_consumed((uint64_t)n, sent_ns, received_ns, (uint32_t)producer, NO_BATCH);
    if (options.delay_us) control_sleep(options.delay_us * 1000);
}

/* Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent. */
static bool catch_up(bool newer, bson_error_t *error) {
    const bson_t *document;
    bson_t *filter = seen_filter(newer);
    mongoc_cursor_t *missing = mongoc_collection_find_with_opts(collection, filter, NULL, NULL);
    while (mongoc_cursor_next(missing, &document)) receive(document, true);
    bool good = !mongoc_cursor_error(missing, error);
    mongoc_cursor_destroy(missing);
    bson_destroy(filter);
    return good;
}

/* Copies the next message into `copy`; false without a message, or with a broken source (`error` then has a code). */
static bool try_next(bson_t *copy, bson_error_t *error) {
    const bson_t *document;
    memset(error, 0, sizeof *error);
    /* Reading from a dead cursor is an error. */
    if (cursor && !mongoc_cursor_more(cursor)) return false;
    if (cursor) {
        bool found = mongoc_cursor_next(cursor, &document);
        if (is_opening) {
            int64_t opened_ns = now_ns();
            sight_opened(&sight, opened_ns);
            catch_up_ns = opened_ns + CATCH_UP_NS;
        }
        is_opening = false;
        if (!found) {
            mongoc_cursor_error(cursor, error);
            return false;
        }
        bson_copy_to(document, copy);
        return true;
    }
    bool found = mongoc_change_stream_next(stream, &document);
    if (!found) mongoc_change_stream_error_document(stream, error, NULL);
    if (mongoc_change_stream_get_resume_token(stream)) {
        if (token) bson_destroy(token);
        token = bson_copy(mongoc_change_stream_get_resume_token(stream));
    }
    bson_iter_t iter;
    if (!found || !bson_iter_init_find(&iter, document, "fullDocument")) return false;
    uint32_t length;
    const uint8_t *data;
    bson_iter_document(&iter, &length, &data);
    bson_t full;
    bson_init_static(&full, data, length);
    bson_copy_to(&full, copy);
    return true;
}

static reason_t broken(const bson_error_t *error) {
    close_source();
    if (error->domain == MONGOC_ERROR_SERVER && error->code == POSITION_LOST) {
        position_lost++;
        return LOST_POSITION;
    }
    control_sleep(back_off_ns);
    back_off_ns = 2 * back_off_ns < BACK_OFF_LAST_NS ? 2 * back_off_ns : BACK_OFF_LAST_NS;
    bool network = error->domain == MONGOC_ERROR_STREAM || error->domain == MONGOC_ERROR_SERVER_SELECTION;
    return network ? CONNECTION : OTHER;
}

static void consume(void) {
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    collection = mongoc_client_get_collection(client, options.database, options.collection);
    bson_t document;
    bson_error_t error, why = {0};
    bool idle = false, reported = false, polls = strcmp(options.mode, "poll") == 0;
    bool is_tailable = strcmp(options.mode, "tailable") == 0;
    int64_t blind_ns = 0, blind_found = 0;
    reason_t lost = NOT_LOST;
    /* The first read opens the cursor. */
    open_source(lost);
    bool first = try_next(&document, &error);
    if (!first && error.code) fail(4, "cannot use the server: %s", error.message);
    control_ready();
    last_ns = control_start_ns();
    while (seen.count < options.messages && !control_stopping()) {
        bool found = first, good = true;
        if (!cursor && !stream) {
            open_source(lost);
        } else if (is_tailable && idle && sight_asks(&sight, now_ns())) {
            good = catch_up(true, &error);
        } else if (!first && catch_up_ns && last_sent_ns > catch_up_ns) {
            catch_up_ns = 0;
            good = catch_up(false, &error);
        }
        if (good && !first) {
            found = try_next(&document, &error);
            good = found || !error.code;
        }
        first = false;
        if (good && lost != NOT_LOST && !reported) {
            printf("{\"event\":\"reopened\",\"reason\":\"%s\",\"at_ns\":%lld,", REASONS[lost], (long long)now_ns());
            if (lost == BLIND) printf("\"blind_ns\":%lld,\"found\":%lld,", (long long)blind_ns, (long long)blind_found);
            print_error(&why);
            reported = true;
        }
        idle = !found;
        if (found) {
            lost = NOT_LOST;
            receive(&document, false);
            bson_destroy(&document);
        } else if (!good) {
            why = error;
            reported = false;
            lost = broken(&error);
        } else if (polls && !mongoc_cursor_more(cursor)) {
            close_source();
            control_sleep(options.poll_ms * MS);
        } else if (cursor && !mongoc_cursor_more(cursor)) {
            /* Dead without an error: the tailable cursor found no message. */
            close_source();
            reported = lost == EMPTY;
            lost = EMPTY;
            memset(&why, 0, sizeof why);
            snprintf(why.message, sizeof why.message, "the cursor died without finding a message");
            empty++;
            control_sleep(EMPTY_PAUSE_NS);
        } else if (is_tailable && sight_is_blind(&sight, now_ns())) {
            close_source();
            reported = false;
            lost = BLIND;
            memset(&why, 0, sizeof why);
            snprintf(why.message, sizeof why.message, "the cursor did not return messages that queries found");
            blind_ns = now_ns() - sight.missed_ns;
            blind_found = sight.missed;
        }
        if (idle && now_ns() - last_ns > options.idle_ns) {
            control_set_exit_code(5);
            break;
        }
    }
    stamps_flush();
    printf("{\"event\":\"done\",\"messages\":%lld,\"failed\":0,\"reopened\":%lld,\"reopened_empty\":%lld,"
           "\"position_lost\":%lld,\"caught_up\":%lld,\"duplicates_skipped\":%lld}\n",
           (long long)seen.count, (long long)(polls ? 0 : opened - 1), (long long)empty, (long long)position_lost,
           (long long)seen.caught_up, (long long)seen.duplicates);
}

static void quiet(mongoc_log_level_t level, const char *domain, const char *message, void *unused) {
    (void)level, (void)domain, (void)message, (void)unused;
}

int main(int count, char **arguments) {
    const char *role = count > 1 ? arguments[1] : "";
    if (strcmp(role, "version") == 0) {
        version();
        return 0;
    }
    bool produces = strcmp(role, "produce") == 0;
    if (!produces && strcmp(role, "consume") != 0) fail(2, "`%s` is not one of version, produce, consume", role);
    parse_options(&options, role, count - 2, arguments + 2);
    schedule = load_schedule(&options);
    pad = padding(options.size);
    stamps_open(options.output);
    control_init();
    /* Standard error is reserved for the one line with the reason for the end. */
    mongoc_log_set_handler(quiet, NULL);
    mongoc_init();
    connect_pool();
    if (produces) {
        produce();
    } else {
        consume();
    }
    /* Not all streams, because the reading thread holds the input's lock. */
    fflush(stdout);
    _exit(control_exit_code());
}
