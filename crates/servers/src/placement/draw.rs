//! Draws a machine and a placement as plain text: a box for each node, a cell for each core.

use std::collections::BTreeMap;

use super::machine::{Core, Machine, Node};
use super::outcome::Placement;
use dyno_plan::placement::IdSet;
use dyno_plan::placement::{InstancePlacement, MemoryPolicy};

/// A smaller width is unreadable.
const SMALLEST_WIDTH: usize = 40;
const FREE: &str = "·";
const IDLE: &str = "-";
const FORBIDDEN: &str = "x";

/// Draws the owner of each CPU, at most `width` columns wide (40 at least). There is a box for each
/// node and a cell for each core, with the CPUs of the core side by side: `s0` belongs to server 0,
/// `c0` to its client. Offline CPUs do not appear.
pub fn draw(machine: &Machine, placement: &Placement, width: usize) -> String {
    let picture = Picture::new(machine, placement, width.max(SMALLEST_WIDTH));
    let mut lines = Vec::new();
    for node in &machine.nodes {
        lines.extend(picture.node(node));
    }
    lines.extend(picture.legend());
    for note in &placement.notes {
        lines.extend(wrapped(&format!("note: {note}"), picture.width, 6));
    }
    let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n"
}

struct Picture<'a> {
    machine: &'a Machine,
    /// Servers, then clients, with their labels.
    processes: Vec<(String, &'a InstancePlacement)>,
    /// Label of each online CPU.
    labels: BTreeMap<u32, String>,
    label_width: usize,
    width: usize,
}

impl<'a> Picture<'a> {
    fn new(machine: &'a Machine, placement: &'a Placement, width: usize) -> Picture<'a> {
        let servers = placement.instances.iter().enumerate();
        let clients = placement.clients.iter().enumerate();
        let processes: Vec<_> = servers
            .map(|(index, place)| (format!("s{index}"), place))
            .chain(clients.map(|(index, place)| (format!("c{index}"), place)))
            .collect();
        let mut labels = BTreeMap::new();
        for core in &machine.cores {
            let owner = |cpu| owner(&processes, cpu);
            let in_use = core.cpus.iter().any(|cpu| owner(cpu).is_some());
            for cpu in core.cpus.iter() {
                let label = match owner(cpu) {
                    Some(label) => label,
                    None if !machine.allowed_cpus.contains(cpu) => FORBIDDEN,
                    None if in_use => IDLE,
                    None => FREE,
                };
                labels.insert(cpu, label.to_owned());
            }
        }
        let lengths = labels.values().map(|label| label.chars().count());
        Picture {
            machine,
            label_width: lengths.max().unwrap_or(1).max(2),
            labels,
            processes,
            width,
        }
    }

    /// The box of one node.
    fn node(&self, node: &Node) -> Vec<String> {
        let cores: Vec<&Core> =
            self.machine.cores.iter().filter(|core| core.node == node.number).collect();
        let inner = self.width - 4;
        let title = title(node, &cores);
        let rule = (self.width - 4).saturating_sub(title.chars().count() + 1);
        let mut lines = vec![format!("┌─ {title} {}┐", "─".repeat(rule))];
        let mut content = self.rows(&cores, inner);
        let memory = self.memory_users(node.number);
        if !memory.is_empty() {
            let text = format!("memory of {}", memory.join(" "));
            content.extend(wrapped(&text, inner, 10));
        }
        for line in content {
            let padding = inner.saturating_sub(line.chars().count());
            lines.push(format!("│ {line}{} │", " ".repeat(padding)));
        }
        lines.push(format!("└{}┘", "─".repeat(self.width - 2)));
        lines
    }

    /// Cells of the cores, each L3 group on separate lines.
    fn rows(&self, cores: &[&Core], inner: usize) -> Vec<String> {
        let mut groups: Vec<(String, Vec<&Core>)> = Vec::new();
        let packages: IdSet = cores.iter().map(|core| core.package).collect();
        for core in cores {
            let name = group_name(core, packages.len() > 1);
            match groups.last_mut() {
                Some((last, group)) if *last == name => group.push(core),
                _ => groups.push((name, vec![core])),
            }
        }
        let name_width = groups.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let siblings = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(1);
        let cell_width = siblings * (self.label_width + 1);
        let prefix_width = name_width + usize::from(name_width > 0) * 2 + 9;
        let fitting = (inner.saturating_sub(prefix_width) / cell_width).max(1);
        // A power of two aligns with the numbers of the CPUs.
        let per_row = 1 << fitting.ilog2();
        let mut lines = Vec::new();
        for (name, group) in &groups {
            for (index, row) in group.chunks(per_row).enumerate() {
                let name = if index == 0 { name } else { "" };
                let gap = if name_width > 0 { "  " } else { "" };
                let first = row[0].cpus.first().unwrap_or(0);
                let cells: String = row.iter().map(|core| self.cell(core, cell_width)).collect();
                lines.push(format!("{name:name_width$}{gap}cpu {first:<5}{}", cells.trim_end()));
            }
        }
        lines
    }

    fn cell(&self, core: &Core, cell_width: usize) -> String {
        let labels: Vec<_> = core.cpus.iter().map(|cpu| self.labels[&cpu].as_str()).collect();
        // Labels of one kind side by side are easier to read without padding between them.
        format!("{:cell_width$}", labels.join("/"))
    }

    /// Labels of the processes whose memory is explicitly placed on a node.
    fn memory_users(&self, node: u32) -> Vec<String> {
        let users = self.processes.iter().filter(|(_, place)| {
            let local = match (&place.memory, &place.cpus) {
                (MemoryPolicy::Local, Some(cpus)) => {
                    self.machine.memory_nodes_near(cpus).contains(node)
                }
                _ => false,
            };
            local || place.memory.nodes().contains(node)
        });
        users.map(|(label, _)| label.clone()).collect()
    }

    fn legend(&self) -> Vec<String> {
        let label_width = self.label_width + 1;
        let mut lines = Vec::new();
        for (label, place) in &self.processes {
            let name = match label.split_at(1) {
                ("s", index) => format!("server {index}"),
                (_, index) => format!("client {index}"),
            };
            let cpus = match &place.cpus {
                Some(cpus) if cpus.len() == 1 => format!("CPU {cpus}"),
                Some(cpus) => format!("CPUs {cpus}"),
                None => "any CPU".to_owned(),
            };
            let text = format!("{label:label_width$} {name}: {cpus}, memory {}", place.memory);
            lines.extend(wrapped(&text, self.width, label_width + 1));
        }
        let marks =
            [(FREE, "free"), (IDLE, "idle sibling of a core in use"), (FORBIDDEN, "not allowed")];
        let used = marks.iter().filter(|(mark, _)| self.labels.values().any(|label| label == mark));
        let texts: Vec<_> = used.map(|(mark, text)| format!("{mark} {text}")).collect();
        if !texts.is_empty() {
            lines.push(texts.join("   "));
        }
        lines
    }
}

fn owner<'a>(processes: &'a [(String, &InstancePlacement)], cpu: u32) -> Option<&'a str> {
    let found = processes.iter().find(|(_, place)| {
        let cpus = place.cpus.as_ref();
        cpus.is_some_and(|cpus| cpus.contains(cpu))
    });
    found.map(|(label, _)| label.as_str())
}

fn title(node: &Node, cores: &[&Core]) -> String {
    let packages: IdSet = cores.iter().map(|core| core.package).collect();
    let package = match packages.len() {
        0 => "no CPUs".to_owned(),
        1 => format!("package {packages}"),
        _ => format!("packages {packages}"),
    };
    let memory = match node.memory_bytes {
        0 => "no memory".to_owned(),
        bytes => format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64),
    };
    format!("node {} · {package} · {memory}", node.number)
}

/// Empty without groups to distinguish.
fn group_name(core: &Core, several_packages: bool) -> String {
    let cache = core.cache_group.map(|group| format!("L3 {group}"));
    match (several_packages, cache) {
        (true, Some(cache)) => format!("package {} {cache}", core.package),
        (true, None) => format!("package {}", core.package),
        (false, cache) => cache.unwrap_or_default(),
    }
}

/// Wraps a text at spaces, and after commas if a list is longer than a line.
fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive([' ', ',']) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > indent && line + piece.trim_end().chars().count() > width {
            lines.push(" ".repeat(indent));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(piece);
        }
    }
    lines
}
