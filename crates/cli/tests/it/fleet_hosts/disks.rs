//! Servers of one host with data on different file systems.

use super::*;

/// A folder in memory, removed when this value is dropped.
struct InMemory(PathBuf);

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn disks_of_all_servers_are_recorded_and_need_room() {
    let Some(hosts) = Hosts::up("disks") else {
        return;
    };
    let memory = InMemory(format!("/dev/shm/data-of-tests-{}", std::process::id()).into());
    let disk = format!("{PLACE}/data-of-tests");
    let folders = format!("server.data_dirs=[\"{disk}\",\"{}\"]", memory.0.display());
    let fixed = [
        "--set",
        r#"fleet.servers=["server1"]"#,
        "--set",
        r#"fleet.clients=["client1"]"#,
        "--pairs",
        "2",
        "--set",
        &folders,
    ];
    let run = |more: &[&str]| hosts.run("run", &[&fixed[..], more].concat());
    // A terabyte each. Nothing is started, and nothing is left.
    let refused = run(&["--records", "1000000000"]).expect(3);
    refused.says("`server.data_dirs`").says("`server1`");
    hosts.assert_clean();
    assert!(!memory.0.exists());
    // The needs of both servers on one file system are added up.
    let one = format!("server.data_dirs=[\"{disk}\"]");
    let more = ["--set", &one, "--records", "1000000000"];
    run(&more).expect(3).says("2 servers");

    run(&["--out", "disks", "--duration", "3s"]).expect(0);
    let document = document(&hosts.bench.path("disks"));
    assert!(crate::common::run_schema().is_valid(&document));
    let storage: Vec<&Value> = document["fleet"]["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["data_storage"])
        .collect();
    assert!(storage.iter().all(|all| all.as_array().unwrap().len() == 1));
    let path = |number: usize| storage[number][0]["path"].as_str().unwrap().to_owned();
    assert_eq!(path(0), format!("{disk}/pair-0"));
    assert_eq!(path(1), format!("{}/pair-1", memory.0.display()));
    let filesystem = |number: usize| &storage[number][0]["filesystem"];
    assert_eq!(filesystem(1), "tmpfs");
    assert_ne!(filesystem(0), "tmpfs");
    // The agent reads both disks.
    let (tables, _) = dyno_record::metrics::read(&hosts.bench.path("disks")).unwrap();
    let table = tables.iter().find(|table| table.source == "host-server1");
    let instances = table.unwrap().instances("storage");
    assert!(instances.len() >= 2, "{instances:?}");
    // Data in folders that the plan names is kept.
    hosts.assert_clean();
    let kept = hosts.ssh("server1", &format!("ls {disk}"));
    assert_eq!(text(&kept).trim(), "pair-0");
}
