//! `mongodb+srv://`: looks up the hosts (SRV) and the options (TXT) of a name.

use super::error::{ConnectError, Source};
use dyno_plan::uri::{Credentials, Host, SrvName, Target};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};
use std::net::SocketAddr;

/// Replaces a `mongodb+srv://` name by its hosts, and adds the options of its TXT record. Returns other targets unchanged.
///
/// `nameserver` is asked (by UDP) instead of the system's name servers.
///
/// # Errors
/// [`ConnectError::ResolveService`], [`ConnectError::ForeignHost`] and [`ConnectError::ServiceOptions`].
pub fn with_known_hosts(
    mut target: Target,
    mut credentials: Option<Credentials>,
    nameserver: Option<SocketAddr>,
) -> Result<(Target, Option<Credentials>), ConnectError> {
    let Some(name) = target.srv.clone() else { return Ok((target, credentials)) };
    let records = look_up(&name, nameserver)
        .map_err(|source| ConnectError::ResolveService { name: record_name(&name), source })?;
    for (host, _) in &records.hosts {
        if !is_in_domain(&name.host, host) {
            return Err(ConnectError::ForeignHost { name: record_name(&name), host: host.clone() });
        }
    }
    if let Some(options) = &records.options {
        target
            .apply_txt_record(credentials.as_mut(), options)
            .map_err(|source| ConnectError::ServiceOptions { name: name.host.clone(), source })?;
    }
    let mut hosts: Vec<Host> =
        records.hosts.into_iter().map(|(host, port)| Host::Tcp { host, port }).collect();
    if let Some(limit) = name.max_hosts {
        choose(&mut hosts, limit as usize)?;
    }
    Ok((target.with_hosts(hosts), credentials))
}

const NO_RECORD: &str = "the name servers have no SRV record with this name";

struct Records {
    hosts: Vec<(String, u16)>,
    options: Option<String>,
}

fn record_name(name: &SrvName) -> String {
    format!("_{}._tcp.{}", name.service_name, name.host)
}

fn look_up(name: &SrvName, nameserver: Option<SocketAddr>) -> Result<Records, Source> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let resolver = resolver(nameserver)?;
        // The final dot disables the system's search domains.
        let looked_up = resolver.lookup(format!("{}.", record_name(name)), RecordType::SRV).await;
        let hosts = match looked_up {
            Err(error) if error.is_no_records_found() => return Err(NO_RECORD.into()),
            found => found?,
        };
        let hosts: Vec<(String, u16)> = hosts
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::SRV(record) => Some((host_text(&record.target.to_utf8()), record.port)),
                _ => None,
            })
            .collect();
        if hosts.is_empty() {
            return Err(NO_RECORD.into());
        }
        let options = look_up_options(&resolver, &name.host).await?;
        Ok(Records { hosts, options })
    })
}

async fn look_up_options(resolver: &TokioResolver, host: &str) -> Result<Option<String>, Source> {
    let records = match resolver.lookup(format!("{host}."), RecordType::TXT).await {
        Ok(records) => records,
        Err(error) if error.is_no_records_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut texts = records.answers().iter().filter_map(|record| match &record.data {
        RData::TXT(record) => Some(record.txt_data.concat()),
        _ => None,
    });
    let text = texts.next();
    if texts.next().is_some() {
        return Err("more than one TXT record".into());
    }
    Ok(text.map(String::from_utf8).transpose()?)
}

fn resolver(nameserver: Option<SocketAddr>) -> Result<TokioResolver, NetError> {
    let Some(address) = nameserver else {
        return TokioResolver::builder_tokio()?.build();
    };
    let mut connection = ConnectionConfig::udp();
    connection.port = address.port();
    let server = NameServerConfig::new(address.ip(), true, vec![connection]);
    let config = ResolverConfig::from_name_servers(vec![server]);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()).build()
}

fn host_text(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether a record of `name` may name `host`: it must be in the same domain. The domain is the part after the first
/// label, or the whole of a shorter name.
fn is_in_domain(name: &str, host: &str) -> bool {
    let is_short = name.split('.').count() < 3;
    let domain = match name.split_once('.') {
        Some((_, domain)) if !is_short => domain,
        _ => name,
    };
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
}

/// Keeps `limit` random hosts.
fn choose(hosts: &mut Vec<Host>, limit: usize) -> Result<(), ConnectError> {
    let wanted = limit.min(hosts.len());
    for index in 0..wanted {
        let remaining = hosts.len() - index;
        let choice = super::random::random_u64()? as usize % remaining;
        hosts.swap(index, index + choice);
    }
    hosts.truncate(wanted);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_must_be_in_the_domain_of_the_name() {
        for (name, host, expected) in [
            ("db.example.com", "a.example.com", true),
            ("db.example.com", "a.b.example.com", true),
            ("db.example.com", "example.com", false),
            ("db.example.com", "a.example.org", false),
            ("db.example.com", "a.badexample.com", false),
            ("db.example.com", ".example.com", false),
            ("example.com", "a.example.com", true),
            ("example.com", "other.com", false),
            ("localhost", "a.localhost", true),
            ("localhost", "localhost", false),
        ] {
            assert_eq!(is_in_domain(name, host), expected, "{name} {host}");
        }
    }

    #[test]
    fn a_choice_of_hosts_is_a_subset_without_repetition() {
        let all: Vec<Host> = (1..=9).map(|port| Host::Tcp { host: "h".into(), port }).collect();
        for limit in [1, 4, 9, 20] {
            let mut hosts = all.clone();
            choose(&mut hosts, limit).unwrap();
            assert_eq!(hosts.len(), limit.min(9));
            let distinct: std::collections::HashSet<_> = hosts.iter().collect();
            assert_eq!(distinct.len(), hosts.len());
        }
    }
}
