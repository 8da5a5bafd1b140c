//! Configuration of a responder, and its validation.

use super::parameters::is_reserved;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// Behaviour of a responder. `default()` answers everything immediately and correctly.
///
/// Only data commands (find, getMore, insert, update, delete) take service time and meet faults;
/// handshakes and other set-up commands are answered at once, except during a stall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Total size of the values of the canned document, spread over ten fields `field0` to `field9`. Its `_id` is the
    /// requested one.
    pub document_bytes: u32,
    /// Documents that `count` reports before the first insert or delete.
    pub documents: u64,
    /// Service time of commands.
    pub service: Service,
    /// Times without answers.
    pub stall: Option<Stall>,
    /// Commands with wrong answers. The first rule that applies to a command is used.
    pub faults: Vec<FaultRule>,
    /// Parameters of `getParameter` and `setParameter`. The service time is multiplied by 1 + Σ `weight` · d² + Σ
    /// `product` · d · d′, where d is log2(value / `best`) of a parameter, and d′ the same of the parameter in `with`.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Seed of service times and document bytes.
    pub seed: u64,
    /// Reported version, such as `8.2.0`; it determines the wire version.
    #[serde(default = "default_version")]
    pub version: String,
}

fn default_version() -> String {
    "7.0.0".to_owned()
}

/// Numbers of a version, at least two.
fn numbers(version: &str) -> Option<Vec<i32>> {
    let numbers: Option<Vec<i32>> = version.split('.').map(|part| part.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() >= 2)
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            document_bytes: 1000,
            documents: 0,
            service: Service::Null,
            stall: None,
            faults: Vec::new(),
            parameters: Vec::new(),
            seed: 1,
            version: default_version(),
        }
    }
}

/// Time of a command from its arrival to its reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Service {
    /// Answered as soon as it is read.
    Null,
    /// One server with one queue over all connections, first come, first served: the service of a
    /// command begins when it has arrived and its predecessor is done. Under Poisson arrivals this
    /// is M/D/1 or M/M/1. Arrival means that the event loop saw the command.
    SingleQueue { time: ServiceTime },
    /// As many servers as commands: each reply is delayed by its own service time (M/D/inf, M/M/inf).
    /// Replies to pipelined commands of one connection can overtake each other.
    Parallel { time: ServiceTime },
}

/// Distribution of the service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceTime {
    Fixed(Duration),
    /// Exponentially distributed.
    Exponential {
        mean: Duration,
    },
}

/// Times without answers: `[first + k * every, first + k * every + length)` after the start of the responder, for `k` =
/// 0, 1, …
///
/// Commands are still read and served during a stall; replies that become due are sent together at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Distance between the beginnings of two stalls.
    pub every: Duration,
    /// Length of a stall, below `every`.
    pub length: Duration,
    /// Beginning of the first stall, from the start of the responder.
    pub first: Duration,
}

impl Stall {
    /// Stalls of `length` that begin at `every`, 2 × `every`, … after the start.
    #[must_use]
    pub fn new(every: Duration, length: Duration) -> Self {
        Stall { every, length, first: every }
    }
}

/// A fault for every Nth data command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRule {
    /// N, at least 1, counted over all connections from 1 in the order of arrival.
    pub every: u64,
    pub kind: Fault,
}

/// Replaces a command's reply. The command does not change the document count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// `ok: 0` with this server error code.
    ErrorCode(i32),
    /// `ok: 1`, nothing written, and one write error with this code. Commands other than writes get the code as in
    /// [`ErrorCode`](Self::ErrorCode).
    WriteError(i32),
    /// The connection is closed without a reply.
    Drop,
    /// No reply, ever; later commands on the connection are answered.
    Hang,
    /// 64 bytes whose length field is negative; the connection stays open.
    Garbage,
    /// The first half of the reply, then the connection is closed.
    Truncate,
    /// The right reply, marked as the answer to another request (all bits of the number inverted).
    WrongResponseTo,
    /// No document: an empty batch for reads, `n: 0` for writes.
    NotFound,
}

/// A server parameter with a known effect. A new value applies to all commands that arrive later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Letters, digits, `_`, `.` and `-`; not the name of another command argument, such as `comment`.
    pub name: String,
    /// Initial value, later the current one. Integers above 2⁵³ are rounded.
    pub value: f64,
    /// Value with the shortest service time, above 0; all values must then be above 0. Without it, the parameter does
    /// not affect the service time.
    pub best: Option<f64>,
    /// Increase of the service time factor when the value is half or twice `best`; at least 0. Requires `best`.
    pub weight: Option<f64>,
    /// Name of another parameter on which the effect of this one depends. Both need a `best`, and must not depend on
    /// others. Requires `product`.
    #[serde(default)]
    pub with: Option<String>,
    /// Increase of the service time factor per product of both distances, in doublings from `best`. Its square must be
    /// at most four times the product of both weights: then no other values are better than the best ones.
    #[serde(default)]
    pub product: Option<f64>,
    /// While the value is above this limit, every data command gets the error code 1 (`InternalError`), before any
    /// fault rule; it counts as a fault of that kind.
    pub limit: Option<f64>,
}

impl Parameter {
    /// A parameter without any effect.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Parameter {
            name: name.into(),
            value,
            best: None,
            weight: None,
            with: None,
            product: None,
            limit: None,
        }
    }

    /// Whether the parameter can be set to this value.
    pub(super) fn allows(&self, value: f64) -> bool {
        value.is_finite() && (self.best.is_none() || value > 0.0)
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_plain) || is_reserved(name) {
            return Err(format!("`{name}` cannot be the name of a parameter"));
        }
        match (self.best, self.weight) {
            (None, None) => {}
            (Some(_), None) => return Err(format!("parameter `{name}`: `best` needs a `weight`")),
            (None, Some(_)) => return Err(format!("parameter `{name}`: `weight` needs a `best`")),
            (Some(best), Some(weight)) => {
                if !(best.is_finite() && best > 0.0) {
                    return Err(format!("parameter `{name}`: `best` must be above 0"));
                }
                if !(weight.is_finite() && weight >= 0.0) {
                    return Err(format!("parameter `{name}`: `weight` must not be negative"));
                }
            }
        }
        if self.with.is_some() != self.product.is_some() {
            return Err(format!("parameter `{name}`: `with` and `product` go together"));
        }
        if self.limit.is_some_and(|limit| !limit.is_finite()) {
            return Err(format!("parameter `{name}`: `limit` must be a number"));
        }
        if !self.allows(self.value) {
            let wanted = match self.best {
                Some(_) => "above 0, because it has a `best`",
                None => "a number",
            };
            return Err(format!("parameter `{name}`: its value must be {wanted}"));
        }
        Ok(())
    }
}

impl Behaviour {
    /// Rejects impossible configurations: rules that apply never or always by mistake, and contradictory parameters.
    ///
    /// # Errors
    /// `InvalidInput` with the reason.
    pub fn check(&self) -> io::Result<()> {
        let refuse = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        for (index, parameter) in self.parameters.iter().enumerate() {
            if let Err(message) = parameter.check() {
                return refuse(&message);
            }
            let name = &parameter.name;
            if self.parameters[..index].iter().any(|p| p.name == *name) {
                return refuse(&format!("parameter `{name}` is defined twice"));
            }
            if let Err(message) = self.check_product(parameter) {
                return refuse(&format!("parameter `{name}`: {message}"));
            }
        }
        if self.faults.iter().any(|rule| rule.every == 0) {
            return refuse("a fault rule needs `every` of at least 1");
        }
        if numbers(&self.version).is_none() {
            return refuse("`version` must be numbers with dots, such as `8.2.0`");
        }
        if self.document_bytes > 16_000_000 {
            return refuse("`document_bytes` is above 16000000, the limit of a document");
        }
        match self.stall {
            Some(stall) if stall.length >= stall.every => {
                refuse("the `length` of a stall must be below its `every`")
            }
            _ => Ok(()),
        }
    }

    /// The four numbers of the version.
    pub(super) fn version_numbers(&self) -> [i32; 4] {
        let mut all = [0; 4];
        for (place, number) in all.iter_mut().zip(numbers(&self.version).unwrap_or_default()) {
            *place = number;
        }
        all
    }

    /// Newest wire version of servers of that version.
    pub(super) fn wire_version(&self) -> i32 {
        const OF_7_0: i32 = 21;
        const OF_8_0: i32 = 25;
        match self.version_numbers() {
            [..8, ..] => OF_7_0,
            [8, minor, ..] => OF_8_0 + minor,
            // After 8.3.
            _ => OF_8_0 + 4,
        }
    }

    fn check_product(&self, parameter: &Parameter) -> Result<(), String> {
        let Some((with, product)) = parameter.with.as_ref().zip(parameter.product) else {
            return Ok(());
        };
        let is_other = |other: &&Parameter| other.name == *with && other.name != parameter.name;
        let other = self.parameters.iter().find(is_other);
        let weights = other.and_then(|other| parameter.weight.zip(other.weight));
        let Some((one, other)) = weights else {
            return Err(format!("it and `{with}`, a different parameter, need a `best`"));
        };
        let own = [&parameter.name, with];
        let ends = |of: &Parameter| {
            of.with.iter().any(|with| own.contains(&with)) || own.contains(&&of.name)
        };
        let pairs = self.parameters.iter().filter(|of| of.with.is_some() && ends(of));
        if pairs.count() > 1 {
            return Err(format!("it or `{with}` already depends on another parameter"));
        }
        // NaN is rejected as well.
        if product * product <= 4.0 * one * other {
            return Ok(());
        }
        Err("the square of `product` must be at most four times the product of both weights"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_possible() {
        Behaviour::default().check().unwrap();
    }

    #[test]
    fn impossible_behaviour_is_refused() {
        let second = Duration::from_secs(1);
        let impossible = [
            Behaviour {
                faults: vec![FaultRule { every: 0, kind: Fault::Drop }],
                ..Behaviour::default()
            },
            Behaviour { stall: Some(Stall::new(second, second)), ..Behaviour::default() },
            Behaviour {
                stall: Some(Stall::new(Duration::ZERO, Duration::ZERO)),
                ..Behaviour::default()
            },
            Behaviour { document_bytes: 16_000_001, ..Behaviour::default() },
        ];
        for behaviour in impossible {
            assert_eq!(behaviour.check().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    fn with(parameters: Vec<Parameter>) -> Behaviour {
        Behaviour { parameters, ..Behaviour::default() }
    }

    #[test]
    fn a_behaviour_without_parameters_is_read() {
        let mut stored = bson::serialize_to_document(&Behaviour::default()).unwrap();
        stored.remove("parameters").unwrap();
        let read: Behaviour = bson::deserialize_from_document(stored).unwrap();
        assert_eq!(read, Behaviour::default());
    }

    #[test]
    fn possible_parameters_are_accepted() {
        let plain = Parameter::new("a.b-c_0", 0.0);
        let free = Parameter {
            best: Some(0.5),
            weight: Some(0.0),
            limit: Some(-3.0),
            ..Parameter::new("free", 1e-9)
        };
        with(vec![plain, free]).check().unwrap();
    }

    #[test]
    fn contradictory_parameters_are_refused_by_name() {
        let optimum =
            |value, best, weight| Parameter { best, weight, ..Parameter::new("p", value) };
        let product = |with: &str, product| Parameter {
            with: Some(with.to_owned()),
            product,
            ..optimum(1.0, Some(1.0), Some(1.0))
        };
        let refused = [
            (optimum(1.0, Some(1.0), None), "`best` needs a `weight`"),
            (optimum(1.0, None, Some(1.0)), "`weight` needs a `best`"),
            (optimum(1.0, Some(0.0), Some(1.0)), "`best` must be above 0"),
            (optimum(1.0, Some(f64::NAN), Some(1.0)), "`best` must be"),
            (optimum(1.0, Some(1.0), Some(-0.1)), "`weight` must not be"),
            (optimum(0.0, Some(1.0), Some(1.0)), "value must"),
            (optimum(f64::INFINITY, None, None), "a number"),
            (Parameter { limit: Some(f64::NAN), ..Parameter::new("p", 1.0) }, "`limit`"),
            (product("q", None), "go together"),
            (product("q", Some(0.1)), "need a `best`"),
            (product("p", Some(0.1)), "need a `best`"),
        ];
        for (parameter, message) in refused {
            let error = with(vec![parameter]).check().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let error = error.to_string();
            assert!(error.starts_with("parameter `p`: "), "{error}");
            assert!(error.contains(message), "{error}");
        }
        let twice = with(vec![Parameter::new("p", 1.0), Parameter::new("p", 2.0)]);
        let error = twice.check().unwrap_err().to_string();
        assert!(error.contains("`p`") && error.contains("twice"), "{error}");
        for name in ["", "$db", "a b", "comment", "ok", "setParameter"] {
            let error = with(vec![Parameter::new(name, 1.0)]).check().unwrap_err();
            assert!(error.to_string().contains(&format!("`{name}` cannot be")), "{error}");
        }
    }
}
