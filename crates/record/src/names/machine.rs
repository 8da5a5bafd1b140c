//! Metrics of a machine and the processes on it.

metrics! {
    /// CPU time. Metrics named `ALL_…` cover all online cores together.
    cpu {
        /// Share of all CPU time in user mode, without processes of lowered priority.
        ALL_USER_RATIO = "cpu.all.user_ratio";
        /// Share of all CPU time in user mode of processes with lowered priority.
        ALL_NICE_RATIO = "cpu.all.nice_ratio";
        /// Share of all CPU time in the kernel.
        ALL_SYSTEM_RATIO = "cpu.all.system_ratio";
        /// Idle share of all CPU time.
        ALL_IDLE_RATIO = "cpu.all.idle_ratio";
        /// Share of all CPU time that was idle while a task waited for a disk.
        ALL_IOWAIT_RATIO = "cpu.all.iowait_ratio";
        /// Share of all CPU time in interrupts.
        ALL_IRQ_RATIO = "cpu.all.irq_ratio";
        /// Share of all CPU time in soft interrupts.
        ALL_SOFTIRQ_RATIO = "cpu.all.softirq_ratio";
        /// Share of all CPU time that the hypervisor took.
        ALL_STEAL_RATIO = "cpu.all.steal_ratio";
        /// Share of all CPU time that guests used; included in user and nice.
        ALL_GUEST_RATIO = "cpu.all.guest_ratio";
        /// Share of all CPU time that was neither idle nor iowait.
        ALL_BUSY_RATIO = "cpu.all.busy_ratio";
        /// Share of a core's time in user mode, without processes of lowered priority.
        USER_RATIO = "cpu.{}.user_ratio";
        /// Share of a core's time in the kernel.
        SYSTEM_RATIO = "cpu.{}.system_ratio";
        /// Share of a core's time that was idle while a task waited for a disk.
        IOWAIT_RATIO = "cpu.{}.iowait_ratio";
        /// Share of a core's time in interrupts of both kinds.
        SOFTIRQ_RATIO = "cpu.{}.softirq_ratio";
        /// Share of a core's time that the hypervisor took.
        STEAL_RATIO = "cpu.{}.steal_ratio";
        /// Share of a core's time that was neither idle nor iowait.
        BUSY_RATIO = "cpu.{}.busy_ratio";
    }

    /// Running and waiting tasks.
    load {
        /// Running or runnable tasks.
        RUNNABLE_COUNT = "load.runnable_count";
        /// Tasks that wait for a disk.
        BLOCKED_COUNT = "load.blocked_count";
        /// Load average over a minute, in tasks.
        AVERAGE_1M_COUNT = "load.average_1m_count";
        /// Context switches per second.
        CONTEXT_SWITCHES_PER_S = "load.context_switches_per_s";
        /// New processes and threads per second.
        FORKS_PER_S = "load.forks_per_s";
    }

    /// Device interrupts.
    interrupts {
        /// Interrupts of all devices per second.
        TOTAL_PER_S = "interrupts.total_per_s";
    }

    /// Soft interrupts by kind.
    softirq {
        /// High-priority tasklets per second.
        HI_PER_S = "softirq.hi_per_s";
        /// Timers per second.
        TIMER_PER_S = "softirq.timer_per_s";
        /// Network transmissions per second.
        NET_TX_PER_S = "softirq.net_tx_per_s";
        /// Network receptions per second.
        NET_RX_PER_S = "softirq.net_rx_per_s";
        /// Block device completions per second.
        BLOCK_PER_S = "softirq.block_per_s";
        /// Block device polls per second.
        IRQ_POLL_PER_S = "softirq.irq_poll_per_s";
        /// Tasklets per second.
        TASKLET_PER_S = "softirq.tasklet_per_s";
        /// Scheduler balancings per second.
        SCHED_PER_S = "softirq.sched_per_s";
        /// High-resolution timers per second.
        HRTIMER_PER_S = "softirq.hrtimer_per_s";
        /// Read-copy-update callbacks per second.
        RCU_PER_S = "softirq.rcu_per_s";
    }

    /// Pressure: time in which tasks waited for a resource.
    pressure {
        /// Share of the time in which at least one task waited for a CPU.
        CPU_SOME_RATIO = "pressure.cpu.some_ratio";
        /// Share of the time in which at least one task waited for a disk.
        IO_SOME_RATIO = "pressure.io.some_ratio";
        /// Share of the time in which all non-idle tasks waited for a disk.
        IO_FULL_RATIO = "pressure.io.full_ratio";
        /// Share of the time in which at least one task waited for memory.
        MEMORY_SOME_RATIO = "pressure.memory.some_ratio";
        /// Share of the time in which all non-idle tasks waited for memory.
        MEMORY_FULL_RATIO = "pressure.memory.full_ratio";
    }

    /// Memory of the machine.
    memory {
        /// Total memory in bytes.
        TOTAL_BYTES = "memory.total_bytes";
        /// Unused memory in bytes.
        FREE_BYTES = "memory.free_bytes";
        /// Memory available to programs without swapping, in bytes.
        AVAILABLE_BYTES = "memory.available_bytes";
        /// Page cache in bytes.
        CACHED_BYTES = "memory.cached_bytes";
        /// Page cache of block devices that are read directly, in bytes.
        BUFFERS_BYTES = "memory.buffers_bytes";
        /// Data waiting to be written, in bytes.
        DIRTY_BYTES = "memory.dirty_bytes";
        /// Data being written, in bytes.
        WRITEBACK_BYTES = "memory.writeback_bytes";
        /// Memory of programs in bytes.
        ANONYMOUS_BYTES = "memory.anonymous_bytes";
        /// Memory of kernel objects in bytes.
        SLAB_BYTES = "memory.slab_bytes";
        /// Memory reserved in huge pages, in bytes.
        HUGEPAGES_BYTES = "memory.hugepages_bytes";
        /// Memory of programs in transparent huge pages, in bytes.
        TRANSPARENT_HUGEPAGES_BYTES = "memory.transparent_hugepages_bytes";
        /// Swap in use, in bytes.
        SWAP_USED_BYTES = "memory.swap_used_bytes";
    }

    /// Traffic between memory and disks.
    paging {
        /// Bytes per second read from block devices.
        IN_BYTES_PER_S = "paging.in_bytes_per_s";
        /// Bytes per second written to block devices.
        OUT_BYTES_PER_S = "paging.out_bytes_per_s";
        /// Bytes per second read from swap.
        SWAP_IN_BYTES_PER_S = "paging.swap_in_bytes_per_s";
        /// Bytes per second written to swap.
        SWAP_OUT_BYTES_PER_S = "paging.swap_out_bytes_per_s";
        /// Page faults per second that needed a disk.
        MAJOR_FAULTS_PER_S = "paging.major_faults_per_s";
        /// How often per second a task had to reclaim memory itself before it could allocate.
        RECLAIM_DIRECT_PER_S = "paging.reclaim_direct_per_s";
        /// Processes per second that were killed because memory ran out.
        OOM_KILLS_PER_S = "paging.oom_kills_per_s";
    }

    /// Disks; the instance is the device name.
    disk {
        /// Completed reads per second, after merging.
        READ_PER_S = "disk.{}.read_per_s";
        /// Completed writes per second, after merging.
        WRITE_PER_S = "disk.{}.write_per_s";
        /// Completed discards per second, after merging.
        DISCARD_PER_S = "disk.{}.discard_per_s";
        /// Completed flushes per second; not available for partitions, volumes and arrays.
        FLUSH_PER_S = "disk.{}.flush_per_s";
        /// Bytes read per second.
        READ_BYTES_PER_S = "disk.{}.read_bytes_per_s";
        /// Bytes written per second.
        WRITE_BYTES_PER_S = "disk.{}.write_bytes_per_s";
        /// Mean milliseconds from queueing a read to its completion.
        READ_AWAIT_MS = "disk.{}.read_await_ms";
        /// Mean milliseconds from queueing a write to its completion.
        WRITE_AWAIT_MS = "disk.{}.write_await_ms";
        /// Mean milliseconds from queueing a flush to its completion.
        FLUSH_AWAIT_MS = "disk.{}.flush_await_ms";
        /// Mean size of a read in bytes.
        READ_SIZE_BYTES = "disk.{}.read_size_bytes";
        /// Mean size of a write in bytes.
        WRITE_SIZE_BYTES = "disk.{}.write_size_bytes";
        /// Mean number of requests in flight.
        QUEUE_COUNT = "disk.{}.queue_count";
        /// Requests in flight at the time of the reading.
        IN_FLIGHT_COUNT = "disk.{}.in_flight_count";
        /// Share of the time with at least one request in flight.
        UTILIZATION_RATIO = "disk.{}.utilization_ratio";
    }

    /// Storage of data folders; the instance is the file system's device, or its type if it has no device.
    storage {
        /// Bytes that an unprivileged user may still use.
        FREE_BYTES = "storage.{}.free_bytes";
        /// `FREE_BYTES` as a share of the file system.
        FREE_RATIO = "storage.{}.free_ratio";
        /// Data folders on the device; also for the devices below the file system's device.
        HOLDS_DATA_COUNT = "storage.{}.holds_data_count";
        /// Requests that the device serves at once: 1 if it serves them one by one, otherwise the length of its queue.
        /// Only for devices at which requests end, such as the members of an array; absent if the machine does not show
        /// it.
        SERVES_COUNT = "storage.{}.serves_count";
    }

    /// Network interfaces.
    network {
        /// Bytes received per second.
        RECEIVED_BYTES_PER_S = "network.{}.received_bytes_per_s";
        /// Bytes sent per second.
        SENT_BYTES_PER_S = "network.{}.sent_bytes_per_s";
        /// Packets received per second.
        RECEIVED_PACKETS_PER_S = "network.{}.received_packets_per_s";
        /// Packets sent per second.
        SENT_PACKETS_PER_S = "network.{}.sent_packets_per_s";
        /// Packets with errors per second, in both directions.
        ERRORS_PER_S = "network.{}.errors_per_s";
        /// Dropped packets per second, in both directions.
        DROPPED_PER_S = "network.{}.dropped_per_s";
        /// Speed of the link in bytes per second.
        SPEED_BYTES_PER_S = "network.{}.speed_bytes_per_s";
    }

    /// TCP, for all connections of the machine.
    tcp {
        /// Retransmitted segments per second.
        RETRANSMITS_PER_S = "tcp.retransmits_per_s";
        /// Segments sent per second, without retransmissions.
        SEGMENTS_SENT_PER_S = "tcp.segments_sent_per_s";
        /// Segments received per second.
        SEGMENTS_RECEIVED_PER_S = "tcp.segments_received_per_s";
        /// Resets sent per second.
        RESETS_SENT_PER_S = "tcp.resets_sent_per_s";
        /// Connections accepted per second.
        PASSIVE_OPENS_PER_S = "tcp.passive_opens_per_s";
        /// Connections opened per second.
        ACTIVE_OPENS_PER_S = "tcp.active_opens_per_s";
        /// Connections per second refused because the accept queue was full.
        LISTEN_OVERFLOWS_PER_S = "tcp.listen_overflows_per_s";
        /// Open connections.
        ESTABLISHED_COUNT = "tcp.established_count";
    }

    /// Clock frequency of the online cores.
    frequency {
        /// Mean frequency in hertz.
        MEAN_HZ = "frequency.all.mean_hz";
        /// Lowest frequency in hertz.
        MIN_HZ = "frequency.all.min_hz";
    }

    /// Temperatures; the instance is the zone or chip.
    temperature {
        /// Temperature in degrees Celsius.
        CELSIUS = "temperature.{}.celsius";
    }

    /// Processes of servers and of the client; the instance is the name of the server, or `client`.
    process {
        /// CPUs in use.
        CPU_RATIO = "process.{}.cpu_ratio";
        /// CPUs in use in user mode.
        CPU_USER_RATIO = "process.{}.cpu_user_ratio";
        /// CPUs in use in the kernel.
        CPU_SYSTEM_RATIO = "process.{}.cpu_system_ratio";
        /// Mean number of runnable threads that waited for a CPU.
        CPU_WAIT_RATIO = "process.{}.cpu_wait_ratio";
        /// CPUs in use by the worker threads of the load generator.
        WORKERS_CPU_RATIO = "process.{}.workers_cpu_ratio";
        /// Mean number of the load generator's worker threads that waited for a CPU.
        WORKERS_WAIT_RATIO = "process.{}.workers_wait_ratio";
        /// Worker threads of the load generator.
        WORKERS_COUNT = "process.{}.workers_count";
        /// Share of one CPU that the busiest thread used.
        BUSIEST_THREAD_RATIO = "process.{}.busiest_thread_ratio";
        /// Mean number of threads that waited for disks.
        DELAY_IO_RATIO = "process.{}.delay_io_ratio";
        /// Page faults per second that did not need a disk.
        MINOR_FAULTS_PER_S = "process.{}.minor_faults_per_s";
        /// Page faults per second that needed a disk.
        MAJOR_FAULTS_PER_S = "process.{}.major_faults_per_s";
        /// Context switches per second because a thread waited.
        VOLUNTARY_SWITCHES_PER_S = "process.{}.voluntary_switches_per_s";
        /// Context switches per second because a time slice ended.
        INVOLUNTARY_SWITCHES_PER_S = "process.{}.involuntary_switches_per_s";
        /// Resident memory in bytes.
        RESIDENT_BYTES = "process.{}.resident_bytes";
        /// Threads.
        THREADS_COUNT = "process.{}.threads_count";
        /// Open files and sockets.
        OPEN_FILES_COUNT = "process.{}.open_files_count";
        /// Bytes per second that the process caused disks to read.
        READ_BYTES_PER_S = "process.{}.read_bytes_per_s";
        /// Bytes per second of the page cache that the process dirtied.
        WRITE_BYTES_PER_S = "process.{}.write_bytes_per_s";
    }

    /// Limits by the processes' control groups.
    cgroup {
        /// Lowest limit, in CPUs.
        CPU_LIMIT_COUNT = "cgroup.{}.cpu_limit_count";
        /// Mean number of CPUs that limits stopped.
        CPU_THROTTLED_RATIO = "cgroup.{}.cpu_throttled_ratio";
        /// Share of the periods in which the limit was exhausted.
        CPU_THROTTLED_PERIODS_RATIO = "cgroup.{}.cpu_throttled_periods_ratio";
        /// Lowest memory limit in bytes.
        MEMORY_LIMIT_BYTES = "cgroup.{}.memory_limit_bytes";
        /// Memory of the group with the lowest limit, in bytes.
        MEMORY_USED_BYTES = "cgroup.{}.memory_used_bytes";
        /// Rules that limit disk requests or bytes.
        IO_LIMITED_COUNT = "cgroup.{}.io_limited_count";
    }
}
