//! Property files in the syntax of `java.util.Properties`, and properties from the command line.
//! The parent module interprets the properties.

use crate::error::PlanError;
use crate::problem::Problem;
use crate::text;
use std::fmt;
use std::path::Path;

/// Properties in the order of their first occurrence; a later value replaces an earlier one.
#[derive(Clone, Default)]
pub struct Properties {
    entries: Vec<Entry>,
    origins: Vec<String>,
    warnings: Vec<String>,
}

/// A property and its place.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: String,
    /// File, line and column of the name; absent for a property from the command line.
    pub(super) place: Option<Place>,
}

/// A place in a property file.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) origin: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Entry {
    /// A problem with this property, with the file in its text and the place in its fields.
    pub(super) fn problem(&self, message: impl fmt::Display) -> Problem {
        let problem = match &self.place {
            None => Problem::new(message.to_string()),
            Some(place) => Problem::new(format!("{message} in `{}`", place.origin))
                .at(place.line, place.column),
        };
        problem.about([&self.name])
    }
}

impl fmt::Debug for Properties {
    /// Prints only names: values may contain passwords.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.entries.iter().map(|entry| &entry.name);
        formatter.debug_set().entries(names).finish()
    }
}

impl Properties {
    /// Reads a property file in UTF-8, or else in ISO-8859-1, the only encoding that Java reads.
    ///
    /// # Errors
    /// [`PlanError::Unreadable`], and [`PlanError::Properties`] with the errors of
    /// [`Properties::parse`].
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let text = std::fs::read(path)
            .and_then(|bytes| text::utf8_or_latin1(&bytes))
            .map_err(PlanError::unreadable(path))?;
        Self::parse(&text, &path.display().to_string()).map_err(PlanError::Properties)
    }

    /// Parses a property file; `origin` names the file in messages.
    ///
    /// # Errors
    /// All malformed `\u` escapes, each with its place.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Vec<Problem>> {
        let mut properties = Properties { origins: vec![origin.to_owned()], ..Default::default() };
        let mut problems = Vec::new();
        for line in logical_lines(text) {
            let (name, value) = split(&line.text);
            let place = Place { origin: origin.to_owned(), line: line.number, column: line.column };
            match (unescape(name), unescape(value)) {
                (Some(name), Some(value)) => properties.put_from_file(Entry { name, value, place: Some(place) }),
                _ => problems.push(
                    Problem::new(format!("malformed `\\u` escape in `{origin}`"))
                        .at(place.line, place.column)
                        .with_hint("`\\u` is followed by four hexadecimal digits; write a backslash as `\\\\`"),
                ),
            }
        }
        if problems.is_empty() { Ok(properties) } else { Err(problems) }
    }

    /// Sets one property, like `-p name=value`. It overrides files.
    pub fn set(&mut self, name: &str, value: &str) {
        self.put(Entry { name: name.to_owned(), value: value.to_owned(), place: None });
    }

    /// Applies `later` to these properties, like a further `-P`.
    pub fn extend(&mut self, later: Properties) {
        self.origins.extend(later.origins);
        self.warnings.extend(later.warnings);
        for entry in later.entries {
            self.put(entry);
        }
    }

    /// The value of a property, if it was given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entry(name).map(|entry| entry.value.as_str())
    }

    /// Names of all given properties, in the order of their first occurrence.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The files that were read, in order.
    pub(super) fn origins(&self) -> &[String] {
        &self.origins
    }

    /// Warnings about the files, one sentence each.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn put_from_file(&mut self, entry: Entry) {
        if let (Some(earlier), Some(place)) = (self.entry(&entry.name), &entry.place)
            && earlier.value != entry.value
        {
            self.warnings.push(format!(
                "`{}` has more than one value in `{}`; the one in line {} is used",
                entry.name, place.origin, place.line
            ));
        }
        self.put(entry);
    }

    fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }
}

/// A line with a property, with its continuation lines joined and escapes unchanged.
struct LogicalLine {
    text: String,
    /// Number of its first line, from 1.
    number: usize,
    /// Column of its first character other than white space, from 1.
    column: usize,
}

/// White space as defined by Java: no line ends, nothing beyond ASCII.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

fn logical_lines(text: &str) -> Vec<LogicalLine> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = Vec::new();
    let mut natural = unified.split('\n').enumerate();
    while let Some((index, first)) = natural.next() {
        let trimmed = first.trim_start_matches(is_blank);
        if trimmed.is_empty() || trimmed.starts_with(['#', '!']) {
            continue;
        }
        let column = first[..first.len() - trimmed.len()].chars().count() + 1;
        let mut joined = trimmed.to_owned();
        while ends_with_continuation(&joined) {
            joined.pop();
            match natural.next() {
                Some((_, next)) => joined.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        lines.push(LogicalLine { text: joined, number: index + 1, column });
    }
    lines
}

/// Whether the last backslash is not itself escaped.
fn ends_with_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Name and value: the name ends at the first unescaped `=`, `:` or white space.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line
        .find(|c: char| {
            let ends = !escaped && (is_blank(c) || c == '=' || c == ':');
            escaped = c == '\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, value.trim_start_matches(is_blank))
}

/// Replaces escapes; `None` if a `\u` is malformed or half a character.
fn unescape(text: &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut buffer = [0; 2];
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let plain = match c {
            '\\' => match characters.next() {
                None => break,
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                    units.push(u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
            },
            other => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut buffer));
    }
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let properties = Properties::parse(text, "file").expect(text);
        properties.entries.into_iter().map(|entry| (entry.name, entry.value)).collect()
    }

    fn pair(text: &str) -> (String, String) {
        let mut pairs = pairs(text);
        assert_eq!(pairs.len(), 1, "{text}");
        pairs.remove(0)
    }

    #[test]
    fn names_end_at_equals_colon_or_white_space() {
        for text in ["a=b", "a:b", "a b", "a = b", "  a\t:  b", "a\u{c}=b", "\u{feff}a=b"] {
            assert_eq!(pair(text), ("a".into(), "b".into()), "{text:?}");
        }
        assert_eq!(pair("a==b"), ("a".into(), "=b".into()));
        assert_eq!(pair("a"), ("a".into(), String::new()));
        assert_eq!(pair("a="), ("a".into(), String::new()));
        assert_eq!(pair("a=b  "), ("a".into(), "b  ".into()));
        assert_eq!(
            pair("mongodb.url=mongodb://h:1/d?w=1"),
            ("mongodb.url".into(), "mongodb://h:1/d?w=1".into())
        );
    }

    #[test]
    fn comments_and_empty_lines_contain_no_property() {
        assert_eq!(pairs("# a=b\n  ! c=d\n\n \t \r\n#e=f \\\ng=h"), [("g".into(), "h".into())]);
        assert_eq!(pair("a=b # no comment"), ("a".into(), "b # no comment".into()));
    }

    #[test]
    fn every_line_end_of_java_ends_a_line() {
        let expected = [("a".into(), "1".into()), ("b".into(), "2".into())];
        for text in ["a=1\nb=2", "a=1\rb=2", "a=1\r\nb=2\r\n"] {
            assert_eq!(pairs(text), expected, "{text:?}");
        }
    }

    #[test]
    fn backslash_joins_lines_unless_it_is_escaped() {
        assert_eq!(pair("a=1,\\\n   2,\\\r\n\t3"), ("a".into(), "1,2,3".into()));
        assert_eq!(pairs("a=1\\\\\nb=2"), [("a".into(), "1\\".into()), ("b".into(), "2".into())]);
        assert_eq!(pair("a=1\\"), ("a".into(), "1".into()));
        assert_eq!(pair("a=1\\\n#2"), ("a".into(), "1#2".into()));
    }

    #[test]
    fn escapes_are_replaced() {
        assert_eq!(pair("a\\ b\\=c\\:d=e"), ("a b=c:d".into(), "e".into()));
        assert_eq!(pair("a=\\t\\n\\r\\f\\\\\\q\\\""), ("a".into(), "\t\n\r\u{c}\\q\"".into()));
        assert_eq!(pair("a=\\u0041\\u00e4\\uD83D\\uDE00"), ("a".into(), "Aä😀".into()));
    }

    #[test]
    fn files_in_latin1_and_in_utf8_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for text in [&b"# Gr\xf6\xdfe\nlabel=\xfcber\n"[..], "# Größe\nlabel=über".as_bytes()] {
            std::fs::write(&path, text).unwrap();
            let properties = Properties::read(&path).unwrap();
            assert_eq!(properties.get("label"), Some("über"));
        }
    }

    #[test]
    fn all_malformed_escapes_are_reported_with_their_places() {
        let problems =
            Properties::parse("a=1\n  b=\\u12\nc=\\u00zz\nd=\\u+123\ne=\\uD800", "f").unwrap_err();
        let places: Vec<_> =
            problems.iter().map(|problem| (problem.line, problem.column)).collect();
        let place = |line, column| (Some(line), Some(column));
        assert_eq!(places, [place(2, 3), place(3, 1), place(4, 1), place(5, 1)]);
    }

    #[test]
    fn later_files_and_single_properties_replace_earlier_values() {
        let mut properties = Properties::parse("a=1\nb=1", "first").unwrap();
        properties.extend(Properties::parse("b=2\nc=2", "second").unwrap());
        properties.set("c", "3");
        let values: Vec<_> =
            ["a", "b", "c", "d"].into_iter().map(|name| properties.get(name)).collect();
        assert_eq!(values, [Some("1"), Some("2"), Some("3"), None]);
        assert_eq!(properties.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(properties.warnings().is_empty());
    }

    #[test]
    fn two_values_in_one_file_give_a_warning() {
        let properties = Properties::parse("a=1\na=1\na=2", "file").unwrap();
        assert_eq!(properties.get("a"), Some("2"));
        assert_eq!(properties.warnings().len(), 1);
        assert!(properties.warnings()[0].contains("line 3"));
    }

    #[test]
    fn values_are_not_in_the_debug_output() {
        let mut properties = Properties::default();
        properties.set("mongodb.url", "mongodb://u:secret@h");
        assert_eq!(format!("{properties:?}"), "{\"mongodb.url\"}");
    }

    /// Escapes like `java.util.Properties.store`.
    fn escape(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
    }

    proptest! {
        #[test]
        fn any_text_survives_escaping(name in ".{1,8}", value in ".{0,16}") {
            let text = format!("{} = {}", escape(&name), escape(&value));
            prop_assert_eq!(pair(&text), (name, value));
        }

        #[test]
        fn any_file_is_read_or_refused(text in "[ab=: \\\\u0-9\n\r\t#!]{0,40}") {
            let _ = Properties::parse(&text, "file");
        }
    }
}
