//! Environment variables, the program's path, cores and terminal width. They are read here once and
//! passed on as plain values.

use dyno_engine::environment::{Environment, ServerHome};
use dyno_fleet::options::Hidden;
use dyno_plan::wsf::VARIABLES;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables with secrets: connection string, tokens, Redis address.
const SECRETS: [&str; 4] = ["DYNO_URI", "DYNO_METRICS_TOKEN", "DYNO_GRAFANA_TOKEN", "DYNO_REDIS"];

/// Removes the variables with secrets after they were read, because started programs inherit all variables.
pub(crate) fn forget_secrets() {
    for name in SECRETS {
        // SAFETY: no other thread is running yet.
        unsafe { std::env::remove_var(name) };
    }
}

/// The environment of the program at its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Whether `NO_COLOR` is set and not empty.
    pub(crate) no_color: bool,
    /// Whether `DYNO_NO_INSTALL` forbids to install a server that is missing.
    pub(crate) no_install: bool,
    /// Environment for the engine. `--state-dir` overrides the state folder.
    pub(crate) environment: Environment,
    /// Parameters of the Workload Services Framework, used only with `--wsf`.
    pub(crate) wsf: BTreeMap<String, String>,
    /// Token for readers of metrics, unless an option gives one.
    pub(crate) metrics_token: Option<Hidden>,
    /// Token for Grafana, unless the plan names a file with one.
    pub(crate) grafana_token: Option<Hidden>,
    /// Redis address of a fleet, and a file that holds it.
    pub(crate) redis: Option<Hidden>,
    pub(crate) redis_file: Option<PathBuf>,
    /// Width of the terminal in columns, if standard output is a terminal.
    pub(crate) columns: Option<usize>,
}

impl Surroundings {
    /// Reads the environment.
    pub(crate) fn read() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let secret = |name: &str| set(name).map(|value| Hidden::new(value.to_string_lossy()));
        let folder = |name: &str| {
            let path = set(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let (state_home, home) = (folder("XDG_STATE_HOME"), folder("HOME"));
        let data_home = folder("XDG_DATA_HOME")
            .or_else(|| home.as_ref().map(|home| home.join(".local/share")))
            .map(|folder| folder.join("mongodyno"));
        // A relative path would depend on the working directory.
        let data_dir = set("DYNO_DATA_DIR").and_then(|path| std::path::absolute(path).ok());
        let environment = Environment {
            path: std::env::var_os("PATH"),
            executable: std::env::current_exe().ok(),
            state_dir: set("DYNO_STATE_DIR").map(PathBuf::from).or_else(|| {
                state_home
                    .or_else(|| home.map(|home| home.join(".local/state")))
                    .map(|folder| folder.join("mongodyno"))
            }),
            data_dir: data_dir.or(data_home),
            mongod: set("DYNO_MONGOD").map(|text| text.to_string_lossy().into_owned()),
            embedded_server: set("DYNO_EMBEDDED_SERVER").map(PathBuf::from),
            home: ServerHome::Here,
            cores: std::thread::available_parallelism()
                .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1)),
            hostname: nix::sys::utsname::uname()
                .ok()
                .and_then(|names| names.nodename().to_str().map(str::to_owned)),
        };
        Surroundings {
            no_color: set("NO_COLOR").is_some(),
            no_install: set("DYNO_NO_INSTALL").is_some(),
            environment,
            wsf: VARIABLES
                .iter()
                .filter_map(|variable| {
                    let value = std::env::var_os(variable.name)?;
                    Some((variable.name.to_owned(), value.to_string_lossy().into_owned()))
                })
                .collect(),
            metrics_token: secret("DYNO_METRICS_TOKEN"),
            grafana_token: secret("DYNO_GRAFANA_TOKEN"),
            redis: secret("DYNO_REDIS"),
            redis_file: set("DYNO_REDIS_FILE").map(PathBuf::from),
            columns: terminal_size::terminal_size_of(std::io::stdout())
                .map(|(width, _)| usize::from(width.0)),
        }
    }
}
