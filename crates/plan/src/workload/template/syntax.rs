//! Reads the text of a template into a tree of nodes: relaxed Extended JSON as people type it in mongosh.

use super::constant;
use super::error::{Mistake, Place, TemplateErrorKind as Kind, shortened};
use super::lexical::{is_word, regular_expression_end};
use super::tree::{Entry, Node, NodeKind};
use crate::nearest::nearest;
use bson::Bson;
use std::collections::HashSet;

/// Documents and arrays inside of each other: the server's limit for documents
/// (<https://www.mongodb.com/docs/manual/reference/limits/>).
pub(super) const MAX_DEPTH: usize = 100;

/// Reads a whole text as a single value.
pub(super) fn read(text: &str) -> Result<Node, Mistake> {
    let mut reader = Reader { text, offset: 0, depth: 0 };
    reader.skip_blanks()?;
    let node = reader.value()?;
    reader.skip_blanks()?;
    if reader.peek().is_some() {
        return Err(reader.unexpected("the end of the template"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    offset: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves behind a character if it is next.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.rest().starts_with(wanted);
        if is_next {
            self.offset += wanted.len_utf8();
        }
        is_next
    }

    /// Moves behind all characters that fit, and returns them.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !fits(character)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// A word, a character, or the end of the template.
    fn found(&self) -> String {
        let Some(first) = self.peek() else { return "the end of the template".into() };
        let word_end =
            self.rest().find(|character| !is_word(character)).unwrap_or(self.rest().len());
        format!("`{}`", shortened(&self.rest()[..word_end.max(first.len_utf8())]))
    }

    fn unexpected(&self, expected: impl Into<String>) -> Mistake {
        Mistake::new(self.offset, Kind::Syntax, self.found(), expected)
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), Mistake> {
        loop {
            self.take_while(|character| character.is_whitespace() || character == '\u{feff}');
            if self.rest().starts_with("//") {
                self.take_while(|character| character != '\n');
            } else if let Some(comment) = self.rest().strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    let found = "`/*` without an end";
                    return Err(Mistake::new(
                        self.offset,
                        Kind::Syntax,
                        found,
                        "`*/` behind the comment",
                    ));
                };
                self.offset += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<Node, Mistake> {
        let offset = self.offset;
        let kind = match self.peek() {
            Some('{') => self.nested(Self::document)?,
            Some('[') => self.nested(Self::array)?,
            Some('"' | '\'') => NodeKind::Text(self.string()?),
            Some('/') => self.regular_expression()?,
            Some('0'..='9' | '-' | '+' | '.') => self.number()?,
            Some(character) if is_word(character) => self.word()?,
            Some('%') => return Err(self.bare_generator()),
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { offset, kind })
    }

    /// A generator without quotes or braces.
    fn bare_generator(&mut self) -> Mistake {
        let offset = self.offset;
        self.take('%');
        let name = self.take_while(is_word);
        let has_argument = self.rest().trim_start().starts_with(':');
        let found = format!("`%{}`", shortened(name));
        let expected =
            "a value: generators are strings or documents, such as `\"%now\"` or `{%int: [1, 5]}`";
        let suggestion =
            if has_argument { format!("{{%{name}: …}}") } else { format!("\"%{name}\"") };
        let suggestion = (!name.is_empty()).then_some(suggestion);
        Mistake::new(offset, Kind::Syntax, found, expected).suggest(suggestion)
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<NodeKind, Mistake>,
    ) -> Result<NodeKind, Mistake> {
        if self.depth == MAX_DEPTH {
            let found = format!("level {} of nested documents and arrays", MAX_DEPTH + 1);
            return Err(Mistake::new(
                self.offset,
                Kind::TooDeep,
                found,
                format!("at most {MAX_DEPTH} levels"),
            ));
        }
        self.depth += 1;
        let kind = read(self);
        self.depth -= 1;
        kind
    }

    fn document(&mut self) -> Result<NodeKind, Mistake> {
        let mut keys = HashSet::new();
        let entries = self.items('{', '}', |reader| {
            let offset = reader.offset;
            let key = reader.key()?;
            if !keys.insert(key.clone()) {
                let found = format!("the key `{}` again", shortened(&key));
                return Err(Mistake::new(offset, Kind::DuplicateKey, found, "each key once"));
            }
            reader.skip_blanks()?;
            if !reader.take(':') {
                let mistake =
                    reader.unexpected(format!("`:` behind the key `{}`", shortened(&key)));
                let dotted = (reader.peek() == Some('.')).then(|| reader.dotted_key(&key));
                return Err(mistake.suggest(dotted));
            }
            reader.skip_blanks()?;
            Ok(Entry { offset, key, value: reader.value()? })
        })?;
        Ok(NodeKind::Document(entries))
    }

    /// The quoted form of a key with a dot, which begins with `start`.
    fn dotted_key(&self, start: &str) -> String {
        let rest = self.rest();
        let end =
            rest.find(|character| !is_word(character) && character != '.').unwrap_or(rest.len());
        format!("\"{start}{}\"", &rest[..end])
    }

    fn array(&mut self) -> Result<NodeKind, Mistake> {
        self.items('[', ']', Self::value).map(NodeKind::Array)
    }

    /// Items between two brackets, separated by commas; a comma behind the last one is allowed.
    fn items<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, Mistake>,
    ) -> Result<Vec<T>, Mistake> {
        let start = self.offset;
        self.take(open);
        let mut items = Vec::new();
        loop {
            self.skip_blanks()?;
            if self.take(close) {
                return Ok(items);
            }
            if self.peek().is_none() {
                return Err(self.unclosed(start, open, close));
            }
            items.push(item(self)?);
            self.skip_blanks()?;
            if self.peek().is_none() {
                return Err(self.unclosed(start, open, close));
            }
            if !self.take(',') && self.peek() != Some(close) {
                return Err(self.unexpected(format!("`,` or `{close}`")));
            }
        }
    }

    fn unclosed(&self, start: usize, open: char, close: char) -> Mistake {
        let place = Place::of(self.text, start);
        let opened = format!("`{open}` in line {}, column {}", place.line, place.column);
        self.unexpected(format!("`{close}`, which closes the {opened}"))
    }

    fn key(&mut self) -> Result<String, Mistake> {
        let offset = self.offset;
        let key = match self.peek() {
            Some('"' | '\'') => self.string()?,
            _ => self.take_while(|character| is_word(character) || character == '%').to_owned(),
        };
        if key.contains('\0') {
            return Err(Mistake::new(
                offset,
                Kind::Syntax,
                "a key with the character NUL",
                "another key",
            ));
        }
        // An empty key needs quotes.
        if self.offset == offset {
            return Err(self.unexpected("a key or `}`"));
        }
        Ok(key)
    }

    /// A string in single or double quotes, with the escapes of JavaScript.
    fn string(&mut self) -> Result<String, Mistake> {
        let start = self.offset;
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        self.take(quote);
        let mut text = String::new();
        loop {
            text.push_str(
                self.take_while(|character| {
                    !matches!(character, '\\' | '\n') && character != quote
                }),
            );
            if self.take(quote) {
                return Ok(text);
            }
            if self.peek() != Some('\\') {
                let found = if self.peek().is_some() {
                    "a line break in a string"
                } else {
                    "a string without an end"
                };
                let expected = format!("`{quote}` behind the string, or `\\n` for a line break");
                return Err(Mistake::new(start, Kind::Syntax, found, expected));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, Mistake> {
        let start = self.offset;
        self.take('\\');
        let Some(character) = self.peek() else {
            return Err(self.unexpected("an escaped character"));
        };
        self.offset += character.len_utf8();
        Ok(match character {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' => '\0',
            '\\' | '/' | '"' | '\'' | '`' => character,
            'x' => char::from(self.hexadecimal(2, start)? as u8),
            'u' => self.unicode(start)?,
            other => {
                let found = format!("the escape `\\{other}`");
                let mistake = Mistake::new(
                    start,
                    Kind::Syntax,
                    found,
                    "an escape of JavaScript, such as `\\n`",
                );
                return Err(mistake.suggest(Some(format!("\\\\{other}"))));
            }
        })
    }

    /// The character of `\uXXXX`, `\u{X…}`, or of a pair of surrogates.
    fn unicode(&mut self, start: usize) -> Result<char, Mistake> {
        let invalid =
            || Mistake::new(start, Kind::Syntax, "an invalid escape", "a Unicode character");
        let code = if self.take('{') {
            let digits = self.take_while(|character| character.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).map_err(|_| invalid())?;
            if !self.take('}') {
                return Err(self.unexpected("`}`"));
            }
            code
        } else {
            self.hexadecimal(4, start)?
        };
        let is_high = (0xd800..0xdc00).contains(&code);
        if is_high && self.rest().starts_with("\\u") {
            self.offset += 2;
            let low = self.hexadecimal(4, start)?.wrapping_sub(0xdc00);
            let pair = (low < 0x400).then(|| 0x1_0000 + ((code - 0xd800) << 10) + low);
            return pair.and_then(char::from_u32).ok_or_else(invalid);
        }
        char::from_u32(code).ok_or_else(invalid)
    }

    fn hexadecimal(&mut self, digits: usize, start: usize) -> Result<u32, Mistake> {
        let number = self
            .rest()
            .get(..digits)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number =
            number.and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or_else(|| {
                Mistake::new(
                    start,
                    Kind::Syntax,
                    "an invalid escape",
                    format!("{digits} hexadecimal digits"),
                )
            })?;
        self.offset += digits;
        Ok(number)
    }

    fn number(&mut self) -> Result<NodeKind, Mistake> {
        let offset = self.offset;
        let mut previous = ' ';
        let rest = self.rest();
        let end = rest.find(|character: char| {
            let is_sign = matches!(character, '+' | '-') && matches!(previous, ' ' | 'e' | 'E');
            previous = character;
            !(is_sign || is_word(character) || character == '.')
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        self.offset += text.len();
        if text == "-Infinity" {
            return Ok(NodeKind::Constant(Bson::Double(f64::NEG_INFINITY)));
        }
        number(text).map(NodeKind::Constant).ok_or_else(|| {
            let mistake =
                Mistake::new(offset, Kind::Syntax, format!("`{}`", shortened(text)), "a number");
            let ends =
                text.split_once("..").map(|(from, to)| (from, to.trim_start_matches(['.', '='])));
            let ends = ends.filter(|(from, to)| number(from).is_some() && number(to).is_some());
            let digits = text.trim_start_matches(['-', '+']);
            let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            match ends {
                Some((from, to)) => mistake.suggest(Some(format!("[{from}, {to}]"))),
                None if is_whole => mistake.suggest(Some(format!("NumberDecimal(\"{text}\")"))),
                None => mistake,
            }
        })
    }

    /// A name of a value or of a constructor.
    fn word(&mut self) -> Result<NodeKind, Mistake> {
        let offset = self.offset;
        let mut word = self.take_while(is_word);
        if word == "new" {
            self.skip_blanks()?;
            if self.peek().is_some_and(is_word) {
                word = self.take_while(is_word);
            }
        }
        if let Some(constant) = constant::named(word) {
            return Ok(NodeKind::Constant(constant));
        }
        self.skip_blanks()?;
        if self.peek() == Some('(') {
            let arguments =
                self.nested(|reader| reader.items('(', ')', Self::value).map(NodeKind::Array))?;
            return constant::constructed(offset, word, arguments).map(NodeKind::Constant);
        }
        let mistake =
            Mistake::new(offset, Kind::Syntax, format!("`{}`", shortened(word)), "a value");
        let name = nearest(word, constant::NAMES);
        Err(mistake.suggest(Some(name.map_or_else(|| format!("\"{word}\""), str::to_owned))))
    }

    /// `/pattern/options`.
    fn regular_expression(&mut self) -> Result<NodeKind, Mistake> {
        let start = self.offset;
        self.take('/');
        let rest = self.rest();
        let Some(end) = regular_expression_end(rest) else {
            let found = "`/` without an end";
            return Err(Mistake::new(
                start,
                Kind::Syntax,
                found,
                "`/` behind the regular expression",
            ));
        };
        self.offset += end + 1;
        let options = self.take_while(|character| character.is_ascii_alphabetic());
        constant::regular_expression(start, &rest[..end], options).map(NodeKind::Constant)
    }
}

/// An integer of 32 bits if it fits, otherwise of 64 bits; a double if it has a point or an exponent.
fn number(text: &str) -> Option<Bson> {
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().filter(|double: &f64| double.is_finite()).map(Bson::Double);
    }
    let integer: i64 = text.parse().ok()?;
    Some(i32::try_from(integer).map_or(Bson::Int64(integer), Bson::Int32))
}
