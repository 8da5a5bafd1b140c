//! Metrics of a server; unless stated otherwise, the instance is the server's name.

metrics! {
    /// The server itself.
    server {
        /// Seconds since the server started.
        UPTIME_S = "server.{}.uptime_s";
    }

    /// Operations by kind.
    operations {
        /// Inserted documents per second.
        INSERT_PER_S = "operations.{}.insert_per_s";
        /// Queries per second.
        QUERY_PER_S = "operations.{}.query_per_s";
        /// Updates per second.
        UPDATE_PER_S = "operations.{}.update_per_s";
        /// Deletes per second.
        DELETE_PER_S = "operations.{}.delete_per_s";
        /// `getMore` commands per second.
        GETMORE_PER_S = "operations.{}.getmore_per_s";
        /// Other commands per second.
        COMMAND_PER_S = "operations.{}.command_per_s";
        /// Inserts per second that a member applied from its primary.
        REPLICATED_INSERT_PER_S = "operations.{}.replicated_insert_per_s";
        /// Updates per second that a member applied from its primary.
        REPLICATED_UPDATE_PER_S = "operations.{}.replicated_update_per_s";
        /// Deletes per second that a member applied from its primary.
        REPLICATED_DELETE_PER_S = "operations.{}.replicated_delete_per_s";
        /// Commands per second that a member applied from its primary.
        REPLICATED_COMMAND_PER_S = "operations.{}.replicated_command_per_s";
    }

    /// Time of operations in the server.
    operation_latency {
        /// Mean microseconds of reads that ended.
        READS_MEAN_US = "operation_latency.{}.reads_mean_us";
        /// Mean microseconds of writes that ended.
        WRITES_MEAN_US = "operation_latency.{}.writes_mean_us";
        /// Mean microseconds of commands that ended.
        COMMANDS_MEAN_US = "operation_latency.{}.commands_mean_us";
        /// Reads per second in `READS_MEAN_US`.
        READS_PER_S = "operation_latency.{}.reads_per_s";
        /// Writes per second in `WRITES_MEAN_US`.
        WRITES_PER_S = "operation_latency.{}.writes_per_s";
        /// Commands per second in `COMMANDS_MEAN_US`.
        COMMANDS_PER_S = "operation_latency.{}.commands_per_s";
    }

    /// Client connections.
    connections {
        /// Open connections.
        CURRENT_COUNT = "connections.{}.current_count";
        /// Additional connections that the server allows.
        AVAILABLE_COUNT = "connections.{}.available_count";
        /// Connections with an operation in progress.
        ACTIVE_COUNT = "connections.{}.active_count";
        /// New connections per second.
        CREATED_PER_S = "connections.{}.created_per_s";
    }

    /// Operations that wait for a lock or, up to MongoDB 7.0, a ticket, and operations in progress.
    queue {
        /// Waiting readers.
        READERS_COUNT = "queue.{}.readers_count";
        /// Waiting writers.
        WRITERS_COUNT = "queue.{}.writers_count";
        /// All waiting operations.
        TOTAL_COUNT = "queue.{}.total_count";
        /// Clients with a read in progress.
        ACTIVE_READERS_COUNT = "queue.{}.active_readers_count";
        /// Clients with a write in progress.
        ACTIVE_WRITERS_COUNT = "queue.{}.active_writers_count";
        /// Clients with any operation in progress.
        ACTIVE_TOTAL_COUNT = "queue.{}.active_total_count";
    }

    /// Tickets of the storage engine: each running operation holds one.
    tickets {
        /// Read tickets in use.
        READ_IN_USE_COUNT = "tickets.{}.read_in_use_count";
        /// Free read tickets.
        READ_AVAILABLE_COUNT = "tickets.{}.read_available_count";
        /// All read tickets.
        READ_TOTAL_COUNT = "tickets.{}.read_total_count";
        /// Reads that wait for a ticket.
        READ_QUEUED_COUNT = "tickets.{}.read_queued_count";
        /// Write tickets in use.
        WRITE_IN_USE_COUNT = "tickets.{}.write_in_use_count";
        /// Free write tickets.
        WRITE_AVAILABLE_COUNT = "tickets.{}.write_available_count";
        /// All write tickets.
        WRITE_TOTAL_COUNT = "tickets.{}.write_total_count";
        /// Writes that wait for a ticket.
        WRITE_QUEUED_COUNT = "tickets.{}.write_queued_count";
    }

    /// The storage engine's cache.
    cache {
        /// Content in bytes.
        USED_BYTES = "cache.{}.used_bytes";
        /// Limit in bytes.
        MAXIMUM_BYTES = "cache.{}.maximum_bytes";
        /// Dirty content in bytes.
        DIRTY_BYTES = "cache.{}.dirty_bytes";
        /// Content as a share of the limit.
        USED_RATIO = "cache.{}.used_ratio";
        /// Dirty content as a share of the limit.
        DIRTY_RATIO = "cache.{}.dirty_ratio";
        /// Bytes read into the cache per second.
        READ_BYTES_PER_S = "cache.{}.read_bytes_per_s";
        /// Bytes written from the cache per second.
        WRITTEN_BYTES_PER_S = "cache.{}.written_bytes_per_s";
        /// Pages read into the cache per second.
        PAGES_READ_PER_S = "cache.{}.pages_read_per_s";
        /// Pages written from the cache per second.
        PAGES_WRITTEN_PER_S = "cache.{}.pages_written_per_s";
        /// Pages requested per second.
        PAGES_REQUESTED_PER_S = "cache.{}.pages_requested_per_s";
        /// Share of the requested pages that were in the cache.
        HIT_RATIO = "cache.{}.hit_ratio";
        /// Pages per second that client threads evicted; from MongoDB 8.0 on, tried to evict.
        EVICTED_BY_APPLICATION_PER_S = "cache.{}.evicted_by_application_per_s";
        /// Pages per second that eviction threads evicted; from MongoDB 8.0 on, tried to evict.
        EVICTED_BY_WORKERS_PER_S = "cache.{}.evicted_by_workers_per_s";
        /// Evicted pages per second that did not have to be written.
        EVICTED_CLEAN_PER_S = "cache.{}.evicted_clean_per_s";
        /// Evicted pages per second that had to be written.
        EVICTED_DIRTY_PER_S = "cache.{}.evicted_dirty_per_s";
        /// Pages per second that could not be evicted.
        EVICTION_FAILED_PER_S = "cache.{}.eviction_failed_per_s";
        /// Pages per second that could not be evicted because they were in use.
        EVICTION_BLOCKED_PER_S = "cache.{}.eviction_blocked_per_s";
        /// Eviction passes per second that did not free enough.
        EVICTION_GOAL_MISSED_PER_S = "cache.{}.eviction_goal_missed_per_s";
        /// Pages per second that eviction examined.
        EVICTION_WALKED_PER_S = "cache.{}.eviction_walked_per_s";
        /// Mean number of client threads that wait for a page from the disk.
        APPLICATION_READING_COUNT = "cache.{}.application_reading_count";
        /// Mean number of client threads that write a page to the disk.
        APPLICATION_WRITING_COUNT = "cache.{}.application_writing_count";
    }

    /// Checkpoints of the storage engine.
    checkpoint {
        /// 1 while a checkpoint is written, otherwise 0.
        RUNNING_COUNT = "checkpoint.{}.running_count";
        /// Milliseconds of the last checkpoint.
        RECENT_MS = "checkpoint.{}.recent_ms";
        /// Completed checkpoints per second.
        FINISHED_PER_S = "checkpoint.{}.finished_per_s";
        /// Duration of the checkpoints that ended, divided by the time since the previous reading; may exceed 1.
        BUSY_RATIO = "checkpoint.{}.busy_ratio";
    }

    /// The journal.
    log {
        /// Bytes written per second.
        WRITTEN_BYTES_PER_S = "log.{}.written_bytes_per_s";
        /// Writes per second.
        WRITES_PER_S = "log.{}.writes_per_s";
        /// Flushes per second.
        FLUSHES_PER_S = "log.{}.flushes_per_s";
        /// Syncs per second.
        SYNCS_PER_S = "log.{}.syncs_per_s";
        /// Mean milliseconds of a sync.
        SYNC_MEAN_MS = "log.{}.sync_mean_ms";
        /// Share of the time in which a sync ran; counted when a sync ends, so it may exceed 1.
        SYNCING_RATIO = "log.{}.syncing_ratio";
    }

    /// The storage engine's file system requests, without the journal.
    blocks {
        /// Bytes read per second.
        READ_BYTES_PER_S = "blocks.{}.read_bytes_per_s";
        /// Bytes written per second.
        WRITTEN_BYTES_PER_S = "blocks.{}.written_bytes_per_s";
        /// Bytes per second written for checkpoints.
        CHECKPOINT_WRITTEN_BYTES_PER_S = "blocks.{}.checkpoint_written_bytes_per_s";
        /// Blocks read per second.
        READ_PER_S = "blocks.{}.read_per_s";
        /// Blocks written per second.
        WRITTEN_PER_S = "blocks.{}.written_per_s";
    }

    /// Transactions of the storage engine, at least one for each operation, and transactions of clients.
    transactions {
        /// Transactions of the storage engine begun per second.
        BEGUN_PER_S = "transactions.{}.begun_per_s";
        /// Transactions of the storage engine committed per second.
        COMMITTED_PER_S = "transactions.{}.committed_per_s";
        /// Transactions of the storage engine rolled back per second.
        ROLLED_BACK_PER_S = "transactions.{}.rolled_back_per_s";
        /// Range of transactions with old versions that must be kept.
        PINNED_COUNT = "transactions.{}.pinned_count";
        /// Range of transactions with old versions that a checkpoint keeps.
        PINNED_BY_CHECKPOINT_COUNT = "transactions.{}.pinned_by_checkpoint_count";
        /// Open client transactions.
        CLIENT_OPEN_COUNT = "transactions.{}.client_open_count";
        /// Client transactions started per second.
        CLIENT_STARTED_PER_S = "transactions.{}.client_started_per_s";
        /// Client transactions committed per second.
        CLIENT_COMMITTED_PER_S = "transactions.{}.client_committed_per_s";
        /// Client transactions aborted per second.
        CLIENT_ABORTED_PER_S = "transactions.{}.client_aborted_per_s";
    }

    /// Network messages of the server.
    server_network {
        /// Bytes received per second, before compression.
        RECEIVED_BYTES_PER_S = "server_network.{}.received_bytes_per_s";
        /// Bytes sent per second, before compression.
        SENT_BYTES_PER_S = "server_network.{}.sent_bytes_per_s";
        /// Requests per second.
        REQUESTS_PER_S = "server_network.{}.requests_per_s";
        /// Size of received messages on the wire divided by their size before compression.
        RECEIVED_COMPRESSED_RATIO = "server_network.{}.received_compressed_ratio";
        /// Size of sent messages on the wire divided by their size before compression.
        SENT_COMPRESSED_RATIO = "server_network.{}.sent_compressed_ratio";
    }

    /// Assertions that the server recorded.
    asserts {
        /// Regular assertions per second.
        REGULAR_PER_S = "asserts.{}.regular_per_s";
        /// Warnings per second.
        WARNING_PER_S = "asserts.{}.warning_per_s";
        /// Message assertions per second.
        MESSAGE_PER_S = "asserts.{}.message_per_s";
        /// User assertions per second.
        USER_PER_S = "asserts.{}.user_per_s";
        /// Tripwires per second.
        TRIPWIRE_PER_S = "asserts.{}.tripwire_per_s";
    }

    /// CPU time of the server's process, as the server reports it.
    server_cpu {
        /// Mean number of CPUs that the process used in user mode: seconds per second.
        USER_RATIO = "server_cpu.{}.user_ratio";
        /// Mean number of CPUs that the process used in the kernel: seconds per second.
        SYSTEM_RATIO = "server_cpu.{}.system_ratio";
        /// CPUs of the server's machine.
        CPUS_COUNT = "server_cpu.{}.cpus_count";
    }

    /// Memory of the server's process, as the server reports it.
    server_memory {
        /// Resident memory in bytes, in steps of 1 MiB.
        RESIDENT_BYTES = "server_memory.{}.resident_bytes";
        /// Virtual memory in bytes, in steps of 1 MiB.
        VIRTUAL_BYTES = "server_memory.{}.virtual_bytes";
        /// Page faults per second that needed the disk.
        PAGE_FAULTS_PER_S = "server_memory.{}.page_faults_per_s";
    }

    /// Documents read and written.
    documents {
        /// Inserted documents per second.
        INSERTED_PER_S = "documents.{}.inserted_per_s";
        /// Returned documents per second.
        RETURNED_PER_S = "documents.{}.returned_per_s";
        /// Updated documents per second.
        UPDATED_PER_S = "documents.{}.updated_per_s";
        /// Deleted documents per second.
        DELETED_PER_S = "documents.{}.deleted_per_s";
    }

    /// Costs of queries and writes.
    query {
        /// Index keys per second that queries examined.
        KEYS_SCANNED_PER_S = "query.{}.keys_scanned_per_s";
        /// Documents per second that queries examined.
        DOCUMENTS_SCANNED_PER_S = "query.{}.documents_scanned_per_s";
        /// Queries per second without an index for their filter.
        COLLECTION_SCANS_PER_S = "query.{}.collection_scans_per_s";
        /// Queries per second without an index for their order.
        SORTED_IN_MEMORY_PER_S = "query.{}.sorted_in_memory_per_s";
        /// Writes per second that were retried.
        WRITE_CONFLICTS_PER_S = "query.{}.write_conflicts_per_s";
    }

    /// Cursors.
    cursors {
        /// Open cursors.
        OPEN_COUNT = "cursors.{}.open_count";
        /// Cursors in use at the time of the reading.
        PINNED_COUNT = "cursors.{}.pinned_count";
        /// Cursors per second that timed out because clients abandoned them.
        TIMED_OUT_PER_S = "cursors.{}.timed_out_per_s";
    }

    /// Documents that expire.
    ttl {
        /// Expired documents deleted per second.
        DELETED_PER_S = "ttl.{}.deleted_per_s";
        /// Passes per second that looked for expired documents.
        PASSES_PER_S = "ttl.{}.passes_per_s";
    }

    /// Flow control of a primary.
    flow_control {
        /// 1 while the primary holds back writes because members lag, otherwise 0.
        LAGGED_COUNT = "flow_control.{}.lagged_count";
        /// Mean number of operations held back.
        ACQUIRING_COUNT = "flow_control.{}.acquiring_count";
        /// Allowed writes per second.
        TARGET_PER_S = "flow_control.{}.target_per_s";
    }

    /// Admission control: the server adjusts its number of tickets from 7.0 on, and rejects requests from 8.2 on.
    admission {
        /// How often per second the server raised the number of tickets.
        TICKETS_RAISED_PER_S = "admission.{}.tickets_raised_per_s";
        /// How often per second the server lowered the number of tickets.
        TICKETS_LOWERED_PER_S = "admission.{}.tickets_lowered_per_s";
        /// Operations per second that got a low priority.
        DEPRIORITIZED_PER_S = "admission.{}.deprioritized_per_s";
        /// Requests per second that the request limit admitted.
        REQUESTS_ADMITTED_PER_S = "admission.{}.requests_admitted_per_s";
        /// Requests per second that the request limit rejected.
        REQUESTS_REJECTED_PER_S = "admission.{}.requests_rejected_per_s";
        /// New connections per second that the connection limit rejected.
        CONNECTIONS_REJECTED_PER_S = "admission.{}.connections_rejected_per_s";
        /// Operations that wait for a ticket of the ingress queue.
        INGRESS_QUEUED_COUNT = "admission.{}.ingress_queued_count";
    }

    /// Members of a replica set, as seen by the queried server; the instance is the member's address.
    replication {
        /// Seconds between the last operation of the primary and the last one that the member applied.
        LAG_S = "replication.{}.lag_s";
        /// Number of the member's state: 1 primary, 2 secondary, 7 arbiter, 8 down.
        STATE_COUNT = "replication.{}.state_count";
    }

    /// Operations that the server logged as slow.
    slow {
        /// Slow operations per second.
        OPERATIONS_PER_S = "slow.{}.operations_per_s";
        /// Slow operations per second on the collection under test.
        COLLECTION_OPERATIONS_PER_S = "slow.{}.collection_operations_per_s";
    }
}
