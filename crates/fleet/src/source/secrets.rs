//! The secrets of a fleet, as its controller has them: made here, given to agents beside the address of Redis, and kept in
//! memory alone, so that nothing of them is left when this program is killed.

use crate::secrets::{Bundle, OwnSecrets, RunningSecrets, Secrets, ServerSecrets, is_secured};
use dyno_engine::{Error, Kind, OrFault};
use dyno_plan::Plan;
use dyno_plan::model::{Encryption, ServerPlan};
use dyno_plan::task::Remote;
use dyno_servers::{Authority, MemberKey, random_credentials};

/// What the plans so far need.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    own: bool,
    running: Vec<RunningSecrets>,
}

impl Needs {
    /// Adds what a plan needs.
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

/// See the module.
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
    /// What clients are given.
    bundle: Bundle,
    /// The same for this program.
    secrets: Secrets,
}

impl FleetSecrets {
    /// Makes what is needed.
    ///
    /// # Errors
    /// There are no random numbers, or no memory.
    pub(super) fn new(needs: &Needs) -> Result<Self, Error> {
        Ok(FleetSecrets {
            running: needs.running.clone(),
            own: needs.own.then(Own::new).transpose()?,
        })
    }

    /// The file of an agent that loads; `None` if it needs none.
    pub(super) fn of_client(&self) -> Option<String> {
        let own = self.own.as_ref().and_then(|own| own.bundle.own.clone());
        let bundle = Bundle {
            own,
            running: self.running.clone(),
        };
        (!bundle.is_empty()).then(|| bundle.to_text())
    }

    /// The file of an agent that starts servers on a host with these names and addresses; `None` if it needs none.
    ///
    /// # Errors
    /// A name that cannot be part of a certificate.
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

    /// Certificate of the authority, and certificate and key in one text of a server with these names; `None` if the plan asks for
    /// no certificates.
    ///
    /// # Errors
    /// A name that cannot be part of a certificate, and a plan that nobody was made ready for.
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

    /// A server that the fleet has started, as this program reaches it.
    ///
    /// # Errors
    /// A connection string that is not valid, and a plan that nobody was made ready for.
    pub(super) fn remote(&self, uri: &str, server: &ServerPlan) -> Result<Remote, Error> {
        let remote = Remote::parse(uri)?;
        match self.own(server)? {
            Some(own) => own.secrets.apply(remote, server),
            None => Ok(remote),
        }
    }

    fn own(&self, server: &ServerPlan) -> Result<Option<&Own>, Error> {
        match &self.own {
            None if is_secured(server) => Err(Error::new(
                Kind::BadInput,
                "a later plan asks for users or certificates, and the hosts were made ready for one that does not",
            )
            .with_hint("ask for them in the first plan, too, or make a run of each")),
            own => Ok(own.as_ref()),
        }
    }
}

impl Own {
    fn new() -> Result<Self, Error> {
        let random = || "the system gives no random numbers";
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
        Ok(Own {
            authority,
            key,
            secrets: Secrets::new(bundle.clone())?,
            bundle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::ServerKind;

    #[test]
    fn clients_get_no_server_secrets_and_each_host_a_certificate() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.server.kind = ServerKind::Mongod;
        let mut needs = Needs::default();
        needs.add(&plan, None).expect("nothing");
        let none = FleetSecrets::new(&needs).expect("nothing");
        assert_eq!(none.of_client(), None);
        assert_eq!(none.of_server(&[]).expect("nothing"), None);
        plan.server.encryption = Encryption::Server;
        let error = none
            .remote("mongodb://h/", &plan.server)
            .expect_err("not made ready");
        assert_eq!(error.kind, Kind::BadInput);
        assert!(error.to_string().contains("later plan"), "{error}");
        needs.add(&plan, None).expect("certificates");
        let secrets = FleetSecrets::new(&needs).expect("they are made");
        let client = secrets.of_client().expect("needed");
        assert!(!client.contains("member_key"), "{client}");
        let host = |name: &str| secrets.of_server(&[name.to_owned()]).expect("a name");
        assert_ne!(host("db1").expect("needed"), host("db2").expect("needed"));
        let shown = format!("{secrets:?}");
        assert!(
            !shown.contains("PRIVATE") && !shown.contains("password"),
            "{shown}"
        );
    }
}
