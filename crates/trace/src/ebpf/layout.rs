//! Layouts shared with the kernel programs, as in `shared.bpf.h`, and how they are decoded.

/// Kinds of events.
pub(super) const EVENT_CALL: u32 = 0;
pub(super) const EVENT_FILE: u32 = 1;
pub(super) const EVENT_BLOCK: u32 = 2;
pub(super) const EVENT_NAME: u32 = 3;

/// Verdicts on files.
pub(super) const PENDING: u32 = 0;
pub(super) const ALLOWED: u32 = 1;
pub(super) const DENIED: u32 = 2;

/// Values in the process table.
pub(super) const TRACED: u32 = 1;
/// The process itself is not traced; its children are.
pub(super) const CHILDREN_ONLY: u32 = 2;
/// Marks a device that is always traced.
pub(super) const ALWAYS: u64 = u64::MAX;

/// Counters in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Counter {
    LostCalls,
    LostBlock,
    LostNames,
    LostFiles,
    LostTotals,
    UnseenAio,
    UnseenCopies,
    UnseenEnds,
}

pub(super) const COUNTERS: usize = 8;
pub(super) const SYSCALLS: usize = 512;
/// Maximum number of files with a recorded end of the last call.
pub(super) const ENDS: u32 = 65_536;
pub(super) const LATENCY_BUCKETS: usize = 168;
pub(super) const SIZE_BUCKETS: usize = 41;
pub(super) const SEEK_BUCKETS: usize = 48;
/// Size of a file's path, and of a name passed to a system call.
const PATH_BYTES: usize = 2048 + 256;
const NAME_PATH_BYTES: usize = 1024;

/// Reads fields in order. In truncated data, a missing field is empty or 0.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes }
    }

    pub(super) fn piece(&mut self, length: usize) -> &'a [u8] {
        let (piece, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        piece
    }

    pub(super) fn u32(&mut self) -> u32 {
        self.piece(4).try_into().map_or(0, u32::from_ne_bytes)
    }

    pub(super) fn i32(&mut self) -> i32 {
        self.piece(4).try_into().map_or(0, i32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.piece(8).try_into().map_or(0, u64::from_ne_bytes)
    }

    pub(super) fn i64(&mut self) -> i64 {
        self.piece(8).try_into().map_or(0, i64::from_ne_bytes)
    }

    pub(super) fn u64s(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.u64()).collect()
    }

    /// Text up to the first zero byte of a field.
    pub(super) fn text(&mut self, length: usize) -> String {
        let piece = self.piece(length);
        let end = piece.iter().position(|&byte| byte == 0).unwrap_or(piece.len());
        String::from_utf8_lossy(&piece[..end]).into_owned()
    }
}

/// Constants of the programs, set before loading.
#[derive(Clone, Debug)]
pub(super) struct KernelSettings {
    pub(super) syscalls: [u8; SYSCALLS],
    pub(super) smallest_bytes: u64,
    pub(super) wake_bytes: u64,
    pub(super) aggregated: bool,
    pub(super) operations: u32,
    pub(super) first_verdict: u32,
    pub(super) page_shift: u32,
    pub(super) compat_bit: u32,
}

impl KernelSettings {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.syscalls.to_vec();
        for number in [self.smallest_bytes, self.wake_bytes] {
            bytes.extend(number.to_ne_bytes());
        }
        let numbers = [
            u32::from(self.aggregated),
            self.operations,
            self.first_verdict,
            self.page_shift,
            self.compat_bit,
            0,
        ];
        bytes.extend(numbers.into_iter().flat_map(u32::to_ne_bytes));
        bytes
    }
}

/// Identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) inode: u64,
    /// In the kernel's encoding: 12 bits of major number over 20 of minor.
    pub(super) device: u32,
    pub(super) generation: u32,
}

impl FileKey {
    fn read(fields: &mut Fields) -> FileKey {
        FileKey { inode: fields.u64(), device: fields.u32(), generation: fields.u32() }
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.inode.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.device.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.generation.to_ne_bytes());
        bytes
    }
}

/// Entry of the file table: number, verdict, and data by which the programs detect a new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSlot {
    pub(super) id: u32,
    pub(super) verdict: u32,
    /// Opaque; returned unchanged, like the next two fields.
    pub(super) name: u64,
    pub(super) met_ns: u64,
    pub(super) asked: u32,
}

impl FileSlot {
    fn read(fields: &mut Fields) -> FileSlot {
        let slot = FileSlot {
            id: fields.u32(),
            verdict: fields.u32(),
            name: fields.u64(),
            met_ns: fields.u64(),
            asked: fields.u32(),
        };
        fields.u32();
        slot
    }

    /// Encodes the entry with a verdict.
    pub(super) fn judged(self, verdict: u32) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4..8].copy_from_slice(&verdict.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.name.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.met_ns.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.asked.to_ne_bytes());
        bytes
    }
}

/// A call, with absolute times and the kernel's number of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallEvent {
    pub(super) file: u32,
    pub(super) start_ns: u64,
    pub(super) latency_ns: u64,
    pub(super) offset: i64,
    pub(super) requested: u64,
    pub(super) returned: i64,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) operation: u32,
    /// -1 if unknown.
    pub(super) fetched: i64,
}

impl CallEvent {
    pub(super) fn read(fields: &mut Fields) -> CallEvent {
        let mut event = CallEvent {
            file: fields.u32(),
            start_ns: fields.u64(),
            latency_ns: fields.u64(),
            offset: fields.i64(),
            requested: fields.u64(),
            returned: fields.i64(),
            process: fields.u32(),
            thread: fields.u32(),
            operation: fields.u32(),
            fetched: -1,
        };
        fields.u32();
        event.fetched = fields.i64();
        event
    }
}

/// A file that was seen for the first time, or for the first time under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEvent {
    pub(super) key: FileKey,
    pub(super) slot: FileSlot,
    pub(super) process: u32,
    /// -1 if the call had none.
    pub(super) descriptor: i32,
    pub(super) path: WalkedPath,
}

/// A path from the root of a file system, as deep as the kernel followed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WalkedPath {
    pub(super) path: String,
    /// Whether it reaches the root.
    pub(super) whole: bool,
}

impl WalkedPath {
    fn read(fields: &mut Fields) -> WalkedPath {
        let used = fields.u32() as usize;
        let whole = fields.u32() != 0;
        let names = fields.piece(PATH_BYTES);
        // Names are stored from the file up to the root.
        let mut parts: Vec<String> = names[..used.min(names.len())]
            .split(|&byte| byte == 0)
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect();
        parts.push(String::new());
        parts.reverse();
        WalkedPath { path: parts.join("/"), whole }
    }
}

impl FileEvent {
    pub(super) fn read(fields: &mut Fields) -> FileEvent {
        fields.u32();
        FileEvent {
            key: FileKey::read(fields),
            slot: FileSlot::read(fields),
            process: fields.u32(),
            descriptor: fields.i32(),
            path: WalkedPath::read(fields),
        }
    }
}

/// A block layer request, with absolute times and the kernel's device number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEvent {
    pub(super) device: u32,
    pub(super) issue_ns: u64,
    pub(super) queue_ns: u64,
    pub(super) device_ns: u64,
    pub(super) sector: u64,
    pub(super) bytes: u32,
    pub(super) operation: u32,
    pub(super) process: u32,
    /// Device number that enabled tracing: its own, or a partition's.
    pub(super) known_by: u32,
}

impl BlockEvent {
    pub(super) fn read(fields: &mut Fields) -> BlockEvent {
        BlockEvent {
            device: fields.u32(),
            issue_ns: fields.u64(),
            queue_ns: fields.u64(),
            device_ns: fields.u64(),
            sector: fields.u64(),
            bytes: fields.u32(),
            operation: fields.u32(),
            process: fields.u32(),
            known_by: fields.u32(),
        }
    }
}

/// A request in flight. Its purpose is sent with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestState {
    pub(super) issue_ns: u64,
    pub(super) known_by: u32,
}

impl RequestState {
    pub(super) fn read(fields: &mut Fields) -> RequestState {
        let _insert_ns = fields.u64();
        let issue_ns = fields.u64();
        let _sector = fields.u64();
        let _bytes_and_device = fields.u64();
        let known_by = fields.u32();
        let _operation_and_process = fields.u64();
        let _is_requeued = fields.u32();
        RequestState { issue_ns, known_by }
    }
}

/// A renamed or deleted name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameEvent {
    pub(super) process: u32,
    pub(super) from: GivenName,
    /// Empty if the name was deleted.
    pub(super) to: GivenName,
}

/// A name as a process passed it: absolute, or relative to a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GivenName {
    pub(super) name: String,
    /// Descriptor of the folder, or `AT_FDCWD`.
    pub(super) descriptor: i32,
    pub(super) device: u32,
    /// Path of the folder at that time; incomplete if the name is absolute.
    pub(super) folder: WalkedPath,
}

impl NameEvent {
    pub(super) fn read(fields: &mut Fields) -> NameEvent {
        fields.u32();
        let mut event = NameEvent {
            process: fields.u32(),
            from: GivenName::default(),
            to: GivenName::default(),
        };
        event.from.descriptor = fields.i32();
        event.to.descriptor = fields.i32();
        fields.u32();
        event.from.name = fields.text(NAME_PATH_BYTES);
        event.to.name = fields.text(NAME_PATH_BYTES);
        for given in [&mut event.from, &mut event.to] {
            given.device = fields.u32();
            fields.u32();
            given.folder = WalkedPath::read(fields);
        }
        event
    }
}

/// Totals of a file and operation, of one CPU or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelTotal {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) latency_sum_ns: u64,
    pub(super) sequential: u64,
    pub(super) latency: Vec<u64>,
    pub(super) size: Vec<u64>,
    pub(super) forward: Vec<u64>,
    pub(super) backward: Vec<u64>,
}

impl KernelTotal {
    pub(super) fn read(fields: &mut Fields) -> KernelTotal {
        KernelTotal {
            calls: fields.u64(),
            bytes: fields.u64(),
            errors: fields.u64(),
            latency_sum_ns: fields.u64(),
            sequential: fields.u64(),
            latency: fields.u64s(LATENCY_BUCKETS),
            size: fields.u64s(SIZE_BUCKETS),
            forward: fields.u64s(SEEK_BUCKETS),
            backward: fields.u64s(SEEK_BUCKETS),
        }
    }

    /// Totals without calls.
    pub(super) fn nothing() -> KernelTotal {
        KernelTotal::read(&mut Fields::new(&[]))
    }

    pub(super) fn add(&mut self, other: &KernelTotal) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency_sum_ns += other.latency_sum_ns;
        self.sequential += other.sequential;
        let pairs = [
            (&mut self.latency, &other.latency),
            (&mut self.size, &other.size),
            (&mut self.forward, &other.forward),
            (&mut self.backward, &other.backward),
        ];
        for (to, from) in pairs {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
