use super::*;
use bson::{Bson, DateTime};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

mod beside;
mod collections;
mod processors;
mod versions;

/// Received commands in order: database and command.
type Asked = Arc<Mutex<Vec<(String, Document)>>>;

/// A server that answers by a closure.
struct Scripted<F> {
    asked: Asked,
    answer: F,
}

impl<F> Ask for Scripted<F>
where
    F: FnMut(&str, &Document) -> Result<Document, AskError> + Send,
{
    fn ask(&mut self, database: &str, command: Document) -> Result<Document, AskError> {
        let name = command.keys().next().expect("a command has a name").clone();
        let answer = (self.answer)(&name, &command);
        let entry = (database.to_owned(), command);
        self.asked.lock().expect("no test panics in it").push(entry);
        answer
    }
}

fn refused(code: i32, message: &str) -> Result<Document, AskError> {
    Err(AskError::Refused { code, message: message.to_owned() })
}

fn lost() -> Result<Document, AskError> {
    Err(AskError::Lost { reason: "connection reset by peer".to_owned() })
}

fn subject() -> ServerSubject {
    ServerSubject {
        name: "s".to_owned(),
        address: "127.0.0.1:27017".to_owned(),
        database: "ycsb".to_owned(),
        collection: "usertable".to_owned(),
    }
}

/// A source on a server that answers by a closure, and the commands that it receives.
fn source<F>(answer: F) -> (impl Source, Asked)
where
    F: FnMut(&str, &Document) -> Result<Document, AskError> + Send + 'static,
{
    let asked = Asked::default();
    let scripted = Scripted { asked: Arc::clone(&asked), answer };
    (server(subject(), Box::new(scripted)), asked)
}

/// A source on a server with these successive answers to `serverStatus`, and no other answers.
fn source_of(answers: Vec<Document>) -> impl Source {
    let mut answers = answers.into_iter();
    source(move |name, _| match name {
        "serverStatus" => Ok(answers.next().expect("an answer for each reading")),
        _ => refused(59, "no such command"),
    })
    .0
}

/// Values by name, without the part before the first dot's instance.
fn values(reported: &Reported) -> BTreeMap<String, f64> {
    let named = |(id, value): &(dyno_record::metrics::MetricId, f64)| (id.to_string(), *value);
    reported.values.iter().map(named).collect()
}

#[track_caller]
fn assert_values(reported: &Reported, expected: &[(&str, f64)]) {
    let values = values(reported);
    for (name, value) in expected {
        let found = values.get(*name).copied();
        let is_it = found.is_some_and(|found| (found - value).abs() < 1e-9 * value.abs().max(1.0));
        assert!(is_it, "{name} is {found:?} and not {value}");
    }
}

fn missing<'t>(reported: &'t Reported, part: &str) -> Option<&'t Health> {
    let found = reported.missing.iter().find(|(known, _)| *known == part);
    found.map(|(_, health)| health)
}

fn date(ms: i64) -> Bson {
    Bson::DateTime(DateTime::from_millis(ms))
}
