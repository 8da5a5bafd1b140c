//! The command line of the fake `mongod`, validated like the real programs' command lines.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Options of `mongod` with a value, from its manual page.
const MONGOD_VALUES: &str = "\
    bind_ip dbpath inMemorySizeGB journalCommitInterval keyFile port replSet storageEngine \
    syncdelay tlsCAFile tlsCertificateKeyFile tlsMode wiredTigerCacheSizeGB \
    wiredTigerCollectionBlockCompressor";
const MONGOD_FLAGS: &str = "\
    auth configsvr nojournal nounixsocket shardsvr tlsAllowConnectionsWithoutCertificates";
const MONGOS_VALUES: &str = "bind_ip configdb keyFile port tlsCAFile tlsCertificateKeyFile tlsMode";
const MONGOS_FLAGS: &str = "nounixsocket tlsAllowConnectionsWithoutCertificates";

/// A valid command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    values: BTreeMap<String, String>,
    pub(super) parameters: BTreeMap<String, String>,
}

impl Arguments {
    /// Parses `arguments` of `program`; an error describes the problem.
    pub(super) fn parse(
        program: &str,
        version: (u32, u32),
        arguments: &[&str],
    ) -> Result<Arguments, String> {
        let (values, flags) = match program {
            "mongos" => (MONGOS_VALUES, MONGOS_FLAGS),
            _ => (MONGOD_VALUES, MONGOD_FLAGS),
        };
        let has = |list: &str, name: &str| list.split(' ').any(|known| known == name);
        let mut parsed = Arguments::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument.strip_prefix("--").unwrap_or_default();
            let mut value = || rest.next().ok_or(format!("`{argument}` has no value"));
            if name == "setParameter" {
                let (key, value) = value()?.split_once('=').ok_or("a parameter has no value")?;
                parsed.parameters.insert(key.to_owned(), value.to_owned());
            } else if has(values, name) || name == "wiredTigerJournalCompressor" {
                let value = (*value()?).to_owned();
                if parsed.values.insert(name.to_owned(), value).is_some() {
                    return Err(format!("`{argument}` is given twice"));
                }
            } else if has(flags, name) {
                parsed.values.insert(name.to_owned(), "true".to_owned());
            } else {
                return Err(format!("unrecognised option `{argument}`"));
            }
        }
        parsed.check(program, version)?;
        Ok(parsed)
    }

    fn check(&self, program: &str, version: (u32, u32)) -> Result<(), String> {
        let required = if program == "mongos" { "configdb" } else { "dbpath" };
        for name in ["port", required] {
            if !self.has(name) {
                return Err(format!("`--{name}` is missing"));
            }
        }
        if self.has("nojournal") && version >= (6, 1) {
            return Err("unrecognised option `--nojournal`".to_owned());
        }
        if (self.has("shardsvr") || self.has("configsvr")) && !self.has("replSet") {
            return Err("shards and config servers need `--replSet`".to_owned());
        }
        if self.has("auth") && self.has("replSet") && !self.has("keyFile") {
            return Err(
                "security.keyFile is required when authorization is enabled with replica sets"
                    .to_owned(),
            );
        }
        if self.get("tlsMode") == Some("requireTLS") && !self.has("tlsCertificateKeyFile") {
            return Err("need `--tlsCertificateKeyFile` with TLS".to_owned());
        }
        if let Some(text) = self.get("wiredTigerCacheSizeGB")
            && !text.parse::<f64>().is_ok_and(|size| (0.25..=10_000.0).contains(&size))
        {
            return Err(format!("`{text}` GB is not a cache size"));
        }
        for parameter in self.parameters.keys() {
            if parameter.ends_with("MillisForSignaledShutdown") && version < (5, 0) {
                return Err(format!("unknown setParameter `{parameter}`"));
            }
        }
        for name in ["keyFile", "tlsCertificateKeyFile", "tlsCAFile"] {
            if let Some(path) = self.get(name) {
                private_file(Path::new(path)).map_err(|why| format!("`{path}`: {why}"))?;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether clients must authenticate; a key file implies it.
    pub(super) fn needs_user(&self) -> bool {
        self.has("auth") || self.has("keyFile")
    }
}

/// `mongod` refuses a key file that others can read; certificates must be as private.
fn private_file(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    match metadata.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => Err("permissions on the file are too open".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(program: &str, version: (u32, u32), line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        Arguments::parse(program, version, &words).err().unwrap_or_default()
    }

    #[test]
    fn command_lines_that_the_real_programs_refuse_are_refused() {
        let mongod = |line| wrong("mongod", (7, 0), line);
        assert_eq!(mongod("--port 1 --dbpath /d --replSet a --shardsvr"), "");
        assert!(mongod("--port 1 --dbpath /d --journal").contains("`--journal`"));
        assert!(mongod("--port 1 --dbpath /d --nojournal").contains("`--nojournal`"));
        assert!(mongod("--port 1").contains("`--dbpath`"));
        assert!(mongod("--port 1 --dbpath /d --shardsvr").contains("need `--replSet`"));
        assert!(mongod("--port 1 --dbpath /d --auth --replSet a").contains("keyFile is required"));
        assert!(mongod("--port 1 --dbpath /d --wiredTigerCacheSizeGB 0.1").contains("size"));
        assert!(wrong("mongos", (7, 0), "--port 1 --configdb a/b:1 --auth").contains("`--auth`"));
        assert_eq!(wrong("mongod", (6, 0), "--port 1 --dbpath /d --nojournal"), "");
        let patience =
            "--port 1 --dbpath /d --setParameter shutdownTimeoutMillisForSignaledShutdown=1";
        assert!(wrong("mongod", (4, 4), patience).contains("unknown setParameter"));
    }
}
