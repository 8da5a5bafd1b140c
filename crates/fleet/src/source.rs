//! A fleet as a load source: client hosts that load servers, and hosts on which servers are started.

pub(crate) mod checks;
mod cluster;
mod hosts;
mod on_servers;
mod open;
mod opening;
mod readings;
mod ready;
mod record;
mod run;
mod secrets;
mod server_use;
mod watched;

pub use ready::check_run_name;

use crate::FleetError;
use crate::controller::{Controller, forget};
use crate::kubernetes::servers_of_pod;
use crate::options::FleetOptions;
use crate::permits::Permits;
use crate::shares::{least_clients, plan_of_links, shares};
use checks::{check, check_fits, check_servers};
use dyno_engine::context::Context;
use dyno_engine::load_source::{LoadSource, Phases, Readings};
use dyno_engine::{Error, Kind};
use dyno_load::Sink;
use dyno_plan::Plan;
use dyno_plan::fleet::{Amounts, FleetPlan};
use dyno_plan::model::ServerKind;
use dyno_plan::task::Remote;
use dyno_record::model::{Caveat, FleetRecord, PhaseKind, ResourceKind, ResourceUse};
use on_servers::OnServers;
use open::{Open, Places};
use readings::HostSources;
use ready::Found;
use secrets::Needs;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

/// Longest wait for the end of agents, and of servers that write their last checkpoint.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
const STOP_WITHIN: Duration = Duration::from_secs(90);

/// The hosts of a plan. Nothing happens on them until servers are requested. Always call [`Fleet::close`] at the end, which removes
/// everything from them.
pub struct Fleet<'a> {
    options: &'a FleetOptions,
    state: RefCell<Option<Open>>,
    size: Cell<Option<Size>>,
    /// Hosts of the plan, once the inventory was read.
    found: RefCell<Option<(FleetPlan, Found)>>,
    /// Permits that the plans so far need.
    permits: RefCell<Permits>,
    /// Users and certificates that the plans so far need.
    needs: RefCell<Needs>,
    /// Host readings of the agents during a run, if the plan wants them.
    readings: RefCell<Option<HostSources>>,
}

/// Number of agents and hosts.
#[derive(Clone, Copy, Debug)]
struct Size {
    agents: u32,
    server_hosts: u32,
}

impl<'a> Fleet<'a> {
    /// Creates a fleet without starting anything.
    pub fn new(options: &'a FleetOptions) -> Self {
        Fleet {
            options,
            state: RefCell::new(None),
            size: Cell::new(None),
            found: RefCell::new(None),
            permits: RefCell::default(),
            needs: RefCell::default(),
            readings: RefCell::new(None),
        }
    }

    /// Ends agents and servers in order, and removes everything from the hosts. Failures are warnings.
    pub fn close(&self, context: Context<'_>) {
        if let Some(open) = self.state.borrow_mut().take() {
            self.end(open, None, context);
        }
    }

    /// Admits a plan: agents only do work of plans that were known at their start, and have only the secrets of those plans.
    ///
    /// # Errors
    /// The plan needs something that no fleet supports.
    fn admit<'b>(&self, plan: &'b Plan, remote: Option<&Remote>) -> Result<&'b FleetPlan, Error> {
        let fleet = check(plan, remote, self.options.kubernetes)?;
        self.permits.borrow_mut().add(&plan.server);
        self.needs.borrow_mut().add(plan, remote)?;
        remote.map_or(Ok(()), |remote| checks::check_running(plan, remote))?;
        Ok(fleet)
    }

    /// Number of agents and independent deployments of a plan, before anything is started.
    fn sizes(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<(u32, u32), Error> {
        let size = self.size(plan, remote, context)?;
        let deployments = match (remote, &plan.fleet) {
            (Some(_), _) => 1,
            (None, Some(fleet)) => self.deployments(plan, fleet, size)?,
            (None, None) => size.server_hosts,
        };
        Ok((size.agents, deployments))
    }

    /// Number of independent deployments that the hosts start.
    fn deployments(&self, plan: &Plan, fleet: &FleetPlan, size: Size) -> Result<u32, Error> {
        if !self.options.kubernetes {
            return checks::deployments(plan, fleet, size.server_hosts);
        }
        // Servers in pods are independent of each other.
        let of_pod = servers_of_pod(cluster::table(fleet)?, plan.server.pairs);
        Ok(size.server_hosts.saturating_mul(of_pod))
    }

    /// Number of agents and of server hosts.
    fn size(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<Size, Error> {
        if let Some(size) = self.size.get() {
            return Ok(size);
        }
        let fleet = check(plan, remote, self.options.kubernetes)?;
        let (agents, server_hosts) = if self.options.kubernetes {
            let pods = cluster::table(fleet)?;
            (pods.client_pods, pods.server_pods)
        } else {
            let found = self.found(fleet, context)?;
            (found.agents(fleet), found.servers.len() as u32)
        };
        let size = Size { agents, server_hosts };
        self.size.set(Some(size));
        Ok(size)
    }

    /// Ends everything; without a reason, in order. Failures are warnings. With a reason, returns the last line of each log by its
    /// file name.
    fn end(
        &self,
        mut open: Open,
        reason: Option<&str>,
        context: Context<'_>,
    ) -> Vec<(String, String)> {
        let mut left = Vec::new();
        let mut is_redis_gone = false;
        // End servers last: agents may still use them.
        let both = [(open.clients.take(), LEAVE_WITHIN), (open.servers.take(), STOP_WITHIN)];
        for (controller, within) in both {
            let Some(controller) = controller.filter(|_| !is_redis_gone) else {
                continue;
            };
            let ended = match reason {
                None => controller.finish(within),
                Some(reason) => controller.abort(reason, within),
            };
            match ended {
                Ok(silent) => left.extend(silent),
                Err(FleetError::RedisGone { .. }) => {
                    is_redis_gone = true;
                    let text =
                        "Redis has gone: agents end when their lease runs out, and keys expire";
                    context.warning(text);
                }
                Err(error) => context.warning(error.to_string()),
            }
        }
        for agent in &left {
            context.warning(format!("{agent} did not report its end"));
        }
        let logs = self.options.logs_folder();
        let base = &self.options.host_folder;
        let (hosts, names) = match &mut open.places {
            Places::Hosts(hosts, names) => (hosts, names),
            // Redis is deleted with the pods.
            Places::Cluster(cluster) => {
                cluster.end(logs.as_deref(), context);
                return Vec::new();
            }
        };
        let own = open.folder.path.join("logs");
        let logs = logs.or(reason.map(|_| own));
        if let Err(error) = hosts.stop(&open.run, base, names, logs.as_deref()) {
            context.warning(format!("{error:#}"));
            for line in &error.log_tail {
                context.warning(line);
            }
        }
        // Delete keys only now: an agent may have reported its error after its controller had gone.
        for run in open.keys.iter().filter(|_| !is_redis_gone) {
            if let Err(error) = forget(&open.endpoint, run) {
                context.warning(error.to_string());
            }
        }
        logs.filter(|_| reason.is_some()).map_or_else(Vec::new, |logs| last_lines(&logs))
    }

    /// Factor for amounts of the plan; 1 before the hosts are counted.
    fn multiple(&self, plan: &Plan) -> f64 {
        let (Some(fleet), Some(size)) = (&plan.fleet, self.size.get()) else {
            return 1.0;
        };
        let count = match (fleet.amounts, plan.server.kind) {
            (Amounts::PerAgent, _) => size.agents,
            (Amounts::PerServer, ServerKind::Uri) | (Amounts::InAll, _) => 1,
            (Amounts::PerServer, _) => self.deployments(plan, fleet, size).unwrap_or(1),
        };
        f64::from(count)
    }
}

impl LoadSource for Fleet<'_> {
    /// The first call starts agents on all hosts.
    fn servers(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        embedded: Option<&Path>,
        context: Context<'_>,
    ) -> Result<Vec<Remote>, Error> {
        let fleet = self.admit(plan, remote)?;
        let mut state = self.state.borrow_mut();
        if state.is_none() {
            *state = Some(if self.options.kubernetes {
                self.open_cluster(plan, fleet, remote, context)?
            } else {
                self.open(plan, fleet, (remote, embedded), context)?
            });
        }
        let open = state.as_mut().expect("just opened");
        check_fits(plan, Some(&open.plan), open.kind)?;
        let seen = match remote {
            Some(remote) => {
                open.watch(plan, context)?;
                // Agents have their own files.
                let target = remote.target.clone().with_files(None, None);
                vec![(remote.clone(), target.to_string())]
            }
            None => open.serve(plan, context)?,
        };
        open.start_clients(context)?;
        let (remotes, uris): (Vec<Remote>, Vec<String>) = seen.into_iter().unzip();
        // Refuse hosts without a task before anything is recorded.
        shares(plan, open.agents.len() as u32, remotes.len() as u32)
            .map_err(|error| Error::from_cause(Kind::BadInput, error))?;
        open.uris = uris;
        Ok(remotes)
    }

    fn perform(
        &self,
        phases: &Phases<'_>,
        context: Context<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        let open = state
            .as_mut()
            .ok_or_else(|| Error::new(Kind::Internal, "the fleet has not been opened"))?;
        run::perform(open, phases, &self.readings, context, sink)
    }

    fn plan_of_server(&self, plan: &Plan, number: usize) -> Option<Plan> {
        let state = self.state.borrow();
        let open = state.as_ref()?;
        let shares = shares(plan, open.agents.len() as u32, open.uris.len() as u32).ok()?;
        let links = shares.iter().flat_map(|share| &share.links);
        Some(plan_of_links(plan, links.filter(|link| link.server as usize == number)))
    }

    fn offered_rate_per_s(&self, plan: &Plan) -> Option<f64> {
        Some(plan.schedule.rate_per_s()? * self.multiple(plan))
    }

    fn operations(&self, plan: &Plan, planned: u64) -> u64 {
        planned.saturating_mul(self.multiple(plan) as u64)
    }

    fn begin_readings(&self, readings: Readings) {
        self.readings.replace(Some(HostSources::new(readings)));
    }

    fn server_use(
        &self,
        record: &FleetRecord,
        phase: PhaseKind,
        start_s: f64,
        end_s: f64,
    ) -> Vec<ResourceUse> {
        let readings = self.readings.borrow();
        let Some(sources) = readings.as_ref() else {
            return Vec::new();
        };
        let state = self.state.borrow();
        let on_servers = state.as_ref().map(|open| &open.on_servers);
        let Some(OnServers::Watch { is_whole, .. }) = on_servers else {
            let cpus = record.servers.iter().map(|server| server.cpus).sum();
            return sources.server_use(cpus, phase, start_s, end_s);
        };
        let mut found = sources.use_of_machines(record, phase, start_s, end_s);
        // Without one of the servers, a sum would be incomplete.
        found.retain(|one| *is_whole || one.resource != ResourceKind::ServerCpu);
        found
    }

    fn end_readings(&self) {
        if let Some(sources) = self.readings.take() {
            sources.end();
        }
    }

    fn caveats(&self, record: &FleetRecord) -> Vec<Caveat> {
        let mut caveats = record::caveats(record);
        if let Some(open) = self.state.borrow().as_ref() {
            caveats.extend(open.misplaced.iter().chain(&open.changed).cloned());
        }
        caveats
    }

    fn check_same(&self, plans: &[&Plan]) -> Result<(), Error> {
        let Some((first, others)) = plans.split_first() else {
            return Ok(());
        };
        others.iter().try_for_each(|plan| check_fits(plan, first.fleet.as_ref(), first.server.kind))
    }

    fn check_amounts(&self, plan: &Plan, verb: &str) -> Result<(), Error> {
        checks::check_amounts(plan, verb)
    }

    fn check_plans(
        &self,
        plans: &[(&Plan, Option<&Remote>)],
        embedded: Option<&Path>,
        context: Context<'_>,
    ) -> Result<(), Error> {
        for (plan, remote) in plans {
            self.admit(plan, *remote)?;
        }
        let Some(((plan, remote), others)) = plans.split_first() else {
            return Ok(());
        };
        if self.options.kubernetes {
            return plans.iter().try_for_each(|(plan, _)| self.check_cluster(plan).map(drop));
        }
        let ready = self.ready(plan, *remote, embedded, context)?;
        let hosts = ready.found.servers.len() as u32;
        others.iter().try_for_each(|(plan, remote)| check_servers(plan, *remote, hosts))
    }

    fn check_shares(
        &self,
        plans: &[(&Plan, Option<&Remote>)],
        context: Context<'_>,
    ) -> Result<(), Error> {
        for (plan, remote) in plans {
            let (agents, servers) = self.sizes(plan, *remote, context)?;
            shares(plan, agents, servers)
                .map_err(|error| Error::from_cause(Kind::BadInput, error))?;
        }
        Ok(())
    }

    fn least_clients(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<u32, Error> {
        let (agents, servers) = self.sizes(plan, remote, context)?;
        let least = least_clients(plan, agents, servers).unwrap_or(1);
        Ok(u32::try_from(least).unwrap_or(u32::MAX))
    }

    fn has_lost_hosts(&self) -> bool {
        let state = self.state.borrow();
        let open = state.as_ref();
        let going =
            |controller: &Option<Controller>| controller.as_ref().map_or(0, Controller::going);
        open.is_some_and(|open| {
            // An agent that only reads a server's machine does not count as its server.
            going(&open.clients) < open.agents.len()
                || open.starts_servers() && going(&open.servers) < open.server_hosts.len()
        })
    }

    fn resume_command(&self, folder: &str) -> String {
        format!("dyno fleet resume {folder} --inventory …")
    }
}

/// The last line of each log in a folder, by file name.
fn last_lines(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let line = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = std::fs::read(entry.path()).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some((name, text.lines().next_back()?.to_owned()))
    };
    entries.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RedisOptions;
    use dyno_engine::Cancel;
    use dyno_engine::environment::Environment;
    use dyno_engine::observer::Unobserved;

    /// Runs `ask` on a fleet of pods.
    fn ask_pods<T>(ask: impl FnOnce(&Fleet<'_>, Context<'_>) -> T) -> T {
        let options = FleetOptions {
            inventory: None,
            kubernetes: true,
            redis: RedisOptions::default(),
            run: None,
            logs: None,
            host_folder: String::new(),
            apply: Vec::new(),
        };
        let (environment, cancel) = (Environment::default(), Cancel::new());
        let context = Context {
            environment: &environment,
            cancel: &cancel,
            observer: &Unobserved,
            source: None,
        };
        ask(&Fleet::new(&options), context)
    }

    #[test]
    fn agents_accept_the_values_of_all_checked_plans() {
        let plan = |value: &str| {
            let plan = format!(
                "base = \"a\"\n[server]\nkind = \"mongod\"\n[server.parameters]\n\
                 storageEngineConcurrencyAdjustmentAlgorithm = \"{value}\"\n[fleet.kubernetes]\n"
            );
            dyno_plan::file::parse(&plan, "t").expect("valid")
        };
        let (one, other) = (plan("throughputProbing"), plan("fixedConcurrentTransactions"));
        let permitted = ask_pods(|fleet, context| {
            fleet
                .check_plans(&[(&one, None), (&other, None)], None, context)
                .expect("pods can have both");
            fleet.permits.borrow().parameters.clone()
        });
        let accepted = |value: &str| {
            let text = format!("storageEngineConcurrencyAdjustmentAlgorithm={value}");
            permitted.contains(&text)
        };
        for value in ["throughputProbing", "fixedConcurrentTransactions"] {
            assert!(accepted(value), "{value}");
        }
    }

    #[test]
    fn per_server_amounts_count_planned_servers_of_all_pods() {
        let counted = |pairs: u32, disks: u32| {
            let plan = format!(
                "base = \"a\"\n[server]\nkind = \"mongod\"\npairs = {pairs}\n[client]\nclients = 8\n\
                 [schedule]\nkind = \"constant\"\nrate_per_s = 100\n\
                 [fleet]\nmapping = \"pairs\"\namounts = \"per-server\"\n\
                 [fleet.kubernetes]\nserver_pods = 2\ndisks = {disks}\n"
            );
            let plan = dyno_plan::file::parse(&plan, "t").expect("valid");
            ask_pods(|fleet, context| {
                fleet.check_shares(&[(&plan, None)], context).expect("all have a task");
                (fleet.offered_rate_per_s(&plan), fleet.operations(&plan, 10))
            })
        };
        assert_eq!(counted(1, 1), (Some(200.0), 20));
        assert_eq!(counted(3, 1), (Some(600.0), 60));
        assert_eq!(counted(1, 4), (Some(800.0), 80), "one for each disk");
    }
}
