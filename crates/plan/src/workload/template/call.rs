//! A generator as it is written, and readers of arguments that several generators share.

use super::error::{Mistake, TemplateErrorKind as Kind};
use super::laws::{self, Domain};
use super::model::{Generator, Law, MAX_DOCUMENT_BYTES, Size, Value};
use super::nodes::{ReadFile, integer, lines, number_in, ordered, probability};
use super::tree::{Entry, Node, NodeKind};

/// A generator with its arguments as they are written.
pub(super) struct Call<'a> {
    /// Without the `%`.
    pub(super) name: &'static str,
    pub(super) example: &'static str,
    /// Offset of the generator.
    pub(super) offset: usize,
    /// The value of the first key.
    pub(super) argument: &'a Node,
    /// The other keys.
    pub(super) options: &'a [Entry],
    pub(super) read_file: ReadFile<'a>,
    /// Interprets a node as a value.
    pub(super) interpret: &'a mut dyn FnMut(&Node) -> Result<Value, Mistake>,
}

impl<'a> Call<'a> {
    pub(super) fn option(&self, name: &str) -> Option<&'a Node> {
        self.options.iter().find(|option| option.key == name).map(|option| &option.value)
    }

    /// An option without a default.
    pub(super) fn required(&self, name: &str) -> Result<&'a Node, Mistake> {
        self.option(name).ok_or_else(|| self.missing(name))
    }

    pub(super) fn missing(&self, name: &str) -> Mistake {
        let found = format!("`%{}` without `{name}`", self.name);
        Mistake::new(self.offset, Kind::Missing, found, format!("`{name}`"))
            .suggest(Some(self.example))
    }

    /// The mistake that the argument has another form.
    pub(super) fn misfit(&self, expected: &str) -> Mistake {
        let found = format!("{} for `%{}`", self.argument.found(), self.name);
        Mistake::new(self.argument.offset, Kind::Form, found, expected).suggest(Some(self.example))
    }

    pub(super) fn lines(&self, node: &Node, file: &str) -> Result<Vec<String>, Mistake> {
        lines(self.read_file, node, file)
    }

    pub(super) fn value_of(&mut self, node: &Node) -> Result<Value, Mistake> {
        (self.interpret)(node)
    }

    pub(super) fn values_of(&mut self, nodes: &[Node]) -> Result<Vec<Value>, Mistake> {
        nodes.iter().map(|node| self.value_of(node)).collect()
    }

    /// The argument as a value.
    pub(super) fn value(&mut self) -> Result<Value, Mistake> {
        self.value_of(self.argument)
    }

    pub(super) fn optional_value(&mut self, option: &str) -> Result<Option<Value>, Mistake> {
        self.option(option).map(|node| self.value_of(node)).transpose()
    }

    /// Both ends of a range.
    pub(super) fn ends(&self) -> Result<(&'a Node, &'a Node), Mistake> {
        if let NodeKind::Array(nodes) = &self.argument.kind
            && let [min, max] = nodes.as_slice()
        {
            return Ok((min, max));
        }
        Err(self.misfit("two ends: `[min, max]`"))
    }

    pub(super) fn integer_ends(&self) -> Result<(i64, i64), Mistake> {
        let (first, second) = self.ends()?;
        let (min, max) = (integer(first, "an integer")?, integer(second, "an integer")?);
        ordered(second, min, max, min <= max)?;
        Ok((min, max))
    }

    /// The option `law`, by default uniform.
    pub(super) fn law(&self, domain: Domain) -> Result<Law, Mistake> {
        self.option("law").map_or(Ok(Law::Uniform), |node| laws::read(self.read_file, node, domain))
    }

    /// A size: `12`, `[1, 8]`, or `{%int: [1, 8], law: …}`. With `has_law`, its law may also be the option `law`.
    pub(super) fn size(&mut self, has_law: bool) -> Result<Size, Mistake> {
        const EXPECTED: &str = "a length: `12`, `[1, 8]` or `{%int: [1, 8]}`";
        let argument = self.argument;
        let (min, max, law) = match &argument.kind {
            NodeKind::Document(_) => match self.value()? {
                Value::Generated(generator) => match *generator {
                    Generator::Int { min, max, law } => (min, max, law),
                    _ => return Err(self.misfit(EXPECTED)),
                },
                _ => return Err(self.misfit(EXPECTED)),
            },
            NodeKind::Array(_) => {
                let (min, max) = self.integer_ends()?;
                (min, max, Law::Uniform)
            }
            _ => {
                let length = integer(argument, EXPECTED)?;
                (length, length, Law::Uniform)
            }
        };
        for end in [min, max] {
            number_in(argument, end as f64, 0.0, f64::from(MAX_DOCUMENT_BYTES), "length")?;
        }
        let law = match self.option("law").filter(|_| has_law) {
            Some(node) if law != Law::Uniform => {
                let found = "a second law of the length";
                return Err(Mistake::new(node.offset, Kind::Form, found, "one law"));
            }
            Some(_) => self.law(Domain::Integers(min, max))?,
            None => law,
        };
        Ok(Size { min: min as u32, max: max as u32, law })
    }

    pub(super) fn compressible(&self) -> Result<f64, Mistake> {
        self.option("compressible").map_or(Ok(0.0), probability)
    }
}
