//! Archives of servers, as MongoDB and Percona publish them: `NAME/bin/mongod`, maybe `NAME/bin/mongos`, and with Percona
//! libraries in `NAME/lib`. They are read by `tar`, which knows all kinds of compression; what is taken of them is named
//! one by one, and every name is looked at before.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::error::{InstallError, unusable};

/// Where the mark of a `tar` without compression is.
const TAR_MARK: usize = 257;

/// First bytes of compressed files: gzip, xz, bzip2, zstd.
const COMPRESSED: [&[u8]; 4] = [
    &[0x1f, 0x8b],
    &[0xfd, b'7', b'z', b'X', b'Z'],
    b"BZh",
    &[0x28, 0xb5, 0x2f, 0xfd],
];

/// A file that holds several.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
}

/// Runs a command for a purpose.
pub(super) type Run<'a> = dyn Fn(Command, &'static str) -> Result<ExitStatus, InstallError> + 'a;

impl Archive {
    /// `None` for a file that is no archive: a program, as far as is known here.
    pub(super) fn open(path: &Path) -> Result<Option<Archive>, InstallError> {
        let file = File::open(path).map_err(|source| unusable(path, source))?;
        let mut first = Vec::new();
        file.take(512)
            .read_to_end(&mut first)
            .map_err(|source| unusable(path, source))?;
        let is_tar = first
            .get(TAR_MARK..)
            .is_some_and(|rest| rest.starts_with(b"ustar"));
        let is_compressed = COMPRESSED.iter().any(|mark| first.starts_with(mark));
        Ok((is_tar || is_compressed).then(|| Archive {
            path: path.to_owned(),
        }))
    }

    /// Puts the programs into `bin` of a folder, and their libraries into `lib`. What `tar` says is in `log`, where `run` lets it
    /// write.
    pub(super) fn unpack(
        &self,
        folder: &Path,
        log: &Path,
        run: &Run<'_>,
    ) -> Result<(), InstallError> {
        let names = self.names(log, run)?;
        let chosen = chosen(&names).map_err(|reason| self.refuse(reason))?;
        let mut command = self.tar("-x");
        command
            .args(["--no-same-owner", "--strip-components=1", "-C"])
            .arg(folder)
            .arg("--")
            .args(&chosen);
        if !run(command, "unpack the archive")?.success() {
            return Err(self.refuse("`tar` failed".to_owned()));
        }
        for program in ["bin/mongod", "bin/mongos"] {
            // A link would lead to whatever it names.
            let is_other = folder
                .join(program)
                .symlink_metadata()
                .is_ok_and(|metadata| !metadata.is_file());
            if is_other {
                return Err(self.refuse(format!("its `{program}` is not a file")));
            }
        }
        Ok(())
    }

    fn names(&self, log: &Path, run: &Run<'_>) -> Result<Vec<String>, InstallError> {
        if !run(self.tar("-t"), "look into the archive")?.success() {
            return Err(self.refuse("`tar` cannot read it".to_owned()));
        }
        let text = std::fs::read(log).map_err(|source| unusable(log, source))?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn tar(&self, mode: &str) -> Command {
        let mut command = Command::new("tar");
        command.arg(mode).arg("-f").arg(&self.path);
        command
    }

    fn refuse(&self, reason: String) -> InstallError {
        InstallError::Archive {
            path: self.path.clone(),
            reason,
        }
    }
}

/// What is taken of an archive.
fn chosen(names: &[String]) -> Result<Vec<&str>, String> {
    let mut servers = names.iter().filter_map(|name| {
        let top = name.strip_suffix("/bin/mongod")?;
        (!top.is_empty() && !top.contains('/')).then_some(top)
    });
    let Some(top) = servers.next() else {
        return Err("it has no `NAME/bin/mongod`".to_owned());
    };
    let is_wanted = |name: &&String| {
        let rest = name
            .strip_prefix(top)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| {
            matches!(rest, "bin/mongod" | "bin/mongos")
                || rest.starts_with("lib/") && !rest.ends_with('/')
        })
    };
    let wanted: Vec<&str> = names.iter().filter(is_wanted).map(String::as_str).collect();
    let leads_out = |name: &&str| {
        let mut parts = Path::new(name).components();
        !parts.all(|part| matches!(part, Component::Normal(_)))
    };
    match wanted.iter().find(|name| leads_out(name)) {
        Some(name) => Err(format!("`{name}` would be unpacked outside its folder")),
        None => Ok(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn servers_and_their_libraries_are_taken_and_nothing_else() {
        let mongodb = names(&[
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/LICENSE-Community.txt",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/install_compass",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/mongod",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/mongos",
        ]);
        assert_eq!(chosen(&mongodb).unwrap(), mongodb[2..]);
        let percona = names(&[
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/lib/private/",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/lib/private/libssl.so.3",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/bin/mongod",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/bin/mongo",
        ]);
        assert_eq!(chosen(&percona).unwrap(), percona[1..3]);
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let error = chosen(&names(&["m/bin/mongod", "m/lib/../../x"])).unwrap_err();
        assert!(error.contains("outside its folder"), "{error}");
        for list in [
            &["/bin/mongod"][..],
            &["bin/mongod"],
            &["a/b/bin/mongod"],
            &["m/bin/mongo"],
        ] {
            let error = chosen(&names(list)).unwrap_err();
            assert!(error.contains("no `NAME/bin/mongod`"), "{error}");
        }
        assert!(chosen(&names(&["../bin/mongod"])).is_err());
    }
}
