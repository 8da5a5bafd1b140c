//! Server archives published by MongoDB and Percona: `NAME/bin/mongod`, optionally
//! `NAME/bin/mongos`, and for Percona libraries in `NAME/lib`. `tar` reads them because it knows
//! all kinds of compression. Files are extracted by name, and every name is checked first.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::error::{InstallError, unusable};

/// First bytes of programs: of the system, and scripts.
const PROGRAMS: [&[u8]; 2] = [b"\x7fELF", b"#!"];

/// A server archive.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
}

/// Runs a command for a purpose.
pub(super) type Run<'a> = dyn Fn(Command, &'static str) -> Result<ExitStatus, InstallError> + 'a;

impl Archive {
    /// `None` for a program.
    pub(super) fn open(path: &Path) -> Result<Option<Archive>, InstallError> {
        let file = File::open(path).map_err(|source| unusable(path, source))?;
        let mut first = Vec::new();
        file.take(4).read_to_end(&mut first).map_err(|source| unusable(path, source))?;
        let archive = Archive { path: path.to_owned() };
        // Versions of `tar` differ about empty files.
        if first.is_empty() {
            return Err(archive.refuse("it is empty: download it again".to_owned()));
        }
        let is_program = PROGRAMS.iter().any(|mark| first.starts_with(mark));
        Ok((!is_program).then_some(archive))
    }

    /// Extracts the programs into `bin` of a folder, and their libraries into `lib`. `run` lets
    /// `tar` write its output to `log`.
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
            .arg("--no-same-owner")
            .arg(format!("--strip-components={}", chosen.stripped))
            .arg("-C")
            .arg(folder)
            .arg("--")
            .args(&chosen.names);
        if !run(command, "unpack the archive")?.success() {
            return Err(self.refuse("`tar` failed".to_owned()));
        }
        self.tame(folder, Path::new("bin"))?;
        self.tame(folder, Path::new("lib"))
    }

    /// Refuses everything except regular files and, in `lib`, links to files of the same folder;
    /// clears setuid and setgid bits.
    fn tame(&self, root: &Path, below: &Path) -> Result<(), InstallError> {
        let folder = root.join(below);
        let cannot = |source| unusable(&folder, source);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(cannot)?,
        };
        for entry in entries {
            let name = below.join(entry.map_err(cannot)?.file_name());
            let path = root.join(&name);
            let metadata = path.symlink_metadata().map_err(cannot)?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                let rights = Permissions::from_mode(0o755);
                fs::set_permissions(&path, rights).map_err(cannot)?;
                self.tame(root, &name)?;
            } else if kind.is_file() {
                let rights = Permissions::from_mode(metadata.mode() & 0o755);
                fs::set_permissions(&path, rights).map_err(cannot)?;
            } else if !below.starts_with("lib") || !leads_beside(&path) {
                let name = name.display();
                return Err(self.refuse(format!("`{name}` in it is not a file")));
            }
        }
        Ok(())
    }

    fn names(&self, log: &Path, run: &Run<'_>) -> Result<Vec<String>, InstallError> {
        if !run(self.tar("-t"), "list the archive")?.success() {
            let reason = "it is not a program, and `tar` cannot read it: download it again, or unpack it and name the `mongod` in it";
            return Err(self.refuse(reason.to_owned()));
        }
        let text = fs::read(log).map_err(|source| unusable(log, source))?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn tar(&self, mode: &str) -> Command {
        let mut command = Command::new("tar");
        command.arg(mode).arg("-f").arg(&self.path);
        command
    }

    fn refuse(&self, reason: String) -> InstallError {
        InstallError::Archive { path: self.path.clone(), reason }
    }
}

/// Whether a path is a link to a file in its own folder, because libraries have several names.
fn leads_beside(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| {
        let mut parts = target.components();
        matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    })
}

/// The files to extract from an archive.
#[derive(Debug, PartialEq)]
struct Chosen<'a> {
    names: Vec<&'a str>,
    /// Number of leading folders to strip from each name.
    stripped: usize,
}

fn chosen(names: &[String]) -> Result<Chosen<'_>, String> {
    let mut servers = names.iter().filter_map(|name| {
        let top = name.strip_suffix("/bin/mongod")?;
        let folder = without_dots(top);
        (!folder.is_empty() && !folder.contains('/')).then_some(top)
    });
    let Some(top) = servers.next() else {
        return Err("it has no `NAME/bin/mongod`".to_owned());
    };
    let is_wanted = |name: &&String| {
        let rest = name.strip_prefix(top).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| {
            matches!(rest, "bin/mongod" | "bin/mongos")
                || rest.starts_with("lib/") && !rest.ends_with('/')
        })
    };
    let wanted: Vec<&str> = names.iter().filter(is_wanted).map(String::as_str).collect();
    let leads_out = |name: &&str| {
        let mut parts = Path::new(without_dots(name)).components();
        !parts.all(|part| matches!(part, Component::Normal(_)))
    };
    match wanted.iter().find(|name| leads_out(name)) {
        Some(name) => Err(format!("`{name}` would be unpacked outside its folder")),
        None => Ok(Chosen { names: wanted, stripped: top.split('/').count() }),
    }
}

/// A name without a leading `./`.
fn without_dots(mut name: &str) -> &str {
    while let Some(rest) = name.strip_prefix("./") {
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_servers_and_their_libraries_are_unpacked() {
        let mongodb = names(&[
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/LICENSE-Community.txt",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/install_compass",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/mongod",
            "mongodb-linux-x86_64-ubuntu2204-8.0.4/bin/mongos",
        ]);
        let found = chosen(&mongodb).unwrap();
        assert_eq!((found.names, found.stripped), (vec![&*mongodb[2], &*mongodb[3]], 1));
        let percona = names(&[
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/lib/private/",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/lib/private/libssl.so.3",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/bin/mongod",
            "percona-server-mongodb-6.0.11-8-x86_64.glibc2.35/bin/mongo",
        ]);
        assert_eq!(chosen(&percona).unwrap().names, percona[1..3]);
        let dotted = names(&["./", "./m/", "./m/bin/mongod", "./m/lib/x.so"]);
        let found = chosen(&dotted).unwrap();
        assert_eq!((found.names, found.stripped), (vec![&*dotted[2], &*dotted[3]], 2));
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        let error = chosen(&names(&["m/bin/mongod", "m/lib/../../x"])).unwrap_err();
        assert!(error.contains("`m/lib/../../x`"), "{error}");
        for list in [&["/bin/mongod"][..], &["bin/mongod"], &["a/b/bin/mongod"], &["m/bin/mongo"]] {
            let error = chosen(&names(list)).unwrap_err();
            assert!(error.contains("`NAME/bin/mongod`"), "{error}");
        }
        assert!(chosen(&names(&["../bin/mongod"])).is_err());
    }
}
