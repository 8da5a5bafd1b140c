use super::*;

const MACHINE: Machine = Machine { memory_bytes: 24 << 30, cores: 2, has_servers: true };
const ALL: Allowed = Allowed { restart: true, host: true, durability: true };

fn knobs(asked: &[&str], allowed: Allowed) -> Result<Vec<Knob>, String> {
    let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
    find(&asked, allowed, MACHINE).map_err(|error| error.to_string())
}

#[test]
fn restarts_and_less_durable_writes_must_be_allowed() {
    let all = knobs(&[], ALL).unwrap();
    let safe = knobs(&[], Allowed::default()).unwrap();
    assert!(all.iter().any(|knob| knob.reach == Reach::Restart));
    assert!(safe.iter().all(|knob| knob.reach == Reach::RunTime));
    let journal = |knobs: &[Knob]| {
        let mut own = knobs.iter().filter(|knob| knob.key.ends_with("journalCommitInterval"));
        own.next().unwrap().values.clone()
    };
    assert!(journal(&all).contains(&"500".to_owned()));
    assert!(!journal(&safe).contains(&"500".to_owned()), "{:?}", journal(&safe));
    assert!(all.iter().all(|knob| knob.group != CLIENT));
}

#[test]
fn machine_decides_the_range() {
    let cache = knobs(&["cache"], ALL).unwrap();
    let sizes: Vec<&str> = cache[0].values.iter().map(String::as_str).collect();
    assert_eq!((sizes[0], *sizes.last().unwrap()), ("256MiB", "12288MiB"));
    let error = knobs(&["cache"], Allowed::default()).unwrap_err();
    assert!(error.contains("--allow restart"), "{error}");
}

#[test]
fn eviction_threads_follow_the_cores_up_to_the_server_limit() {
    let of_cores = |cores, has_servers| {
        let machine = Machine { cores, has_servers, ..MACHINE };
        let asked = ["eviction".to_owned()];
        let mut found = find(&asked, Allowed::default(), machine).unwrap();
        found.retain(|knob| knob.name == "eviction threads");
        let threads = found.remove(0);
        assert_eq!(threads.values[threads.default.unwrap()], "4", "{cores}");
        threads.values
    };
    assert_eq!(of_cores(1, true), ["1", "2", "3", "4"]);
    assert_eq!(of_cores(2, true), ["1", "2", "4", "8"]);
    assert_eq!(of_cores(64, true), ["1", "3", "4", "7", "20"]);
    // The number of cores of another machine is unknown.
    assert_eq!(of_cores(2, false), ["1", "3", "4", "7", "20"]);
}

#[test]
fn clients_follow_the_cores_of_their_own_machine() {
    let allowed = Allowed { restart: true, ..Allowed::default() };
    let of = |has_servers| {
        let machine = Machine { has_servers, ..MACHINE };
        let found = find(&["client".to_owned()], allowed, machine).unwrap();
        found[0].values.clone()
    };
    assert_eq!(of(true), of(false));
    assert_eq!(of(true).last().map(String::as_str), Some("128"));
}

#[test]
fn journal_intervals_above_the_current_one_are_less_durable() {
    let interval = |allowed| knobs(&["journal"], allowed).unwrap().remove(0);
    let resolved = |now: &[&str], allowed: Allowed| {
        let mut knob = interval(allowed);
        now.iter().for_each(|value| knob.set_default(value));
        let left_out = knob.resolve_durability(now, allowed.durability);
        (knob, left_out)
    };
    let safe = Allowed::default();
    for (now, kept, left_out) in [
        (&["10"][..], &["10"][..], &["30", "100"][..]),
        (&["30"], &["10", "30"], &["100"]),
        (&["100"], &["10", "30", "100"], &[]),
        // The current value stays, but does not permit other weak values.
        (&["300"], &["10", "30", "100", "300"], &[]),
        (&["500"], &["10", "30", "100", "500"], &[]),
        // The default of older servers.
        (&["0"], &["0", "10", "30", "100"], &[]),
        (&["100", "100"], &["10", "30", "100"], &[]),
    ] {
        let (knob, without) = resolved(now, safe);
        assert_eq!(knob.values, kept, "{now:?}");
        assert_eq!(without, left_out, "{now:?}");
        assert_eq!(knob.values[knob.default.unwrap()], now[0]);
    }
    // One server's value is less durable than the other's, but both would get the same values.
    for now in [["30", "100"], ["100", "30"]] {
        let (knob, left_out) = resolved(&now, safe);
        assert_eq!((knob.values.len(), left_out), (1, vec!["100".to_owned()]));
    }
    let (knob, left_out) = resolved(&["30"], ALL);
    assert_eq!((knob.values.len(), left_out.len()), (5, 0));
    assert_eq!(knob.less_durable, ["100", "300", "500"]);
    let (knob, _) = resolved(&["500"], ALL);
    assert!(knob.less_durable.is_empty(), "{:?}", knob.less_durable);
    // Other parameters have no such limit.
    let mut other = knobs(&["checkpoint"], safe).unwrap().remove(0);
    assert_eq!(other.resolve_durability(&["60"], false).len(), 0);
    assert_eq!(other.values.len(), 6);
    assert_eq!(other.reported_parameter(), Some("syncdelay"));
    assert!(other.is_checkpoint_interval() && !interval(safe).is_checkpoint_interval());
    let of_start = Knob { key: format!("{PARAMETERS}journalCommitInterval"), ..interval(safe) };
    assert_eq!(of_start.reported_parameter(), Some("journalCommitInterval"));
    assert_eq!(of_start.runtime_parameter(), None);
}

#[test]
fn parameter_is_typed_with_its_values() {
    let mut knob = knobs(&["syncdelay=120,20"], Allowed::default()).unwrap().remove(0);
    assert_eq!(knob.values, ["20", "120"]);
    assert_eq!((knob.default, knob.ordered), (None, true));
    knob.set_default("60.0");
    assert_eq!((knob.values.len(), knob.default), (3, Some(1)));
    knob.set_default("120.0");
    assert_eq!((knob.values.len(), knob.default), (3, Some(2)));
    knob.add("30");
    assert_eq!(knob.values, ["20", "30", "60.0", "120"]);
    assert_eq!(knob.default, Some(3));
    for (wrong, says) in [
        ("syncdelay=20", "2 to 24"),
        ("syncdelay=20,20", "twice"),
        ("evictions", "`syncdelay=20,60`"),
        ("none.toml", "`none.toml`"),
        ("cache", "--allow restart"),
        ("journalCommitInterval=30,300", "less durable"),
        ("journalCommitInterval=100,400", "less durable"),
        ("journalCommitInterval=30,300.0", "less durable"),
    ] {
        let error = knobs(&[wrong], Allowed::default()).unwrap_err();
        assert!(error.contains(says), "{wrong}: {error}");
    }
    let error = knobs(&["checkpoint", "syncdelay=20,60"], ALL).unwrap_err();
    let parts = ["`server.runtime_parameters.syncdelay`", "`checkpoint interval`", "`syncdelay`"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn knob_file_cannot_allow_less_durable_writes() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("own.toml");
    let restart = Allowed { restart: true, ..Allowed::default() };
    for (key, values) in [
        ("server.runtime_parameters.journalCommitInterval", "'30','200'"),
        ("server.parameters.journalCommitInterval", "'30','200'"),
        (
            "server.runtime_parameters.wiredTigerEngineRuntimeConfig",
            "'log=(enabled=true)','log=(enabled=false)'",
        ),
        (
            "server.parameters.wiredTigerEngineRuntimeConfig",
            "'eviction_target=70, log={\"enabled\": false}','30'",
        ),
        ("server.storage_engine", "'wired-tiger','in-memory'"),
        ("server.topology", "'replica-set=3','standalone'"),
    ] {
        let text =
            format!("[[knobs]]\nname='a'\ngroup='g'\nkey='{key}'\nvalues=[{values}]\ndefault='30'");
        std::fs::write(&path, text).unwrap();
        let asked = [path.to_str().unwrap()];
        let error = knobs(&asked, restart).unwrap_err();
        assert!(error.contains("less durable"), "{key}: {error}");
        let known = &knobs(&asked, ALL).unwrap()[0].less_durable;
        assert!(known.iter().any(|value| values.contains(value)), "{key}: {known:?}");
    }
}

#[test]
fn invalid_file_is_refused_with_its_place() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("own.toml");
    for (text, says) in [
        ("knobs = 1", "own.toml"),
        (
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nfrom='1GiB'\nto='1MiB'\nsteps=3\ndefault='1GiB'",
            "from `1GiB` to `1MiB`",
        ),
        ("[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nvalues=['1GiB','2GiB']", "`default`"),
        (
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nvalues=['1GiB','2GiB']\nfrom='1'\ndefault='1GiB'",
            "`values` alone",
        ),
        (
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nvalues=['1GiB','2GiB']\nmost='3GiB'\ndefault='1GiB'",
            "`values` alone",
        ),
        (
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.runtime_parameters.x'\nfrom='4'\nto='cores*64'\nmost='4'\nsteps=3\ndefault='4'",
            "from `4` to `cores*64`",
        ),
        (
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.runtime_parameters.x'\nvalues=['1','2']\ntext='y'\ndefault='1'",
            "`{}`",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = knobs(&[path.to_str().unwrap()], ALL).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn host_settings_must_be_allowed_and_some_need_a_restart() {
    let host = |restart| Allowed { restart, host: true, durability: false };
    let error = knobs(&["host"], Allowed::default()).unwrap_err();
    assert!(error.contains("--allow host"), "{error}");
    let found = knobs(&["host"], host(false)).unwrap();
    assert!(found.iter().all(|knob| knob.reach == Reach::Host && !knob.needs_start()));
    let of_all = |name, restart| {
        let all = knobs(&[], host(restart)).unwrap();
        all.iter().any(|knob| knob.name == name)
    };
    for (name, without_start) in
        [("huge pages", false), ("readahead", false), ("I/O scheduler", true)]
    {
        let found = (of_all(name, false), of_all(name, true));
        assert_eq!(found, (without_start, true), "{name}");
    }
    let mut readahead = knobs(&["readahead=16KiB,128KiB,4KiB"], host(true)).unwrap().remove(0);
    assert_eq!(readahead.host_setting(), Some(HostSetting::Readahead));
    assert_eq!(readahead.values, ["4KiB", "16KiB", "128KiB"]);
    readahead.set_default("16KiB");
    readahead.retain(&["16KiB".to_owned(), "128KiB".to_owned()]);
    assert_eq!((readahead.values.len(), readahead.default), (2, Some(0)));
    for (wrong, allowed, says) in [
        ("readahead=16KiB,128KiB", Allowed::default(), "--allow host"),
        ("huge_pages=always,never", host(false), "--allow host,restart"),
        ("readahead=16KiB,128KiB", host(false), "--allow host,restart"),
        ("readahead=6KiB,16KiB", host(true), "its machine setting"),
    ] {
        let error = knobs(&[wrong], allowed).unwrap_err();
        assert!(error.contains(says), "{wrong}: {error}");
    }
}

#[test]
fn built_in_knobs_have_risk_documentation_and_versions() {
    for knob in file::built_in() {
        let name = &knob.name;
        assert!(knob.risk.is_some(), "{name}");
        let page = knob.documentation.as_ref();
        assert!(page.is_some_and(|page| page.starts_with("https://")), "{name}");
        let is_of_server = knob.key.starts_with("server.") && !knob.key.starts_with(HOST_SETTINGS);
        assert_eq!(knob.versions.is_some(), is_of_server, "{name}");
    }
}

#[test]
fn switches_are_unordered_and_connection_options_are_durable() {
    let all = knobs(&["replication", "diagnostics"], Allowed::default()).unwrap();
    let switches = all.iter().filter(|knob| knob.values == ["false", "true"]);
    assert_eq!(switches.clone().count(), 2);
    assert!(switches.clone().all(|knob| !knob.ordered));
    let client = |durability| {
        let allowed = Allowed { restart: true, host: false, durability };
        knobs(&["client"], allowed).unwrap()
    };
    let names =
        |durability| client(durability).into_iter().map(|knob| knob.name).collect::<Vec<_>>();
    assert_eq!(names(false), ["clients", "wire compressor"]);
    assert_eq!(names(true), ["clients", "wire compressor", "write concern", "durable writes"]);
    let durable = client(true).remove(3);
    assert_eq!(durable.less_durable, ["false"]);
    assert_eq!((durable.ordered, durable.default), (false, Some(0)));
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("own.toml");
    for text in ["compressors={}", "w={}", "{}"] {
        let own = format!(
            "[[knobs]]\nname='a'\ngroup='g'\nkey='server.connection_options'\ntext='{text}'\nvalues=['snappy','1&w=0']\ndefault='snappy'"
        );
        std::fs::write(&path, own).unwrap();
        let allowed = Allowed { restart: true, ..Allowed::default() };
        let error = knobs(&[path.to_str().unwrap()], allowed).unwrap_err();
        assert!(error.contains("less durable"), "{text}: {error}");
    }
}
