//! Single events of a trace, as rows from the tracer and as columns of a table.

use dyno_plan::named;

named! {
    /// Operation of a call on a file.
    // The order defines the stored numbers.
    #[repr(u8)]
    Operation {
        Read = "read",
        Write = "write",
        /// Wait until data is on the device.
        Sync = "sync",
        /// Page fault: fetch a missing page of a mapped file.
        Fault = "fault",
    }

    /// Operation of a block layer request.
    // The order defines the stored numbers.
    #[repr(u8)]
    BlockOperation {
        Read = "read",
        Write = "write",
        /// Flush of the device's write cache.
        Flush = "flush",
        /// Release of unused blocks (TRIM).
        Discard = "discard",
    }
}

impl Operation {
    /// Operation with this stored number; `None` if the number is unknown.
    pub fn from_number(number: u8) -> Option<Operation> {
        Operation::ALL.get(usize::from(number)).copied()
    }
}

impl BlockOperation {
    /// Operation with this stored number; `None` if the number is unknown.
    pub fn from_number(number: u8) -> Option<BlockOperation> {
        BlockOperation::ALL.get(usize::from(number)).copied()
    }
}

/// A system call or virtual file system call on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Entry of the call.
    pub start_ns: i64,
    /// From entry to exit.
    pub latency_ns: u64,
    /// Offset in the file in bytes; -1 if unknown or meaningless.
    pub offset: i64,
    /// Requested bytes.
    pub requested: u64,
    /// Transferred bytes, or the negative error number.
    pub returned: i64,
    /// Index in [`super::document::TraceDocument::files`].
    pub file: u32,
    pub process: u32,
    pub thread: u32,
    pub operation: Operation,
    /// Bytes that the calling thread requested from devices during the call, including read-ahead; -1 if unknown.
    pub fetched: i64,
}

impl Call {
    /// Transferred bytes; 0 for a failed call.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.returned).unwrap_or(0)
    }
}

/// One request of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// When the request was issued to the device.
    pub issue_ns: i64,
    /// Time in the queue before; 0 if the request was never queued.
    pub queue_ns: u64,
    /// Time in the device.
    pub device_ns: u64,
    /// First sector, in units of 512 bytes from the start of the device.
    pub sector: u64,
    pub bytes: u32,
    /// Index in [`super::document::TraceDocument::devices`].
    pub device: u32,
    pub operation: BlockOperation,
    /// Process that queued or issued the request; 0 for kernel threads, or if unknown. Kernel threads issue delayed
    /// writes and requests that were held back.
    pub process: u32,
}

/// Defines calls as columns, one for each field of [`Call`].
macro_rules! columns {
    ($($field:ident: $type:ty,)*) => {
        /// Calls in columns of the same length.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct CallBatch {
            $(
                #[doc = concat!("[`Call::", stringify!($field), "`].")]
                pub $field: Vec<$type>,
            )*
        }

        impl CallBatch {
            /// Appends a call.
            pub fn push(&mut self, call: &Call) {
                $(self.$field.push(call.$field);)*
            }

            /// Call in a row.
            ///
            /// # Panics
            /// If the row does not exist, or a column is shorter than the others.
            pub fn call(&self, row: usize) -> Call {
                Call {
                    $($field: self.$field[row],)*
                }
            }

            /// Removes all calls and keeps the capacity.
            pub fn clear(&mut self) {
                $(self.$field.clear();)*
            }
        }
    };
}

columns! {
    start_ns: i64,
    latency_ns: u64,
    offset: i64,
    requested: u64,
    returned: i64,
    file: u32,
    process: u32,
    thread: u32,
    operation: Operation,
    fetched: i64,
}

impl CallBatch {
    /// Number of calls.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// All calls, in order.
    pub fn iter(&self) -> impl Iterator<Item = Call> + '_ {
        (0..self.len()).map(|row| self.call(row))
    }
}

impl FromIterator<Call> for CallBatch {
    fn from_iter<I: IntoIterator<Item = Call>>(calls: I) -> CallBatch {
        let mut batch = CallBatch::default();
        for call in calls {
            batch.push(&call);
        }
        batch
    }
}
