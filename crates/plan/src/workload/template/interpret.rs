//! Turns the nodes of a text into values of a template: documents and strings that begin with `%` become generators.

use super::call::Call;
use super::constant;
use super::error::{Mistake, Place, TemplateErrorKind as Kind, shortened};
use super::generators::{self, Form, GENERATORS, GeneratorEntry};
use super::lexical::{generator_name, is_word};
use super::model::{Generator, Value};
use super::nodes::ReadFile;
use super::tree::{Entry, Node, NodeKind};
use crate::nearest::nearest;
use bson::Bson;

/// A template with its connections to the rest of the workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) value: Value,
    /// In the order of the text.
    pub(crate) mentions: Vec<Mention>,
}

/// A generator that names a part of the workload: [`Generator::From`] (without its arguments), [`Generator::New`],
/// [`Generator::Variable`] or [`Generator::Reply`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mention {
    pub(crate) place: Place,
    pub(crate) generator: Generator,
}

/// Turns the node of a whole text into a template.
pub(super) fn template(
    text: &str,
    node: &Node,
    read_file: ReadFile<'_>,
) -> Result<Template, Mistake> {
    let mut interpreter = Interpreter { text, read_file, mentions: Vec::new() };
    let value = interpreter.value(node)?;
    let mut mentions = interpreter.mentions;
    mentions.sort_by_key(|mention| mention.place);
    Ok(Template { value, mentions })
}

struct Interpreter<'a> {
    text: &'a str,
    read_file: ReadFile<'a>,
    mentions: Vec<Mention>,
}

impl Interpreter<'_> {
    fn value(&mut self, node: &Node) -> Result<Value, Mistake> {
        match &node.kind {
            NodeKind::Constant(constant) => Ok(Value::Constant(constant.clone())),
            NodeKind::Text(text) => self.text(node.offset, text),
            NodeKind::Array(nodes) => {
                let values = nodes.iter().map(|node| self.value(node)).collect::<Result<_, _>>()?;
                Ok(Value::array(values))
            }
            NodeKind::Document(entries) => self.document(node, entries),
        }
    }

    /// A string, which may name a generator or a variable.
    fn text(&mut self, offset: usize, text: &str) -> Result<Value, Mistake> {
        let Some(name) = text.strip_prefix('%') else {
            return Ok(Value::Constant(Bson::String(text.to_owned())));
        };
        if name.starts_with('%') {
            return Ok(Value::Constant(Bson::String(name.to_owned())));
        }
        if let Some((name, argument)) = name.split_once(' ') {
            return self.word_with_argument(offset, name, argument.trim());
        }
        match generators::find(name) {
            Some(generator) if generator.form == Form::Word => {
                let argument = Node { offset, kind: NodeKind::Constant(Bson::Null) };
                self.call(offset, generator, &argument, &[])
            }
            Some(generator) => {
                let mistake =
                    Mistake::new(offset, Kind::Missing, format!("`\"%{name}\"`"), "its arguments");
                Err(mistake.suggest(Some(generator.example)))
            }
            None if !name.is_empty() && name.chars().all(is_word) => {
                Ok(self.mention(offset, Generator::Variable(name.to_owned())))
            }
            None => {
                let found = format!("`\"{}\"`", shortened(text));
                let expected = "a generator or a variable behind `%`; `%%` is a literal `%`";
                Err(Mistake::new(offset, Kind::UnknownName, found, expected)
                    .suggest(Some(format!("%{text}"))))
            }
        }
    }

    /// `%new orders`.
    fn word_with_argument(
        &mut self,
        offset: usize,
        name: &str,
        argument: &str,
    ) -> Result<Value, Mistake> {
        match generators::find(name) {
            Some(generator) if generator.form == Form::Both => {
                let argument = Node { offset, kind: NodeKind::Text(argument.to_owned()) };
                self.call(offset, generator, &argument, &[])
            }
            Some(generator) => {
                let found = format!("`%{name}` with an argument in a string");
                let expected = format!("`{}`", generator.example);
                Err(Mistake::new(offset, Kind::Form, found, expected)
                    .suggest(Some(generator.example)))
            }
            None => {
                let found = format!("`\"%{} …\"`", shortened(name));
                let expected = "a generator such as `\"%new orders\"`; `%%` is a literal `%`";
                let names =
                    GENERATORS.iter().filter(|one| one.form == Form::Both).map(|one| one.name);
                let suggestion = nearest(name, names).map(|name| format!("%{name} {argument}"));
                Err(Mistake::new(offset, Kind::UnknownName, found, expected).suggest(suggestion))
            }
        }
    }

    fn document(&mut self, node: &Node, entries: &[Entry]) -> Result<Value, Mistake> {
        if let Some(first) = entries.first()
            && let Some(name) = generator_name(&first.key)
        {
            let generator = known(first, name)?;
            if generator.form == Form::Word {
                let found = format!("`%{name}` with arguments");
                let expected = format!("`{}`", generator.example);
                return Err(Mistake::new(first.offset, Kind::Form, found, expected)
                    .suggest(Some(generator.example)));
            }
            return self.call(node.offset, generator, &first.value, &entries[1..]);
        }
        if let Some(constant) = constant::extended_json(node.offset, entries)? {
            return Ok(Value::Constant(constant));
        }
        let mut fields = Vec::with_capacity(entries.len());
        for entry in entries {
            if generator_name(&entry.key).is_some() {
                let found = format!("`{}` behind another key", shortened(&entry.key));
                let expected =
                    "a generator as the first key of its document; `%%` is a literal `%`";
                return Err(Mistake::new(entry.offset, Kind::Form, found, expected));
            }
            let key = entry.key.strip_prefix('%').unwrap_or(&entry.key);
            fields.push((key.to_owned(), self.value(&entry.value)?));
        }
        Ok(Value::document(fields))
    }

    fn call(
        &mut self,
        offset: usize,
        entry: &'static GeneratorEntry,
        argument: &Node,
        options: &[Entry],
    ) -> Result<Value, Mistake> {
        for option in options {
            if !entry.options.contains(&option.key.as_str()) {
                return Err(unknown_option(entry, option));
            }
        }
        let generator = (entry.read)(&mut Call {
            name: entry.name,
            example: entry.example,
            offset,
            argument,
            options,
            read_file: self.read_file,
            interpret: &mut |node| self.value(node),
        })?;
        Ok(self.mention(offset, generator))
    }

    /// Records a generator that depends on other parts of the workload.
    fn mention(&mut self, offset: usize, generator: Generator) -> Value {
        let mentioned = match &generator {
            Generator::From { collection, path, .. } => Some(Generator::From {
                collection: collection.clone(),
                path: path.clone(),
                law: None,
                at: None,
            }),
            Generator::New { .. } | Generator::Variable(_) | Generator::Reply { .. } => {
                Some(generator.clone())
            }
            _ => None,
        };
        let place = Place::of(self.text, offset);
        self.mentions.extend(mentioned.map(|generator| Mention { place, generator }));
        Value::Generated(Box::new(generator))
    }
}

fn known(entry: &Entry, name: &str) -> Result<&'static GeneratorEntry, Mistake> {
    generators::find(name).ok_or_else(|| {
        let found = format!("`%{}`", shortened(name));
        let mistake = Mistake::new(entry.offset, Kind::UnknownName, found, "a generator");
        let name = nearest(name, GENERATORS.iter().map(|generator| generator.name));
        mistake.suggest(name.map(|name| format!("%{name}")))
    })
}

fn unknown_option(entry: &GeneratorEntry, option: &Entry) -> Mistake {
    let found = format!("`{}` in `%{}`", shortened(&option.key), entry.name);
    let expected = match entry.options {
        [] => "no options".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "),
    };
    let suggestion = nearest(&option.key, entry.options.iter().copied());
    Mistake::new(option.offset, Kind::UnknownName, found, expected).suggest(suggestion)
}
