//! Simulated kernels.

use super::*;
use crate::possibilities::possibilities;
use dyno_record::io_trace::event::Operation;
use std::collections::HashSet;

/// A kernel with the hooks that a test needs.
struct Offer {
    fentry: bool,
    kprobe: bool,
    tracefs: bool,
    complete_arguments: usize,
    without: HashSet<&'static str>,
}

impl Offer {
    fn everything() -> Offer {
        Offer {
            fentry: true,
            kprobe: true,
            tracefs: true,
            complete_arguments: 3,
            without: HashSet::new(),
        }
    }

    /// Like some virtual machines, without trampolines and breakpoints.
    fn tracepoints_only() -> Offer {
        Offer { fentry: false, kprobe: false, ..Offer::everything() }
    }

    fn without(mut self, names: &[&'static str]) -> Offer {
        self.without.extend(names);
        self
    }
}

impl Kernel for Offer {
    fn admits(&self) -> Result<(), TraceError> {
        Ok(())
    }

    fn fentry(&self) -> Result<(), String> {
        self.fentry.then_some(()).ok_or_else(|| "no trampolines".to_owned())
    }

    fn kprobe(&self) -> Result<(), String> {
        self.kprobe.then_some(()).ok_or_else(|| "no breakpoints".to_owned())
    }

    fn function(&self, name: &str) -> bool {
        !self.without.contains(name)
    }

    fn tracepoint(&self, name: &str) -> Result<usize, String> {
        match name {
            _ if self.without.contains(name) => Err("not here".to_owned()),
            io_uring::COMPLETE => Ok(self.complete_arguments),
            _ => Ok(2),
        }
    }

    fn tracefs(&self) -> Result<(), String> {
        self.tracefs.then_some(()).ok_or_else(|| "/sys/kernel/tracing".to_owned())
    }

    fn point(&self, _category: &str, name: &str) -> Result<(), String> {
        if self.without.contains(name) { Err("not listed".to_owned()) } else { Ok(()) }
    }
}

fn choose_all(offer: &Offer) -> Choice {
    choose(offer, &Filter::default(), true, None).unwrap()
}

fn hook(choice: &Choice, target: HookTarget) -> Hook {
    choice.hooks.iter().find(|hook| hook.target == target).unwrap().clone()
}

#[test]
fn trampolines_are_taken_where_they_work() {
    let choice = choose_all(&Offer::everything());
    let transfers = hook(&choice, HookTarget::Transfers);
    assert_eq!(transfers.kind, HookKind::Fentry);
    assert_eq!(transfers.name, "vfs_read, vfs_write");
    assert_eq!(transfers.why_not_better, None);
    assert_eq!(hook(&choice, HookTarget::Vectors).method, Some(HookMethod::Fentry));
    assert_eq!(hook(&choice, HookTarget::Syncs).name, "vfs_fsync_range");
    assert!(choice.missing.is_empty());
}

#[test]
fn unhookable_targets_do_not_hook_every_system_call() {
    let choice = choose_all(&Offer::everything());
    for target in [HookTarget::SyncRanges, HookTarget::Names, HookTarget::Unseen] {
        assert_eq!(hook(&choice, target).method, Some(HookMethod::SyscallPoints), "{target:?}");
    }
    let without_tracefs = Offer { tracefs: false, ..Offer::everything() };
    let choice = choose_all(&without_tracefs);
    assert_eq!(hook(&choice, HookTarget::Names).method, Some(HookMethod::SyscallPair));
}

#[test]
fn breakpoints_are_second_and_the_record_says_why() {
    let offer = Offer { fentry: false, ..Offer::everything() };
    let transfers = hook(&choose_all(&offer), HookTarget::Transfers);
    assert_eq!(transfers.kind, HookKind::Kprobe);
    assert_eq!(transfers.why_not_better.as_deref(), Some("fentry: no trampolines"));
    assert_eq!(transfers.to_record().what, "read and write");
    assert_eq!(transfers.attachments.len(), 4);
}

#[test]
fn inlined_function_is_replaced_by_its_system_calls() {
    let choice = choose_all(&Offer::everything().without(&["vfs_readv"]));
    assert_eq!(hook(&choice, HookTarget::Transfers).method, Some(HookMethod::Fentry));
    let vectors = hook(&choice, HookTarget::Vectors);
    assert_eq!(vectors.method, Some(HookMethod::SyscallPoints));
    let why = vectors.why_not_better.unwrap();
    assert!(why.contains("no function vfs_readv"), "{why}");
}

#[test]
fn calls_share_one_tracepoint_pair_without_functions() {
    let choice = choose_all(&Offer::tracepoints_only());
    for target in [HookTarget::Transfers, HookTarget::Vectors, HookTarget::Syncs, HookTarget::Names]
    {
        assert_eq!(hook(&choice, target).method, Some(HookMethod::SyscallPair), "{target:?}");
    }
    let why = hook(&choice, HookTarget::Transfers).why_not_better.unwrap();
    assert_eq!(why, "fentry: no trampolines; kprobe: no breakpoints");
}

#[test]
fn kernel_without_shared_tracepoints_uses_one_per_call() {
    let choice = choose_all(&Offer::tracepoints_only().without(&["sys_enter"]));
    let transfers = hook(&choice, HookTarget::Transfers);
    assert_eq!(transfers.method, Some(HookMethod::SyscallPoints));
    assert!(transfers.name.ends_with("read, pread64, write, pwrite64"), "{}", transfers.name);
    assert_eq!(transfers.attachments.len(), 8);
}

#[test]
fn refusal_shows_how_to_mount_a_missing_tracefs() {
    let offer = Offer { tracefs: false, ..Offer::tracepoints_only().without(&["sys_enter"]) };
    let refusal = choose(&offer, &Filter::default(), true, None).unwrap_err();
    assert!(matches!(refusal, TraceError::NoTracefs { .. }), "{refusal}");
    let hint = refusal.hint().unwrap();
    assert!(hint.contains("mount -t tracefs tracefs /sys/kernel/tracing"), "{hint}");
}

#[test]
fn a_kernel_without_any_hook_is_refused_with_all_reasons() {
    let offer = Offer::tracepoints_only().without(&["sys_exit", "sys_enter_read"]);
    let refusal = choose(&offer, &Filter::default(), true, None).unwrap_err().to_string();
    for part in ["read and write", "no trampolines", "no breakpoints", "not here", "not listed"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

#[test]
fn forced_method_is_used_or_refused_but_not_replaced() {
    let all = Offer::everything();
    for &method in HookMethod::ALL {
        let choice = choose(&all, &Filter::default(), true, Some(method)).unwrap();
        assert_eq!(hook(&choice, HookTarget::Transfers).method, Some(method));
    }
    let refusal =
        choose(&Offer::tracepoints_only(), &Filter::default(), true, Some(HookMethod::Fentry));
    assert!(refusal.is_err());
}

#[test]
fn only_targets_that_the_filter_admits_are_hooked() {
    let filter = Filter { operations: vec![Operation::Sync], ..Filter::default() };
    let choice = choose(&Offer::everything(), &filter, false, None).unwrap();
    let targets: Vec<HookTarget> = choice.hooks.iter().map(|hook| hook.target).collect();
    let expected = [
        HookTarget::Processes,
        HookTarget::Syncs,
        HookTarget::SyncRanges,
        HookTarget::Names,
        HookTarget::IoUring,
    ];
    assert_eq!(targets, expected);
}

#[test]
fn io_uring_completion_accepts_two_forms_and_refuses_others() {
    let program = |complete_arguments| {
        let offer = Offer { complete_arguments, ..Offer::tracepoints_only() };
        let choice = choose_all(&offer);
        let hook = choice.hooks.into_iter().find(|hook| hook.target == HookTarget::IoUring);
        hook.map(|hook| hook.attachments[1].program)
    };
    assert_eq!(program(3), Some("ring_complete_entry"));
    assert_eq!(program(7), Some("ring_complete_result"));
    assert_eq!(program(4), None);
}

#[test]
fn dispensable_hook_is_missing_with_its_reason() {
    let choice = choose_all(&Offer::tracepoints_only().without(&["mm_filemap_fault"]));
    assert_eq!(choice.missing.len(), 1);
    assert_eq!(choice.missing[0].target, HookTarget::Faults);
    assert!(choice.missing[0].reason.contains("mm_filemap_fault"));
}

#[test]
fn possibilities_list_each_method_with_its_reason() {
    let reported = possibilities(&Offer::tracepoints_only());
    assert_eq!(reported.refusal, None);
    let methods: Vec<_> =
        reported.methods.iter().map(|(method, found)| (*method, found.is_ok())).collect();
    let expected = [
        (HookMethod::Fentry, false),
        (HookMethod::Kprobe, false),
        (HookMethod::SyscallPair, true),
        (HookMethod::SyscallPoints, true),
    ];
    assert_eq!(methods, expected);
    assert_eq!(reported.methods[1].1, Err("no breakpoints".to_owned()));
    assert_eq!(reported.targets.len(), HookTarget::ALL.len());
}

#[test]
fn the_kernel_version_is_named_only_for_new_hooks() {
    let missing = |name: &'static str, target| {
        let choice = choose_all(&Offer::tracepoints_only().without(&[name]));
        let found = choice.missing.iter().find(|each| each.target == target);
        found.unwrap().reason.clone()
    };
    let faults = missing(faults::TRACEPOINT, HookTarget::Faults);
    assert!(faults.ends_with("Linux 6.11"), "{faults}");
    let ring = missing(io_uring::SUBMIT, HookTarget::IoUring);
    assert!(ring.ends_with("Linux 6.4"), "{ring}");
    // Hooks that exist since the oldest supported version depend only on build options.
    for (name, word) in
        [("sched_process_fork", "CONFIG_BPF_EVENTS"), ("block_rq_issue", "--no-block")]
    {
        let offer = Offer::tracepoints_only().without(&[name]);
        let refusal = choose(&offer, &Filter::default(), true, None).unwrap_err();
        let hint = refusal.hint().unwrap();
        assert!(hint.contains(word) && !hint.contains("Linux"), "{hint}");
    }
    let nothing = Offer::tracepoints_only().without(&["sys_enter", "sys_enter_read"]);
    let hint = choose(&nothing, &Filter::default(), true, None).unwrap_err().hint().unwrap();
    assert!(hint.contains("CONFIG_FTRACE_SYSCALLS"), "{hint}");
}
