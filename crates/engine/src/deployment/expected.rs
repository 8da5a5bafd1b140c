//! Facts about a plan's servers before their start: for machine checks on this machine, or on
//! another, unknown machine.

use super::placement::{self, HostPlacement};
use super::server::ServerPaths;
use super::{cannot_start, choice, namespace, topology_of};
use crate::error::Error;
use dyno_observe::doctor::{Product, ServerFacts};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_servers::{
    Deployment, DeploymentOptions, InstanceKind, ServerOptions, ServerProgram, planned_caches,
    program_version,
};
use std::path::PathBuf;

/// Placeholder for a program on another machine.
const UNSEEN_PROGRAM: &str = "mongod";

/// Facts about the servers that a plan starts. Asks their program for its version.
///
/// # Errors
/// The program is missing or too old, or the memory is too small for the caches.
pub fn servers(
    plan: &Plan,
    paths: &ServerPaths<'_>,
    placement: Option<&HostPlacement>,
) -> Result<ServerFacts, Error> {
    let topology = topology_of(plan)?;
    let path = choice::program(plan, paths.embedded, paths.environment)?;
    let (program, product) = match plan.server.kind {
        ServerKind::Mongod => (ServerProgram::Mongod, Product::MongoDb),
        _ => (ServerProgram::Embedded, Product::Embedded),
    };
    let memory = placement.and_then(HostPlacement::memory);
    let asked = plan.server.cache_bytes();
    let caches = planned_caches(&topology, program, asked, memory.as_deref())?;
    let data = caches.iter().filter(|(one, _)| one.kind == InstanceKind::Data);
    let data: Vec<Option<u64>> = data.map(|(_, cache)| cache.map(|size| size.0)).collect();
    Ok(ServerFacts {
        product,
        version: Some(program_version(program, &path)?.version),
        cache_bytes: data.iter().copied().flatten().max(),
        instances: (data.len() as u64).max(1),
        authentication: Some(plan.server.auth),
        ..ServerFacts::default()
    })
}

/// Like [`check`](super::check), for servers that another machine starts with its own programs.
/// With `over_machines` each member of the deployment has its own machine.
pub fn check_elsewhere(
    plan: &Plan,
    paths: &ServerPaths<'_>,
    over_machines: bool,
) -> Result<(), Error> {
    let topology = topology_of(plan)?;
    placement::check_elsewhere(plan, over_machines)?;
    let options = unseen(plan, paths)?;
    Deployment::check_elsewhere(&topology, &options, over_machines)
        .map_err(|error| cannot_start(error, &topology, &options))
}

/// Data folders of the data servers that a plan starts on this machine, in their order. `member` is
/// the only local member of a set over several machines.
///
/// # Errors
/// There are fewer folders than servers.
pub fn folders(
    plan: &Plan,
    paths: &ServerPaths<'_>,
    member: Option<usize>,
) -> Result<Vec<PathBuf>, Error> {
    let (topology, options) = (topology_of(plan)?, unseen(plan, paths)?);
    Ok(Deployment::planned_folders(&topology, &options, member)?)
}

/// Start options of the servers, without those that need their machine.
fn unseen(plan: &Plan, paths: &ServerPaths<'_>) -> Result<DeploymentOptions, Error> {
    let program = PathBuf::from(UNSEEN_PROGRAM);
    let log = paths.folder.join("server-logs").join("server.raw.log");
    let folder = paths.data_dir(plan);
    let server = ServerOptions::from_plan(&plan.server, program.clone(), folder, log)?;
    let mut options = DeploymentOptions::new(server);
    options.router = Some(program);
    options.collection = Some(namespace(plan));
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use dyno_observe::doctor::{Subject, examine, observe};
    use dyno_record::verdict::CheckName;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Facts for the checks about two servers of this version.
    fn two_of(version: &str) -> ServerFacts {
        let folder = tempfile::tempdir().expect("there is room");
        let program = folder.path().join("mongod");
        let script = format!("#!/bin/sh\necho 'db version v{version}'\n");
        std::fs::write(&program, script).expect("there is room");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it is ours");
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.server.kind = ServerKind::Mongod;
        plan.server.mongod = Some(program.display().to_string());
        plan.server.pairs = 2;
        let paths = ServerPaths {
            environment: &Environment::default(),
            embedded: None,
            folder: Path::new(""),
        };
        servers(&plan, &paths, None).expect("it says its version")
    }

    #[test]
    fn server_version_comes_from_the_program() {
        let advised = |version: &str| {
            let facts = two_of(version);
            assert_eq!((facts.version.as_deref(), facts.instances), (Some(version), 2));
            assert!(facts.cache_bytes.is_some(), "two share the memory");
            assert_eq!(facts.authentication, Some(false));
            let subject = Subject { server: Some(facts), ..Subject::default() };
            let verdicts = examine(&observe(Path::new("/"), &subject));
            let mut own = verdicts.into_iter();
            let own = own.find(|one| one.check == CheckName::HugePages);
            own.expect("there is one").advised
        };
        assert_eq!(advised("8.0.4"), "`always`");
        assert_eq!(advised("7.0.14"), "`never`");
    }
}
