//! Compares the layouts with the compiled programs.

use super::*;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::btf::{Btf, HasSize};

/// Size of a structure in the compiled programs.
fn size_of_struct(name: &str) -> usize {
    let object = concat!(env!("OUT_DIR"), "/tracer.bpf.o");
    let btf = Btf::from_path(object).unwrap();
    let mut all = btf.type_by_kind::<Struct<'_>>();
    all.find(|found| found.name().is_some_and(|each| each == name)).unwrap().size()
}

#[test]
fn settings_have_the_size_that_the_programs_expect() {
    let settings = KernelSettings {
        syscalls: [0; SYSCALLS],
        smallest_bytes: 0,
        wake_bytes: 0,
        aggregated: false,
        operations: 0,
        first_verdict: 0,
        page_shift: 0,
        compat_bit: 0,
    };
    assert_eq!(settings.to_bytes().len(), size_of_struct("settings"));
}

/// Number of bytes that a reader consumes.
fn taken<T>(read: impl Fn(&mut Fields) -> T) -> usize {
    let bytes = [0; 8192];
    let mut fields = Fields::new(&bytes);
    read(&mut fields);
    bytes.len() - fields.bytes.len()
}

#[test]
fn readers_take_what_the_programs_write() {
    // The kind is read before; unused numbers at the end are not read.
    assert_eq!(taken(CallEvent::read) + 4, size_of_struct("call_event"));
    assert_eq!(taken(BlockEvent::read) + 4, size_of_struct("block_event"));
    assert_eq!(taken(RequestState::read), size_of_struct("request_state"));
    let name_event = size_of_struct("name_in_folder_event");
    assert_eq!(taken(NameEvent::read) + 4, name_event);
    assert_eq!(taken(KernelTotal::read), size_of_struct("total"));
    assert_eq!(taken(FileEvent::read) + 4, size_of_struct("file_event"));
    assert_eq!(taken(FileKey::read), size_of_struct("file_key"));
    assert_eq!(taken(FileSlot::read), size_of_struct("file_slot"));
}

#[test]
fn paths_come_from_the_file_up_to_the_root() {
    let mut bytes = Vec::new();
    let key = [1, 0, 5, 6];
    let slot = [3, 1, 9, 0, 8, 0, 2, 0];
    let rest = [7, u32::MAX, 11, 1];
    for number in [0].into_iter().chain(key).chain(slot).chain(rest) {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(b"data.wt\0db\0\0junk");
    let event = FileEvent::read(&mut Fields::new(&bytes));
    let path = (event.path.path.as_str(), event.path.whole);
    assert_eq!(path, ("/db/data.wt", true));
    assert_eq!((event.slot.id, event.key.inode, event.descriptor), (3, 1, -1));
    assert_eq!(event.slot.judged(1)[..8], [3, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(FileSlot::read(&mut Fields::new(&event.slot.judged(1))), event.slot);
}

#[test]
fn truncated_record_reads_as_zeros() {
    let event = CallEvent::read(&mut Fields::new(&[1, 0, 0, 0, 2]));
    assert_eq!((event.file, event.start_ns), (1, 0));
    assert_eq!(Fields::new(b"ab\0c").text(4), "ab");
}
