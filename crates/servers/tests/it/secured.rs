//! Encryption and authentication by the official driver, on the embedded server and on a real `mongod`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::one_server::Kind;
use bson::{Document, doc};
use dyno_plan::model::Encryption;
use dyno_servers::{
    AdminClient, CommandFailure, DataDir, Deployment, DeploymentOptions, ServerError,
    ServerOptions, Target, deviations, read_back,
};
use dyno_testkit::or_skip;
use mongodb::Client;
use mongodb::error::ErrorKind;
use mongodb::options::{AuthMechanism, ClientOptions, Credential, ServerAddress, Tls, TlsOptions};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const LIMIT: Duration = Duration::from_secs(20);

/// Sends commands by the official driver, a new client for each.
pub(crate) struct Driver {
    pub(crate) runtime: Runtime,
}

impl Driver {
    pub(crate) fn new() -> Driver {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        Driver { runtime: builder.enable_all().build().unwrap() }
    }
}

pub(crate) fn client_options(
    target: Target<'_>,
    limit: Duration,
    certificate: bool,
) -> ClientOptions {
    let mut options = ClientOptions::default();
    options.hosts = vec![ServerAddress::Tcp {
        host: target.address.ip().to_string(),
        port: Some(target.address.port()),
    }];
    options.direct_connection = Some(true);
    options.server_selection_timeout = Some(limit);
    options.tls = target.tls.map(|files| {
        let mut tls = TlsOptions::default();
        tls.ca_file_path = Some(files.ca.clone());
        tls.cert_key_file_path = certificate.then(|| files.client.clone());
        Tls::Enabled(tls)
    });
    options.credential = target.credentials.map(|credentials| {
        let mut credential = Credential::default();
        credential.username = Some(credentials.username.clone());
        credential.password = Some(credentials.password().to_owned());
        credential.source = credentials.source.clone();
        credential.mechanism = Some(AuthMechanism::ScramSha256);
        credential
    });
    options
}

impl AdminClient for Driver {
    fn run(
        &mut self,
        target: Target<'_>,
        database: &str,
        command: Document,
        limit: Duration,
    ) -> Result<Document, CommandFailure> {
        let options = client_options(target, limit, true);
        let reply = self.runtime.block_on(async {
            let client = Client::with_options(options)?;
            client.database(database).run_command(command).await
        });
        reply.map_err(|error| match *error.kind {
            ErrorKind::Command(failure) => {
                CommandFailure::Refused { code: failure.code, message: failure.message }
            }
            _ => CommandFailure::Unreachable(Box::new(error)),
        })
    }
}

of_both!(
    secured_pairs_are_usable_and_closed_to_others,
    clients_without_a_required_certificate_are_refused,
    an_old_database_does_not_get_a_new_user,
);

/// Options of servers with the smallest cache; `None`, with a note, if they are not installed.
pub(crate) fn options(folder: &Path, kind: Kind) -> Option<DeploymentOptions> {
    let server = ServerOptions::from_plan(
        &kind.plan(),
        or_skip(kind.program())?,
        DataDir::Temporary(folder.join("data")),
        folder.join("logs/server.raw.log"),
    );
    Some(DeploymentOptions::new(server.unwrap()))
}

pub(crate) fn assert_only_logs(folder: &Path) {
    let names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["logs"]);
}

fn secured_pairs_are_usable_and_closed_to_others(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = options(folder.path(), kind) else {
        return;
    };
    options.server.plan.auth = true;
    options.server.plan.encryption = Encryption::Server;
    let mut driver = Driver::new();
    let topology = "pairs=2".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();

    for member in deployment.members() {
        let target = deployment.target(member);
        let status = driver.run(target, "admin", doc! { "serverStatus": 1 }, LIMIT);
        assert!(status.unwrap().contains_key("version"));
        let stranger = Target { credentials: None, ..target };
        let refused = driver.run(stranger, "admin", doc! { "serverStatus": 1 }, LIMIT);
        assert_eq!(refused.unwrap_err().code(), Some(13));
        let plain = Target { tls: None, ..target };
        let short = Duration::from_millis(500);
        let refused = driver.run(plain, "admin", doc! { "ping": 1 }, short);
        assert!(matches!(refused, Err(CommandFailure::Unreachable(_))), "{refused:?}");

        let found = read_back(&mut driver, target, &["ttlMonitorEnabled"], LIMIT).unwrap();
        assert_eq!(found["storage_engine"], "wiredTiger");
        let cache = kind.plan().cache_bytes().unwrap();
        assert_eq!(found["cache_bytes"], cache.0.to_string());
        assert_eq!(found["parameter.ttlMonitorEnabled"], "true");
        assert_eq!(deviations(member.server().settings(), &found), []);
    }
    for uri in deployment.uris() {
        let uri = deployment.with_credentials(&uri);
        let pinged = driver.runtime.block_on(async {
            let client = Client::with_uri_str(&uri).await?;
            client.database("shop").run_command(doc! { "count": "orders" }).await
        });
        assert_eq!(pinged.unwrap().get_i32("n").unwrap(), 0);
    }
    deployment.stop().unwrap();
    assert_only_logs(folder.path());
}

fn clients_without_a_required_certificate_are_refused(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = options(folder.path(), kind) else {
        return;
    };
    options.server.plan.encryption = Encryption::Mutual;
    let mut driver = Driver::new();
    let topology = "standalone".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();
    let target = deployment.target(&deployment.members()[0]);
    driver.run(target, "admin", doc! { "ping": 1 }, LIMIT).unwrap();
    let without = client_options(target, Duration::from_millis(500), false);
    let pinged = driver.runtime.block_on(async {
        let client = Client::with_options(without)?;
        client.database("admin").run_command(doc! { "ping": 1 }).await
    });
    assert!(pinged.is_err());
    deployment.stop().unwrap();
    assert_only_logs(folder.path());
}

fn an_old_database_does_not_get_a_new_user(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let Some(mut options) = options(folder.path(), kind) else {
        return;
    };
    options.server.data_dir = DataDir::Kept(folder.path().join("data"));
    let mut driver = Driver::new();
    let topology = "standalone".parse().unwrap();
    let deployment = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap();
    deployment.stop().unwrap();
    options.server.plan.auth = true;
    let error = Deployment::start(&topology, &options, &mut driver, &|| false).unwrap_err();
    assert!(matches!(&error, ServerError::Setting { setting: "server.data_dir", .. }), "{error:?}");
}
