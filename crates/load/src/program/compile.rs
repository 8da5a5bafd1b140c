//! Turns templates into constant bytes and instructions.

mod from;
mod generator;

use super::error::ProgramError;
use super::node::{Node, Part, Record, Variables};
use super::stream::Stream;
use super::{Owner, Program, Templates};
use bson::Bson;
use dyno_plan::workload::template::{Generator, Value};
use dyno_wire::bson::{begin_document, kind, patch_length};

pub(super) fn program(
    template: &Value,
    owner: Owner<'_>,
    templates: &Templates<'_>,
) -> Result<Program, ProgramError> {
    let mut compiler = Compiler::new(owner, templates);
    let root = compiler.value(template, &compiler.root())?;
    match &root {
        Node::Record(Record { kind: kind::DOCUMENT, .. })
        | Node::Constant { kind: kind::DOCUMENT, .. }
        | Node::New { .. } => {}
        _ => return Err(ProgramError::NotADocument { owner: compiler.owner_name() }),
    }
    Ok(Program { variables: compiler.into_variables(), root })
}

/// A place in a template: the stream of its value, and its path for messages.
#[derive(Clone, Debug)]
struct Spot {
    stream: Stream,
    at: String,
}

impl Spot {
    /// A field, or an element of a fixed array.
    fn field(&self, name: &str) -> Self {
        let separator = if self.at.is_empty() { "" } else { "." };
        Spot { stream: self.stream.field(name), at: format!("{}{separator}{name}", self.at) }
    }

    /// A part of a generator, which has the generator's path.
    fn part(&self, name: &str) -> Self {
        Spot { stream: self.stream.part(name), at: self.at.clone() }
    }
}

/// Path of a `%from`: the collection's index and the names.
type Target<'a> = (usize, &'a [String]);

/// Compiles the values of one owner.
struct Compiler<'a> {
    templates: &'a Templates<'a>,
    owner: Owner<'a>,
    /// `let` of the owner, and what is compiled of it.
    declared: &'a [(String, Value)],
    variables: Vec<VariableProgress>,
    /// Paths of `%from` that are being compiled, from the outermost one.
    targets: Vec<Target<'a>>,
}

#[derive(Debug)]
enum VariableProgress {
    Unused,
    InProgress,
    Compiled(Node),
}

impl<'a> Compiler<'a> {
    fn new(owner: Owner<'a>, templates: &'a Templates<'a>) -> Self {
        let declared = match owner {
            Owner::Collection(collection) => &templates.collections[collection].variables,
            Owner::Step { variables, .. } => variables,
        };
        let variables = declared.iter().map(|_| VariableProgress::Unused).collect();
        Compiler { templates, owner, declared, variables, targets: Vec::new() }
    }

    fn owner_name(&self) -> String {
        match self.owner {
            Owner::Collection(collection) => self.templates.collections[collection].name.clone(),
            Owner::Step { operation, .. } => operation.to_owned(),
        }
    }

    fn owner_stream(&self) -> Stream {
        let prefix = match self.owner {
            Owner::Collection(_) => "collection",
            Owner::Step { .. } => "operation",
        };
        Stream::new(self.templates.seed, &format!("{prefix} {}", self.owner_name()))
    }

    /// The template as a whole.
    fn root(&self) -> Spot {
        let stream = match self.owner {
            Owner::Collection(_) => self.owner_stream(),
            Owner::Step { step, .. } => self.owner_stream().part(&step.to_string()),
        };
        Spot { stream, at: String::new() }
    }

    /// The variables by their place in `let`; none if the values use none.
    fn into_variables(self) -> Variables {
        let is_used = |progress: &VariableProgress| !matches!(progress, VariableProgress::Unused);
        if !self.variables.iter().any(is_used) {
            return Variables::default();
        }
        let compiled = self.variables.into_iter().map(|progress| match progress {
            VariableProgress::Compiled(node) => Some(node),
            VariableProgress::Unused | VariableProgress::InProgress => None,
        });
        compiled.collect()
    }

    fn value(&mut self, value: &'a Value, spot: &Spot) -> Result<Node, ProgramError> {
        match value {
            Value::Constant(constant) => constant_node(constant, spot),
            Value::Document(fields) => {
                let mut record = RecordBuilder::new(kind::DOCUMENT);
                for (name, value) in fields {
                    let spot = spot.field(name);
                    if name.contains('\0') {
                        return Err(ProgramError::ZeroInName { at: spot.at });
                    }
                    record.push(name, self.value(value, &spot)?);
                }
                Ok(record.finish())
            }
            Value::Array(elements) => self.array(elements, spot),
            Value::Generated(generator) => self.generator(generator, spot),
        }
    }

    fn array(&mut self, elements: &'a [Value], spot: &Spot) -> Result<Node, ProgramError> {
        let nodes = elements.iter().enumerate();
        let nodes: Vec<Node> = nodes
            .map(|(index, value)| self.value(value, &spot.field(&index.to_string())))
            .collect::<Result<_, _>>()?;
        if elements.iter().any(may_be_absent) {
            return Ok(Node::List(nodes.into()));
        }
        let mut record = RecordBuilder::new(kind::ARRAY);
        for (index, node) in nodes.into_iter().enumerate() {
            record.push(&index.to_string(), node);
        }
        Ok(record.finish())
    }

    /// Compiles a variable on its first use; returns its place.
    fn variable(&mut self, name: &str, spot: &Spot) -> Result<usize, ProgramError> {
        let place = self.declared.iter().position(|(declared, _)| declared == name);
        let place = place.ok_or_else(|| ProgramError::UnknownVariable {
            at: spot.at.clone(),
            name: name.to_owned(),
        })?;
        match self.variables[place] {
            VariableProgress::Compiled(_) => return Ok(place),
            VariableProgress::InProgress => {
                return Err(ProgramError::Recursion { at: format!("let.{name}") });
            }
            VariableProgress::Unused => {}
        }
        self.variables[place] = VariableProgress::InProgress;
        let stream = self.owner_stream().part("let").field(name);
        let spot = Spot { stream, at: format!("let.{name}") };
        let node = self.value(&self.declared[place].1, &spot)?;
        self.variables[place] = VariableProgress::Compiled(node);
        Ok(place)
    }
}

/// Whether an array must number its elements when it is written.
fn may_be_absent(value: &Value) -> bool {
    let Value::Generated(generator) = value else {
        return false;
    };
    match &**generator {
        Generator::Maybe { .. } | Generator::Variable(_) => true,
        Generator::Choose { values, .. } => values.iter().any(may_be_absent),
        _ => false,
    }
}

fn constant_node(constant: &Bson, spot: &Spot) -> Result<Node, ProgramError> {
    let document = bson::Document::from_iter([(String::new(), constant.clone())]);
    let bytes = document.to_vec().map_err(|error| ProgramError::Constant {
        at: spot.at.clone(),
        reason: error.to_string(),
    })?;
    // Length, type, empty name, value, final zero.
    Ok(Node::Constant { kind: bytes[4], bytes: bytes[6..bytes.len() - 1].into() })
}

/// Joins constant elements with the header of the generated element behind them.
struct RecordBuilder {
    kind: u8,
    parts: Vec<Part>,
    constant: Vec<u8>,
}

impl RecordBuilder {
    fn new(kind: u8) -> Self {
        RecordBuilder { kind, parts: Vec::new(), constant: Vec::new() }
    }

    fn push(&mut self, name: &str, node: Node) {
        let header = self.constant.len();
        self.constant.push(kind::NULL);
        self.constant.extend_from_slice(name.as_bytes());
        self.constant.push(0);
        if let Node::Constant { kind, bytes } = node {
            self.constant[header] = kind;
            self.constant.extend_from_slice(&bytes);
            return;
        }
        let header_bytes = self.constant.len() - header;
        let constant = std::mem::take(&mut self.constant).into();
        self.parts.push(Part { constant, header_bytes, value: node });
    }

    /// The document or array; constant if all its elements are.
    fn finish(mut self) -> Node {
        self.constant.push(0);
        if self.parts.is_empty() {
            let mut bytes = Vec::new();
            let start = begin_document(&mut bytes);
            bytes.append(&mut self.constant);
            patch_length(&mut bytes, start);
            return Node::Constant { kind: self.kind, bytes: bytes.into() };
        }
        let (parts, tail) = (self.parts.into(), self.constant.into());
        Node::Record(Record { kind: self.kind, parts, tail })
    }
}
