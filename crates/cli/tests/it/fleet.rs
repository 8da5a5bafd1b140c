//! `dyno fleet render`, and preflight errors of `dyno fleet` and `dyno agent`.
use crate::common::Bench;

const PLAN: &str = "base = \"a\"\n[server]\nkind = \"mongod\"\n[fleet]\nclients = [\"c\"]\nservers = [\"s\"]\n[fleet.kubernetes]\n";

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.path("many.toml"), PLAN).unwrap();
    bench
}

#[test]
fn manifests_are_written_once_and_named() {
    let bench = bench();
    let render = ["fleet", "render", "kubernetes", "many.toml", "--out", "out"];
    let written = bench.dyno(&render).expect(0).stdout;
    assert_eq!(written.lines().count(), 5, "{written}");
    for path in written.lines() {
        assert!(bench.path(path).is_file(), "{path}");
    }
    let again = bench.dyno(&render).expect(2);
    assert!(again.stderr.contains("`out`"), "{}", again.stderr);
    std::fs::write(bench.path("few.toml"), "base = \"a\"\n").unwrap();
    let other = ["fleet", "render", "kubernetes", "few.toml", "--out", "other"];
    bench.dyno(&other).expect(2).says("`[fleet.kubernetes]`");
    assert!(!bench.path("other").exists());
}

#[test]
fn redis_password_is_not_accepted_as_an_argument() {
    let bench = bench();
    let url = "redis://:a-secret@127.0.0.1:1";
    let agent = ["agent", "--run", "r", "--index", "0", "--redis", url];
    let refused = bench.dyno(&agent).expect(2);
    assert!(refused.stderr.contains("`DYNO_REDIS`"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("a-secret"), "{}", refused.stderr);
    let none = ["agent", "--run", "r", "--index", "0"];
    bench.dyno(&none).expect(2).says("`DYNO_REDIS_FILE`");
}

#[test]
fn plan_without_hosts_or_for_one_machine_is_refused() {
    let bench = bench();
    let run = |plan: &str, more: &[&str]| {
        let fixed = ["fleet", "run", plan, "--inventory", "none.yml"];
        let redis = ["--redis", "redis://127.0.0.1:1"];
        bench.dyno(&[&fixed[..], &redis, more].concat()).expect(2)
    };
    run("a", &[]).says("`[fleet]`");
    let listen = ["--set", "server.listen=\"10.0.0.1\""];
    run("many.toml", &listen).says("`server.listen`");
    assert!(!bench.path("runs").exists());
}

#[test]
fn experiment_is_refused_when_its_plans_need_other_hosts() {
    let bench = bench();
    let fleet = ["--inventory", "none.yml", "--redis", "redis://127.0.0.1:1"];
    let sweep = |set: &str| {
        let fixed = ["fleet", "sweep", "many.toml", "--set", set];
        bench.dyno(&[&fixed[..], &fleet].concat()).expect(2)
    };
    let refused = sweep("fleet.agents_per_host=1,2").says("`[fleet]`");
    assert_eq!(refused.stderr.matches("error: ").count(), 1);
    sweep("server.kind=mongod,embedded").says("another `server.kind`");
    let other = PLAN.replace("[\"c\"]", "[\"d\"]");
    std::fs::write(bench.path("other.toml"), other).unwrap();
    let ab = ["fleet", "ab", "many.toml", "other.toml"];
    let refused = bench.dyno(&[&ab[..], &fleet].concat()).expect(2);
    refused.says("`[fleet]`");
    assert_eq!(bench.entries(), ["many.toml", "other.toml"]);
}

#[test]
fn experiment_resumes_only_with_the_command_that_began_it() {
    let bench = bench();
    let responder = crate::common::Responder::with_documents(&[]);
    let uri = responder.uri();
    let sweep = [
        "sweep",
        "read",
        "--records",
        "1000",
        "-p",
        "insertorder=ordered",
        "--warmup",
        "0s",
        "--duration",
        "1s",
        "--clients",
        "1,2",
        "--out",
        "sweep",
        "--uri",
        &uri,
    ];
    bench.dyno(&sweep).expect(0);
    let path = bench.path("sweep/experiment.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fleet =
        ["fleet", "resume", "sweep", "--inventory", "none.yml", "--redis", "redis://127.0.0.1:1"];
    document["status"] = "partial".into();
    document["points"][1]["figures"].take();
    std::fs::write(&path, document.to_string()).unwrap();
    std::fs::remove_file(bench.path("sweep/SHA256SUMS")).unwrap();
    let refused = bench.dyno(&fleet).expect(2);
    refused.says("`dyno resume sweep`");
    document["options"]["fleet"] = true.into();
    std::fs::write(&path, document.to_string()).unwrap();
    let refused = bench.dyno(&["resume", "sweep"]).expect(2);
    refused.says("`dyno fleet resume sweep --inventory …`");
}

#[test]
fn agent_removes_only_a_folder_made_for_a_run() {
    let bench = Bench::new();
    let agent = [
        "agent",
        "--run",
        "r",
        "--index",
        "0",
        "--redis",
        "redis://127.0.0.1:1",
        "--join-within",
        "100ms",
        "--folder",
        "own",
        "--remove-folder",
    ];
    std::fs::create_dir_all(bench.path("own/precious")).unwrap();
    bench.dyno(&agent).expect(2).says("`own`").says("`.dyno-made`");
    assert!(bench.path("own/precious").exists());
    // An agent without a controller removes a folder that a playbook made.
    std::fs::write(bench.path("own/.dyno-made"), "").unwrap();
    bench.dyno(&agent).expect(3);
    assert!(!bench.path("own").exists());
}

#[test]
fn remote_redis_needs_a_password_and_encryption() {
    let bench = Bench::new();
    let redis = ["--redis", "redis://192.0.2.1"];
    let agent = ["agent", "--run", "r", "--index", "0"];
    bench
        .dyno(&[&agent[..], &redis].concat())
        .expect(2)
        .says("`192.0.2.1:6379`")
        .says("`--insecure-redis`");
}

/// The command that creates the run directory on a host, with this folder filled in for its variable.
fn make_folder(folder: &std::path::Path) -> std::process::Output {
    let book = include_str!("../../../../deploy/ansible/fleet-start.yml");
    let (_, script) = book.split_once("          - >-\n").unwrap();
    let (script, _) = script.split_once("          - \"{{ dyno_own }}\"").unwrap();
    let script: Vec<&str> = script.split_whitespace().collect();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-c").arg(script.join(" ")).arg(folder);
    shell.output().unwrap()
}

#[test]
fn playbook_refuses_a_folder_that_already_exists() {
    let bench = Bench::new();
    let folder = bench.path("dyno-r");
    assert!(make_folder(&folder).status.success());
    assert!(folder.join(".dyno-made").is_file());
    // The run is prepared again.
    assert!(make_folder(&folder).status.success());
    std::os::unix::fs::symlink(&folder, bench.path("link")).unwrap();
    std::fs::create_dir(bench.path("foreign")).unwrap();
    let mut refused = vec![bench.path("link"), bench.path("foreign")];
    if nix::unistd::Uid::effective().is_root() {
        let given = bench.path("given");
        assert!(make_folder(&given).status.success());
        std::os::unix::fs::chown(&given, Some(65534), None).unwrap();
        refused.push(given);
    }
    for folder in refused {
        let made = make_folder(&folder);
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(!made.status.success() && said.contains("not made"), "{said}");
    }
}
