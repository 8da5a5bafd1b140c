//! What is lost is counted, and what is possible is told.

use crate::support::{Everything, can_trace, file_of, files, folder};
use dyno_record::io_trace::document::TraceCaveatKind;
use dyno_trace::hooks::{Watched, Way};
use dyno_trace::{LiveKernel, TraceError, Tracer, possibilities};
use std::process::Command;

#[test]
fn calls_that_find_the_buffer_full_are_counted() {
    if !can_trace("calls_that_find_the_buffer_full_are_counted") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 4096);
    let mut settings = files("data");
    settings.ring_bytes = 1 << 20;
    let mut tracer = Tracer::start(settings).unwrap();
    let script =
        format!("import os\nfd = os.open({path:?}, 0)\nfor i in range(50000): os.pread(fd, 10, i)");
    let mut child = tracer
        .spawn(Command::new("python3").args(["-c", &script]))
        .unwrap();
    // Nobody empties the buffer meanwhile.
    assert!(child.wait().unwrap().success());
    let mut everything = Everything::default();
    let traced = tracer.stop(&mut everything).unwrap();
    assert!(traced.lost_calls > 20_000, "{}", traced.lost_calls);
    // Besides, files that were met when it was full already are counted with each try.
    let seen = traced.calls + traced.lost_calls;
    assert!((50_000..50_010).contains(&seen), "{seen}");
    assert_eq!(traced.calls, everything.calls.len() as u64);
    let kinds: Vec<_> = traced.caveats.iter().map(|caveat| caveat.kind).collect();
    assert!(kinds.contains(&TraceCaveatKind::LostEvents), "{kinds:?}");
}

#[test]
fn what_is_said_to_be_possible_can_be_done_and_the_rest_is_refused() {
    if !can_trace("what_is_said_to_be_possible_can_be_done_and_the_rest_is_refused") {
        return;
    }
    let told = possibilities(&LiveKernel::new());
    assert_eq!(told.refusal, None);
    assert_eq!(told.ways.len(), Way::ALL.len());
    for (way, possible) in told.ways {
        println!("{way:?}: {possible:?}");
        let mut settings = files("data");
        settings.way = Some(way);
        let started = Tracer::start(settings).map(drop);
        assert_eq!(
            started.is_ok(),
            possible.is_ok(),
            "{way:?}: {possible:?}, {started:?}"
        );
        if let Err(refusal) = started {
            let expected = matches!(
                refusal,
                TraceError::NoHook { .. } | TraceError::NoTracefs { .. }
            );
            assert!(expected, "{refusal}");
        }
    }
    let processes = told
        .watched
        .iter()
        .find(|each| each.watched == Watched::Processes)
        .unwrap();
    assert!(processes.hook.is_ok());
}
