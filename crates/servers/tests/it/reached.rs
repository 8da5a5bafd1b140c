//! Servers that other hosts reach, with users and certificates: the embedded server and a real
//! `mongod`, each test in its own network namespace.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::one_server::Kind;
use crate::secured::{Driver, assert_only_logs, client_options, options};
use bson::{Document, doc};
use dyno_plan::model::Encryption;
use dyno_servers::{
    AdminClient, Authority, Certificates, Deployment, DeploymentOptions, GivenSecrets, MemberKey,
    ServerError, Target, Topology, random_credentials,
};
use dyno_testkit::network::{add_address, own_network};
use dyno_testkit::or_skip;
use mongodb::Client;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);
/// Addresses of the own network.
const HOSTS: [&str; 3] = ["10.77.0.1", "10.77.0.2", "10.77.0.3"];

of_both!(
    users_and_certificates_protect_access_from_other_hosts,
    the_certificate_has_all_addresses_and_clients_use_one,
    unusable_listen_addresses_are_refused_before_the_start,
);

/// Options of secured servers that listen there; `None`, with a note, if they are not available.
fn secured(folder: &TempDir, kind: Kind, listen: &str) -> Option<DeploymentOptions> {
    or_skip(own_network(&HOSTS))?;
    let mut options = options(folder.path(), kind)?;
    options.server.plan.auth = true;
    options.server.listen = listen.parse().unwrap();
    options.server.plan.encryption = Encryption::Server;
    Some(options)
}

/// A command by the official driver, which verifies the name.
fn ask(driver: &Driver, uri: &str, command: Document) -> Result<Document, String> {
    let answer = driver.runtime.block_on(async {
        let mut options = mongodb::options::ClientOptions::parse(uri).await?;
        options.server_selection_timeout = Some(Duration::from_secs(3));
        let client = Client::with_options(options)?;
        client.database("admin").run_command(command).await
    });
    answer.map_err(|error| error.to_string())
}

fn users_and_certificates_protect_access_from_other_hosts(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(options) = secured(&folder, kind, HOSTS[0]) else {
        return;
    };
    let mut driver = Driver::new();
    let topology = "pairs=2".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();
    for (member, uri) in deployment.members().iter().zip(deployment.uris()) {
        let host = member.server().host().to_string();
        assert!(host.starts_with(HOSTS[0]), "{host}");
        assert!(uri.contains(&format!("//{host}/")), "{uri}");
        // The user is known there, and strangers are refused.
        let uri = deployment.with_credentials(&uri);
        ask(&driver, &uri, doc! { "serverStatus": 1 }).unwrap();
        let target = deployment.target(member);
        driver.run(target, "admin", doc! { "serverStatus": 1 }, LIMIT).unwrap();
        let address = host.parse().unwrap();
        let stranger = Target { address, credentials: None, ..target };
        let refused = driver.run(stranger, "admin", doc! { "listDatabases": 1 }, LIMIT);
        assert_eq!(refused.unwrap_err().code(), Some(13));
        let plain = Target { tls: None, ..stranger };
        let short = Duration::from_millis(500);
        assert!(driver.run(plain, "admin", doc! { "ping": 1 }, short).is_err());
        // Only a `mongod` listens on loopback as well.
        let loopback = TcpStream::connect(("127.0.0.1", address.port()));
        assert_eq!(loopback.is_ok(), kind == Kind::Mongod, "{loopback:?}");
        assert_eq!(member.server().address().ip().is_loopback(), kind == Kind::Mongod);
    }
    deployment.stop().unwrap();
    assert_only_logs(folder.path());
}

fn the_certificate_has_all_addresses_and_clients_use_one(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = secured(&folder, kind, "0.0.0.0") else {
        return;
    };
    options.server.advertise = Some("LocalHost".to_owned());
    let mut driver = Driver::new();
    let topology = "standalone".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();
    let uri = deployment.with_credentials(&deployment.uri());
    assert!(uri.contains("@localhost:"), "{uri}");
    ask(&driver, &uri, doc! { "ping": 1 }).unwrap();
    for host in HOSTS {
        let uri = uri.replace("@localhost:", &format!("@{host}:"));
        ask(&driver, &uri, doc! { "ping": 1 }).unwrap();
    }
    // It is reachable there as well, but its certificate is not for this name.
    add_address("10.77.0.9");
    let other = uri.replace("@localhost:", "@10.77.0.9:");
    let refused = ask(&driver, &other, doc! { "ping": 1 }).unwrap_err();
    assert!(refused.to_lowercase().contains("certificate"), "{refused}");
    deployment.stop().unwrap();
    assert_only_logs(folder.path());
}

fn unusable_listen_addresses_are_refused_before_the_start(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = secured(&folder, kind, "10.77.0.77") else {
        return;
    };
    let topology: Topology = "standalone".parse().unwrap();
    let start = |options: &DeploymentOptions| {
        Deployment::start(&topology, options, &mut Driver::new(), &|| false).unwrap_err()
    };
    let error = start(&options);
    assert!(matches!(error, ServerError::Listen { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("`server.listen`"));
    options.server.listen = HOSTS[0].parse().unwrap();
    options.server.advertise = Some("no-such-host.invalid".to_owned());
    let error = start(&options);
    assert!(error.to_string().contains("`server.advertise`"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn reachable_replica_set_verifies_its_addresses() {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = secured(&folder, Kind::Mongod, HOSTS[1]) else {
        return;
    };
    options.server.plan.encryption = Encryption::Mutual;
    let mut driver = Driver::new();
    let topology = "replica-set=2+1".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();
    let uri = deployment.with_credentials(&deployment.uri());
    assert_eq!(uri.matches(HOSTS[1]).count(), 2, "the data members");
    let hello = ask(&driver, &uri, doc! { "hello": 1 }).unwrap();
    let hosts = hello.get_array("hosts").unwrap();
    assert!(hosts.iter().all(|host| host.as_str().unwrap().starts_with(HOSTS[1])));
    let settings = deployment.read_back(&mut driver, LIMIT).unwrap();
    assert!(settings.iter().all(|member| member.deviations.is_empty()));
    deployment.stop().unwrap();
    assert_only_logs(folder.path());
}

/// The secrets that a fleet gives to each host: the common secrets, and a certificate for the
/// host's name.
fn given() -> Vec<GivenSecrets> {
    let authority = Authority::new().unwrap();
    let credentials = random_credentials().unwrap();
    let key = MemberKey::random().unwrap();
    let client = authority.sign_client().unwrap();
    let of_host = |host: &str| GivenSecrets {
        credentials: Some(credentials.clone()),
        certificates: Some(Certificates {
            ca: authority.certificate(),
            server: authority.sign_server(&[host.to_owned()]).unwrap(),
            client: client.clone(),
        }),
        key: Some(key.clone()),
    };
    HOSTS.map(of_host).into()
}

#[test]
fn members_on_several_hosts_form_one_set_with_one_user() {
    let folder = TempDir::new().unwrap();
    let Some(options) = secured(&folder, Kind::Mongod, HOSTS[0]) else {
        return;
    };
    // The second host has the primary, and the last one an arbiter.
    let topology: Topology = "replica-set=2+1,priorities=1/3".parse().unwrap();
    let start = |(number, secrets): (usize, GivenSecrets)| {
        let mut options = options.clone();
        options.server.listen = HOSTS[number].parse().unwrap();
        let own = folder.path().join(format!("host-{number}"));
        options.data_dirs = vec![own.join("data")];
        options.log_dir = own.join("logs");
        options.secrets_dir = own.join("secrets");
        options.secrets = Some(secrets);
        Deployment::start_member(&topology, &options, number, &|| false).unwrap()
    };
    let mut all: Vec<Deployment> = given().into_iter().enumerate().map(start).collect();
    let hosts: Vec<String> = all.iter().flat_map(Deployment::hosts).collect();
    thread::scope(|scope| {
        for member in &mut all {
            let hosts = &hosts;
            scope.spawn(move || member.join(hosts, LIMIT, &mut Driver::new(), &|| false).unwrap());
        }
    });
    let driver = Driver::new();
    let uri = all[2].with_credentials(&all[2].uri());
    assert!(uri.contains(&format!("@{},{}/", hosts[0], hosts[1])), "{uri}");
    let hello = ask(&driver, &uri, doc! { "hello": 1 }).unwrap();
    assert_eq!(hello.get_str("primary").unwrap(), hosts[1]);
    assert_eq!(hello.get_array("arbiters").unwrap().len(), 1);
    assert!(all[1].members()[0].was_primary());
    for member in &all {
        let found = member.read_back(&mut Driver::new(), LIMIT).unwrap();
        assert_eq!(found[0].deviations, [], "{found:?}");
    }
    let without = client_options(
        Target { credentials: None, ..all[0].target(&all[0].members()[0]) },
        LIMIT,
        false,
    );
    let refused = driver.runtime.block_on(async {
        let client = Client::with_options(without).unwrap();
        let admin = client.database("admin");
        admin.run_command(doc! { "usersInfo": 1 }).await
    });
    assert!(refused.is_err());
    for member in all {
        member.stop().unwrap();
    }
    for number in 0..HOSTS.len() {
        assert_only_logs(&folder.path().join(format!("host-{number}")));
    }
}

#[test]
fn set_with_a_missing_member_is_refused_and_stopped() {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = secured(&folder, Kind::Mongod, HOSTS[0]) else {
        return;
    };
    options.secrets = given().into_iter().next();
    let topology: Topology = "replica-set=3".parse().unwrap();
    let mut member = Deployment::start_member(&topology, &options, 0, &|| false).unwrap();
    let mut hosts = member.hosts();
    hosts.extend(HOSTS[1..].iter().map(|host| format!("{host}:27017")));
    let error = member.join(&hosts, LIMIT, &mut Driver::new(), &|| false).unwrap_err();
    assert!(matches!(error, ServerError::Step { .. }), "{error:?}");
    let said = std::error::Error::source(&error).unwrap().to_string();
    assert!(said.contains(&hosts[1]), "{said}");
    drop(member);
    assert_only_logs(folder.path());
    let pairs: Topology = "pairs=2".parse().unwrap();
    let refused = Deployment::start_member(&pairs, &options, 0, &|| false).unwrap_err();
    assert!(
        matches!(&refused, ServerError::Setting { setting: "server.topology", value, .. } if value == "pairs=2"),
        "{refused:?}"
    );
}
