//! Decodes events of the kernel, and assigns indexes to files and devices.

use super::devices::{self, DeviceTable};
use super::layout::{self, BlockEvent, CallEvent, Fields, FileEvent, FileKey, FileSlot, NameEvent};
use super::names::FileTable;
use super::totals::EventTotals;
use crate::traced::Sink;
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call, Operation};
use std::collections::HashSet;

/// Pending events, and the known files and devices.
#[derive(Debug)]
pub(super) struct Collector {
    zero_ns: u64,
    pub(super) files: FileTable,
    pub(super) devices: DeviceTable,
    pub(super) totals: EventTotals,
    calls: Vec<Call>,
    block: Vec<BlockRequest>,
    pub(super) call_count: u64,
    pub(super) block_count: u64,
    pub(super) unknown_offsets: u64,
    /// Files that the kernel should ignore under their current name.
    pub(super) denied: Vec<(FileKey, FileSlot)>,
    /// Files that the kernel need not ask about again.
    pub(super) allowed: Vec<(FileKey, FileSlot)>,
    /// Ignored files that were deleted.
    pub(super) forgotten: Vec<(FileKey, FileSlot)>,
    /// Numbers of traced files that were deleted.
    pub(super) deleted: Vec<u32>,
    /// Devices whose requests are wanted from now on.
    pub(super) wanted_devices: Vec<u32>,
    /// All devices whose requests are wanted.
    wanted: HashSet<u32>,
    /// Devices of known file systems.
    met: Vec<u32>,
}

impl Collector {
    pub(super) fn new(zero_ns: u64, files: FileTable) -> Collector {
        Collector {
            zero_ns,
            files,
            devices: DeviceTable::default(),
            totals: EventTotals::default(),
            calls: Vec::new(),
            block: Vec::new(),
            call_count: 0,
            block_count: 0,
            unknown_offsets: 0,
            denied: Vec::new(),
            allowed: Vec::new(),
            forgotten: Vec::new(),
            deleted: Vec::new(),
            wanted_devices: Vec::new(),
            wanted: HashSet::new(),
            met: Vec::new(),
        }
    }

    /// Processes an event.
    pub(super) fn event(&mut self, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        match fields.u32() {
            layout::EVENT_CALL => self.call(CallEvent::read(&mut fields)),
            layout::EVENT_FILE => self.file(&FileEvent::read(&mut fields)),
            layout::EVENT_BLOCK => self.request(BlockEvent::read(&mut fields)),
            layout::EVENT_NAME => self.name(&NameEvent::read(&mut fields)),
            _ => {}
        }
    }

    /// Converts a kernel time to a time relative to the zero of the trace.
    pub(super) fn relative(&self, time_ns: u64) -> i64 {
        time_ns.wrapping_sub(self.zero_ns) as i64
    }

    fn call(&mut self, event: CallEvent) {
        let operation = u8::try_from(event.operation).ok().and_then(Operation::from_number);
        let (Some(operation), Some(file)) = (operation, self.files.index_of(event.file)) else {
            return;
        };
        let call = Call {
            start_ns: self.relative(event.start_ns),
            latency_ns: event.latency_ns,
            offset: event.offset.max(-1),
            requested: event.requested,
            returned: event.returned,
            file,
            process: event.process,
            thread: event.thread,
            operation,
            fetched: event.fetched,
        };
        if call.offset < 0 && operation != Operation::Sync {
            self.unknown_offsets += 1;
        }
        self.totals.add(&call);
        self.calls.push(call);
        self.call_count += 1;
    }

    fn file(&mut self, event: &FileEvent) {
        if !self.files.add(event) {
            self.denied.push((event.key, event.slot));
            return;
        }
        self.allowed.push((event.key, event.slot));
        self.want_device(event.key.device, event.process, event.descriptor);
    }

    fn name(&mut self, event: &NameEvent) {
        let changes = self.files.rename(event);
        for file in changes.fitting {
            self.allowed.push((file.key, file.slot));
            self.want_device(file.key.device, file.process, file.descriptor);
        }
        self.forgotten.extend(changes.forgotten);
        self.deleted.extend(changes.deleted);
    }

    /// Requests tracing of all devices below a file.
    fn want_device(&mut self, device: u32, process: u32, descriptor: i32) {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let open = std::fs::metadata(format!("/proc/{process}/fd/{descriptor}")).ok();
        // A block device that is opened as a file is on another device.
        let device = match open.filter(|open| open.file_type().is_block_device()) {
            Some(open) => {
                devices::kernel_number(libc::major(open.rdev()), libc::minor(open.rdev()))
            }
            None => device,
        };
        if self.met.contains(&device) {
            return;
        }
        self.met.push(device);
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for reached in devices::reached_from(device, &mountinfo) {
            self.wanted_devices.push(reached);
            self.wanted.insert(reached);
        }
    }

    /// Marks a device as traced by the kernel.
    pub(super) fn take_device(&mut self, number: u32) {
        self.wanted.insert(number);
    }

    /// Whether the requests to a device are wanted.
    pub(super) fn wants_device(&self, number: u32) -> bool {
        self.wanted.contains(&number)
    }

    fn request(&mut self, event: BlockEvent) {
        // The kernel traces until a file is judged, so that its first requests are not missed.
        if !self.wants_device(event.known_by) {
            return;
        }
        let Some(operation) =
            u8::try_from(event.operation).ok().and_then(BlockOperation::from_number)
        else {
            return;
        };
        self.block.push(BlockRequest {
            issue_ns: self.relative(event.issue_ns),
            queue_ns: event.queue_ns,
            device_ns: event.device_ns,
            sector: event.sector,
            bytes: event.bytes,
            device: self.devices.index_of(event.device),
            operation,
            process: event.process,
        });
        self.block_count += 1;
    }

    /// Passes pending events to the sink.
    pub(super) fn hand_over(&mut self, sink: &mut dyn Sink) {
        if !self.calls.is_empty() {
            sink.calls(&self.calls);
            self.calls.clear();
        }
        if !self.block.is_empty() {
            sink.block(&self.block);
            self.block.clear();
        }
    }
}
