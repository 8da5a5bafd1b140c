//! Single events of a trace, as the tracer hands them over and as columns of a table.

use crate::named::named;

named! {
    /// What a call did to a file.
    // In the order of the numbers as they are stored.
    #[repr(u8)]
    Operation {
        /// It read.
        Read = "read",
        /// It wrote.
        Write = "write",
        /// It waited until data was on the device.
        Sync = "sync",
        /// A page of a mapped file was missing and was fetched.
        Fault = "fault",
    }

    /// What a request of the block layer did to a device.
    // In the order of the numbers as they are stored.
    #[repr(u8)]
    BlockOperation {
        /// It read.
        Read = "read",
        /// It wrote.
        Write = "write",
        /// It emptied the device's own cache.
        Flush = "flush",
        /// It gave space back.
        Discard = "discard",
    }
}

impl Operation {
    /// The operation of a number as it is stored; `None` of a number that means nothing.
    pub fn from_number(number: u8) -> Option<Operation> {
        Operation::ALL.get(usize::from(number)).copied()
    }
}

impl BlockOperation {
    /// The operation of a number as it is stored; `None` of a number that means nothing.
    pub fn from_number(number: u8) -> Option<BlockOperation> {
        BlockOperation::ALL.get(usize::from(number)).copied()
    }
}

/// One system call, or call of the virtual file system, on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was entered.
    pub start_ns: i64,
    /// From entry to exit.
    pub latency_ns: u64,
    /// Where in the file it began, in bytes; -1 where that is not known, or has no meaning.
    pub offset: i64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Bytes that were moved, or the negative number of the error.
    pub returned: i64,
    /// Place of the file in [`super::document::TraceDocument::files`].
    pub file: u32,
    /// Process that called.
    pub process: u32,
    /// Thread that called.
    pub thread: u32,
    /// What it did.
    pub operation: Operation,
    /// Bytes that its thread asked devices for while it was under way, read-ahead included; -1 where
    /// that is not known.
    pub fetched: i64,
}

impl Call {
    /// Bytes that were moved; 0 of a call that failed.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.returned).unwrap_or(0)
    }
}

/// One request of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// When the device got it.
    pub issue_ns: i64,
    /// How long it waited in the queue before; 0 if it never did.
    pub queue_ns: u64,
    /// How long the device took.
    pub device_ns: u64,
    /// First sector, in units of 512 bytes from the start of the device.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    /// Place of the device in [`super::document::TraceDocument::devices`].
    pub device: u32,
    /// What it did.
    pub operation: BlockOperation,
    /// Process that put it into the queue or issued it; 0 if that is a thread of the kernel, or not known.
    /// Data that is written later is that of such a thread, and so is what was held back before.
    pub process: u32,
}

/// Defines calls as columns, one for each field of [`Call`].
macro_rules! columns {
    ($($field:ident: $type:ty,)*) => {
        /// Calls as columns, all of the same length.
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

            /// The call of a row.
            ///
            /// # Panics
            /// If there is no such row, or a column is shorter than the others.
            pub fn call(&self, row: usize) -> Call {
                Call {
                    $($field: self.$field[row],)*
                }
            }

            /// Removes all calls and keeps the room for others.
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

    /// Whether it has no calls.
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
