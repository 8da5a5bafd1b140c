use super::*;
use dyno_plan::knobs::{Allowed, find};
use dyno_plan::request::Setting;

fn task(cache: Option<&str>) -> Task {
    with(cache.map(|cache| ("server.cache", cache)))
}

fn with(setting: Option<(&str, &str)>) -> Task {
    let mut plan = dyno_plan::builtin::find("c").expect("it is built in");
    if let Some((key, value)) = setting {
        let setting = Setting::from_text(key, value);
        dyno_plan::file::set(&mut plan, &[setting]).unwrap();
    }
    Task::from_plan(plan, None, None).expect("it is valid")
}

/// The knobs of a shipped group, for a machine with this memory.
fn group(name: &str, memory_bytes: u64, durability: bool) -> Vec<Knob> {
    let machine = Machine { memory_bytes, cores: 2, has_servers: true };
    let allowed = Allowed { restart: true, host: false, durability };
    find(&[name.to_owned()], allowed, machine).unwrap()
}

fn shipped(memory_bytes: u64) -> Vec<Knob> {
    group("cache", memory_bytes, false)
}

fn default_of(knob: &Knob) -> &str {
    &knob.values[knob.default.unwrap()]
}

#[test]
fn cache_default_is_the_servers_value_and_all_values_fit() {
    let mut knobs = shipped(24 << 30);
    let reported = ServerRecord { cache_bytes: Some(3 * (3840 << 20)), ..ServerRecord::default() };
    let mut three = task(None);
    three.plan.server.topology = Some("pairs=3".into());
    let cache = cache_of(Some(&reported), &three);
    assert_eq!(cache.as_deref(), Some("3840MiB"));
    assert_eq!(cache_of(Some(&reported), &task(Some("300MiB"))), None);
    let caches = std::slice::from_ref(&cache);
    // Half of 24 GiB for three servers together.
    assert_eq!(fit_cache(&mut knobs[0], caches, 4 << 30), Ok(()));
    with_cache(&mut knobs, cache.as_deref());
    assert_eq!(default_of(&knobs[0]), "3840MiB");
    let largest = knobs[0].values.last().unwrap().parse::<Bytes>().unwrap();
    assert!(3 * largest.0 <= 12 << 30, "{:?}", knobs[0].values);
    // Ten servers in 4 GiB can only have the smallest cache.
    let smallest = Some("256MiB".to_owned());
    let caches = std::slice::from_ref(&smallest);
    assert!(fit_cache(&mut knobs[0], caches, (4 << 30) / 20).is_err());
}

#[test]
fn plan_value_of_one_workload_is_not_the_default_of_another() {
    let shipped = shipped(4 << 30);
    let plain = default_of(&shipped[0]).to_owned();
    let tasks = [task(Some("300MiB")), task(None)];
    let mut all = shipped;
    for task in &tasks {
        with_values_of(&mut all, task);
    }
    let of_each = tasks.each_ref().map(|task| {
        let mut own = all.clone();
        as_planned(&mut own, task);
        own.remove(0)
    });
    assert_eq!(of_each[0].values, of_each[1].values);
    assert_eq!(default_of(&of_each[0]), "300MiB");
    assert_eq!(default_of(&of_each[1]), plain);
}

#[test]
fn values_less_durable_than_the_server_are_left_out_and_named() {
    // Each plan with its servers' values.
    let resolved = |now: &[&[&str]], durability| {
        let mut knob = group("journal", 4 << 30, durability).remove(0);
        let name = "journalCommitInterval".to_owned();
        let has = |value: &&str| BTreeMap::from([(name.clone(), (*value).to_owned())]);
        let found = now.iter().map(|servers| servers.iter().map(has).collect());
        let found: Vec<Vec<BTreeMap<String, String>>> = found.collect();
        let mut partly = Vec::new();
        let result = resolve_parameter(&mut knob, &found, durability, &mut partly, |_| None);
        let partly: Vec<String> = partly.into_iter().map(|knob| knob.name).collect();
        (result.is_ok(), knob.values.len(), partly)
    };
    assert!(!resolved(&[&["10"]], false).0);
    let named = |values: &str| vec![format!("journal commit interval ({values})")];
    assert_eq!(resolved(&[&["50"]], false), (true, 3, named("100")));
    assert_eq!(resolved(&[&["20"]], false).2, named("30, 100"));
    assert!(!resolved(&[&["50"], &["100"]], false).0);
    // Another member has a smaller value than the first one.
    assert!(!resolved(&[&["100", "30"]], false).0);
    assert_eq!(resolved(&[&["50", "30"]], true), (true, 6, Vec::new()));
    assert_eq!(resolved(&[&["100"]], false), (true, 3, Vec::new()));
    assert_eq!(resolved(&[&["500"]], false), (true, 4, Vec::new()));
    assert_eq!(resolved(&[&["10"]], true), (true, 5, Vec::new()));
    // A parameter that one of the servers does not have is not tried.
    let mut knob = group("journal", 4 << 30, false).remove(0);
    let found = BTreeMap::from([("journalCommitInterval".to_owned(), "100".to_owned())]);
    let found = [vec![found, BTreeMap::new()]];
    let reason = resolve_parameter(&mut knob, &found, false, &mut Vec::new(), |_| None);
    assert!(reason.unwrap_err().contains("`journalCommitInterval`"));
}

#[test]
fn unjournaled_server_gets_no_longer_checkpoint_interval() {
    let server = |name: &str, value: &str| ServerRecord {
        settings: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..ServerRecord::default()
    };
    for name in ["journal", "storage.journal.enabled"] {
        assert!(!is_unjournaled(&server(name, "true")), "{name}");
        assert!(is_unjournaled(&server(name, "false")), "{name}");
    }
    let interval = |now: &str, values: &[&str], ordered: bool| {
        let mut knob = group("checkpoint", 4 << 30, false).remove(0);
        knob.values = values.iter().map(ToString::to_string).collect();
        knob.ordered = ordered;
        knob.set_default(now);
        knob
    };
    let known = ["10", "20", "60", "120", "300"];
    let resolved = |now: &str, values: &[&str], ordered: bool| {
        let mut knob = interval(now, values, ordered);
        let mut partly = Vec::new();
        let result = resolve_checkpoints(&mut knob, true, false, &mut partly);
        result.map(|()| (knob.values.join(" "), partly.len()))
    };
    let kept = |values: &str, partly: usize| Ok::<_, String>((values.to_owned(), partly));
    assert_eq!(resolved("60.0", &known, true), kept("10 20 60", 1));
    assert_eq!(resolved("300", &known, true), kept("10 20 60 120 300", 0));
    // Never, instead of after a time.
    assert_eq!(resolved("60", &["0", "20", "60"], true), kept("20 60", 1));
    assert_eq!(resolved("0", &["0", "20", "60"], true), kept("0 20 60", 0));
    for (now, values, ordered) in [("10", &known[..], true), ("60", &known[..], false)] {
        let reason = resolved(now, values, ordered).unwrap_err();
        assert!(reason.contains("--allow durability"), "{reason}");
    }
    let mut knob = interval("60", &known, true);
    assert_eq!(resolve_checkpoints(&mut knob, true, true, &mut Vec::new()), Ok(()));
    assert_eq!((knob.less_durable.join(" "), knob.values.len()), ("120 300".to_owned(), 5));
    let journal = group("journal", 4 << 30, false).remove(0);
    for (knob, is_unjournaled) in [(interval("60", &known, true), false), (journal, true)] {
        let mut same = knob.clone();
        assert_eq!(resolve_checkpoints(&mut same, is_unjournaled, false, &mut Vec::new()), Ok(()));
        assert_eq!(same, knob);
    }
}

#[test]
fn dirty_memory_ratio_is_left_out_when_a_size_is_set() {
    let machine = tempfile::TempDir::new().unwrap();
    let write = |file: &str, text: &str| {
        let path = machine.path().join("proc/sys/vm").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let resolved = |name: &str| {
        let asked = format!("{name}=5,20");
        let allowed = Allowed { host: true, ..Allowed::default() };
        let machine_of = Machine { memory_bytes: 4 << 30, cores: 2, has_servers: true };
        let mut knob = find(&[asked], allowed, machine_of).unwrap().remove(0);
        resolve_host_in(machine.path(), &mut knob, &[])?;
        assert_eq!(knob.files.len(), 1);
        Ok::<String, String>(default_of(&knob).to_owned())
    };
    write("dirty_ratio", "20\n");
    write("dirty_bytes", "0\n");
    write("dirty_background_ratio", "0\n");
    write("dirty_background_bytes", "67108864\n");
    assert_eq!(resolved("dirty_ratio"), Ok("20".to_owned()));
    assert!(resolved("dirty_background_ratio").is_err_and(|reason| reason.contains("size")));
    write("dirty_bytes", "268435456\n");
    assert!(resolved("dirty_ratio").is_err());
}

#[test]
fn server_value_becomes_the_default_even_of_a_text_knob() {
    let resolved = |own: &str, name: &str, reported: &str| {
        let mut knob = group(own, 4 << 30, false)
            .into_iter()
            .find(|knob| knob.name == name)
            .expect("it is shipped");
        let parameter = knob.reported_parameter().expect("servers report it").to_owned();
        let server = BTreeMap::from([(parameter, reported.to_owned())]);
        let mut partly = Vec::new();
        resolve_parameter(&mut knob, &[vec![server]], false, &mut partly, |_| None)?;
        assert_eq!(partly, []);
        Ok::<String, String>(default_of(&knob).to_owned())
    };
    let resolved_to = |own: &str, name: &str, reported: &str, expected: &str| {
        assert_eq!(resolved(own, name, reported), Ok(expected.to_owned()));
    };
    let engine = "eviction=(threads_max=8,threads_min=8),eviction_dirty_target=7";
    resolved_to("eviction", "eviction threads", engine, "8");
    resolved_to("eviction", "dirty target", engine, "7");
    // If the server does not report it, the file's value applies.
    resolved_to("eviction", "dirty trigger", engine, "20");
    let several = "eviction=(threads_max=20,threads_min=4)";
    let reason = resolved("eviction", "eviction threads", several).unwrap_err();
    assert!(reason.contains("several"), "{reason}");
    let reads = r#"{ "samplingRate": 0.05, "maxTimeMS": 1000 }"#;
    resolved_to("replication", "mirrored reads", reads, "0.05");
    resolved_to("checkpoint", "checkpoint interval", "60.0", "60");
}

#[test]
fn planned_durable_writes_stay_unless_less_durable_is_allowed() {
    let of_plan = |value| {
        let mut knobs = group("client", 4 << 30, true);
        knobs.retain(|knob| knob.key == "server.durable_writes");
        as_planned(&mut knobs, &with(Some(("server.durable_writes", value))));
        knobs.remove(0)
    };
    for value in ["true", "false"] {
        let knob = of_plan(value);
        assert_eq!((default_of(&knob), knob.values.len()), (value, 2));
        assert_eq!(knob.less_durable, ["false"]);
    }
    let safe = group("client", 4 << 30, false);
    assert!(safe.iter().all(|knob| knob.key != "server.durable_writes"));
}

#[test]
fn similar_name_is_suggested_and_storage_needs_a_baseline() {
    let asked = ["syncDelay=20,60".to_owned()];
    let machine = Machine { memory_bytes: 4 << 30, cores: 2, has_servers: true };
    let mut typed = find(&asked, Allowed::default(), machine).unwrap().remove(0);
    let near = |_: &str| Some("syncdelay".to_owned());
    let reason = resolve_parameter(&mut typed, &[Vec::new()], false, &mut Vec::new(), near);
    let reason = reason.unwrap_err();
    assert!(reason.contains("`syncdelay`"), "{reason}");
    let mut knobs = shipped(4 << 30);
    knobs[0].key = STORAGE.to_owned();
    let error = check(&knobs, &task(None)).unwrap_err();
    assert_eq!(error.kind, crate::Kind::BadInput);
    let hint = error.hint.unwrap();
    assert!(hint.contains(&format!("{STORAGE}=")), "{hint}");
    let storage = with(Some((STORAGE, "ext4 on loop:4GiB")));
    assert!(check(&knobs, &storage).is_ok());
}
