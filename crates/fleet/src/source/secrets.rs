//! The controller's secrets of a fleet: generated here, passed to agents with the Redis address, and kept only in memory, so that
//! nothing remains if this program is killed.

use crate::secrets::{Bundle, OwnSecrets, RunningSecrets, Secrets, ServerSecrets, is_secured};
use dyno_engine::{Error, Kind, OrFault, refuse};
use dyno_plan::Plan;
use dyno_plan::model::{Encryption, ServerPlan};
use dyno_plan::task::Remote;
use dyno_servers::{Authority, MemberKey, random_credentials};

/// Secrets that the plans so far need.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    own: bool,
    running: Vec<RunningSecrets>,
}

impl Needs {
    /// Adds the needs of a plan.
    ///
    /// # Errors
    /// A file of its connection string cannot be read.
    pub(super) fn add(&mut self, plan: &Plan, remote: Option<&Remote>) -> Result<(), Error> {
        self.own |= is_secured(&plan.server);
        let running = remote.map(RunningSecrets::of).transpose()?.flatten();
        let new = running.filter(|one| !self.running.contains(one));
        self.running.extend(new);
        Ok(())
    }
}

/// Secrets of a fleet's own and running servers.
#[derive(Debug, Default)]
pub(super) struct FleetSecrets {
    running: Vec<RunningSecrets>,
    own: Option<Own>,
}

/// Secrets of the servers that the fleet starts.
#[derive(Debug)]
struct Own {
    authority: Authority,
    key: MemberKey,
    /// The clients' secrets.
    bundle: Bundle,
    /// The secrets for this program.
    secrets: Secrets,
}

impl FleetSecrets {
    /// Generates the needed secrets.
    ///
    /// # Errors
    /// Random numbers or memory are unavailable.
    pub(super) fn new(needs: &Needs) -> Result<Self, Error> {
        Ok(FleetSecrets {
            running: needs.running.clone(),
            own: needs.own.then(Own::new).transpose()?,
        })
    }

    /// Secrets file of a loading agent; `None` if it needs none.
    pub(super) fn of_client(&self) -> Option<String> {
        let own = self.own.as_ref().and_then(|own| own.bundle.own.clone());
        let bundle = Bundle { own, running: self.running.clone() };
        (!bundle.is_empty()).then(|| bundle.to_text())
    }

    /// Secrets file of an agent that starts servers on a host with these names and addresses; `None` if it needs none.
    ///
    /// # Errors
    /// A name is not valid in a certificate.
    pub(super) fn of_server(&self, names: &[String]) -> Result<Option<String>, Error> {
        let Some(own) = &self.own else {
            return Ok(None);
        };
        let signed = own.authority.sign_server(names)?;
        let mut bundle = own.bundle.clone();
        if let Some(own_secrets) = &mut bundle.own {
            own_secrets.server = Some(ServerSecrets {
                certificate: (signed.certificate, signed.key),
                member_key: own.key.reveal().to_owned(),
            });
        }
        Ok(Some(bundle.to_text()))
    }

    /// The authority's certificate, and a server's certificate with its key in one text, for these names; `None` if the plan asks
    /// for no certificates.
    ///
    /// # Errors
    /// A name is not valid in a certificate, or no secrets were generated for the plan.
    pub(super) fn of_pods(
        &self,
        server: &ServerPlan,
        names: &[String],
    ) -> Result<Option<(String, String)>, Error> {
        match self.own(server)? {
            Some(own) if server.encryption != Encryption::Off => {
                let signed = own.authority.sign_server(names)?;
                Ok(Some((own.authority.certificate(), signed.both())))
            }
            _ => Ok(None),
        }
    }

    /// Adds the secrets to the connection string of a server that the fleet started.
    ///
    /// # Errors
    /// The connection string is not valid, or no secrets were generated for the plan.
    pub(super) fn remote(&self, uri: &str, server: &ServerPlan) -> Result<Remote, Error> {
        let remote = Remote::parse(uri)?;
        match self.own(server)? {
            Some(own) => own.secrets.apply(remote, server),
            None => Ok(remote),
        }
    }

    fn own(&self, server: &ServerPlan) -> Result<Option<&Own>, Error> {
        match &self.own {
            None if is_secured(server) => refuse(
                "a later plan needs users or certificates, but the hosts were prepared for a plan without them",
                "enable them in the first plan as well, or start a separate run for each",
            ),
            own => Ok(own.as_ref()),
        }
    }
}

impl Own {
    fn new() -> Result<Self, Error> {
        let random = || "cannot get random numbers from the system";
        let credentials = random_credentials().or_fault(Kind::Environment, random)?;
        let key = MemberKey::random().or_fault(Kind::Environment, random)?;
        let authority = Authority::new()?;
        let client = authority.sign_client()?;
        let bundle = Bundle {
            own: Some(OwnSecrets {
                user: credentials.username.clone(),
                password: credentials.password().to_owned(),
                ca: authority.certificate(),
                client: (client.certificate, client.key),
                server: None,
            }),
            running: Vec::new(),
        };
        Ok(Own { authority, key, secrets: Secrets::new(bundle.clone())?, bundle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::ServerKind;

    #[test]
    fn clients_get_no_server_secrets_and_each_host_a_certificate() {
        let mut plan = dyno_plan::builtin::find("a").expect("built in");
        plan.server.kind = ServerKind::Mongod;
        let mut needs = Needs::default();
        needs.add(&plan, None).expect("nothing");
        let none = FleetSecrets::new(&needs).expect("nothing");
        assert_eq!(none.of_client(), None);
        assert_eq!(none.of_server(&[]).expect("nothing"), None);
        plan.server.encryption = Encryption::Server;
        let error = none.remote("mongodb://h/", &plan.server).expect_err("not prepared");
        assert_eq!(error.kind, Kind::BadInput);
        assert!(error.to_string().contains("later plan"), "{error}");
        needs.add(&plan, None).expect("certificates");
        let secrets = FleetSecrets::new(&needs).expect("generated");
        let client = secrets.of_client().expect("needed");
        assert!(!client.contains("member_key"), "{client}");
        let host = |name: &str| secrets.of_server(&[name.to_owned()]).expect("a name");
        assert_ne!(host("db1").expect("needed"), host("db2").expect("needed"));
        let shown = format!("{secrets:?}");
        assert!(!shown.contains("PRIVATE") && !shown.contains("password"), "{shown}");
    }
}
