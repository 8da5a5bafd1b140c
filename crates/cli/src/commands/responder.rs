//! `dyno responder`: runs the responder as its own process. It prints its address, and ends when its
//! standard input ends or a signal arrives, so that it never outlives its parent.

use crate::args::tools::ResponderArguments;
use crate::exit::Exit;
use crate::messages::print_data;
use dyno_engine::{Cancel, Error, Kind, OrFault};
use dyno_load::responder::{
    Behaviour, Fault, FaultRule, Parameter, Service, ServiceTime, Stall, TcpListener, serve,
};
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Executes `dyno responder`.
pub(crate) fn responder(arguments: &ResponderArguments, cancel: &Cancel) -> Result<Exit, Error> {
    let behaviour = behaviour(arguments);
    behaviour.check().map_err(cannot_serve)?;
    let port = arguments.port;
    let (listener, address) = TcpListener::bind((Ipv4Addr::LOCALHOST, port).into())
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .or_fault(Kind::Environment, || format!("cannot listen on port {port} of 127.0.0.1"))
        .with_hint("choose another `--port`, or 0 for a free port")?;
    print_data(&format!("listening on {address}\n"))?;
    let stop = cancel.phase_flag();
    let ended = Arc::clone(&stop);
    std::thread::spawn(move || {
        // No input is expected: both the end and an error mean that the parent is gone.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
    });
    serve(listener, behaviour, &stop).map_err(cannot_serve)?;
    Ok(Exit::Done)
}

fn cannot_serve(error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::InvalidInput => Kind::BadInput,
        _ => Kind::Environment,
    };
    Error::from_cause(kind, error).context("cannot serve")
}

fn behaviour(arguments: &ResponderArguments) -> Behaviour {
    let service = arguments.service_us.map(Duration::from_micros).map_or(Service::Null, |time| {
        Service::SingleQueue {
            time: if arguments.exponential {
                ServiceTime::Exponential { mean: time }
            } else {
                ServiceTime::Fixed(time)
            },
        }
    });
    let stall = arguments
        .stall_every
        .zip(arguments.stall_length)
        .map(|(every, length)| Stall::new(every.0, length.0));
    Behaviour {
        document_bytes: arguments.document_bytes,
        documents: arguments.documents,
        service,
        stall,
        faults: arguments.fault.clone(),
        parameters: arguments.parameter.clone(),
        version: arguments.server_version.clone(),
        ..Behaviour::default()
    }
}

/// Parses `KIND:N`.
pub(crate) fn fault_rule(text: &str) -> Result<FaultRule, String> {
    let (kind, every) = text.rsplit_once(':').ok_or("expected KIND:N")?;
    let every = every
        .parse()
        .ok()
        .filter(|every| *every > 0)
        .ok_or("N must be a whole number of at least 1")?;
    let (name, code) = kind.split_once('=').map_or((kind, None), |(name, code)| (name, Some(code)));
    let code = code
        .map(|code| code.parse::<i32>().map_err(|_| format!("`{code}` is not an error code")))
        .transpose()?;
    let kind = match (name, code) {
        ("error", Some(code)) => Fault::ErrorCode(code),
        ("write-error", Some(code)) => Fault::WriteError(code),
        ("drop", None) => Fault::Drop,
        ("hang", None) => Fault::Hang,
        ("garbage", None) => Fault::Garbage,
        ("truncate", None) => Fault::Truncate,
        ("wrong-response", None) => Fault::WrongResponseTo,
        ("not-found", None) => Fault::NotFound,
        _ => return Err(format!("unknown fault `{kind}`")),
    };
    Ok(FaultRule { every, kind })
}

/// Parses `NAME=VALUE[,best=V,weight=W[,with=NAME,product=W]][,limit=V]`.
pub(crate) fn parameter(text: &str) -> Result<Parameter, String> {
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        number
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| format!("`{text}` is not a number"))
    };
    let mut parts = text.split(',');
    let first = parts.next().and_then(|first| first.split_once('='));
    let (name, value) = first.ok_or("must start with NAME=VALUE")?;
    let mut parameter = Parameter::new(name.trim(), number(value)?);
    let mut given = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key = key.trim();
        if given.contains(&key) {
            return Err(format!("`{key}` is given twice"));
        }
        given.push(key);
        match key {
            "best" => parameter.best = Some(number(value)?),
            "weight" => parameter.weight = Some(number(value)?),
            "product" => parameter.product = Some(number(value)?),
            "limit" => parameter.limit = Some(number(value)?),
            "with" => parameter.with = Some(value.trim().to_owned()),
            key => {
                return Err(format!(
                    "unknown key `{key}`, expected `best`, `weight`, `with`, `product` or `limit`"
                ));
            }
        }
    }
    Ok(parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_rules_are_parsed() {
        let rule = |every, kind| Ok(FaultRule { every, kind });
        assert_eq!(fault_rule("drop:100"), rule(100, Fault::Drop));
        assert_eq!(fault_rule("error=11600:7"), rule(7, Fault::ErrorCode(11600)));
        assert_eq!(fault_rule("write-error=-3:1"), rule(1, Fault::WriteError(-3)));
    }

    #[test]
    fn invalid_fault_rules_are_refused() {
        for text in ["drop", "drop:0", "drop:x", "error:5", "error=x:5", "drop=3:5", "fly:5", ":5"]
        {
            assert!(fault_rule(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parameters_are_parsed() {
        assert_eq!(parameter("p=-2.5"), Ok(Parameter::new("p", -2.5)));
        let whole = Parameter {
            best: Some(64.0),
            weight: Some(0.5),
            limit: Some(1e3),
            ..Parameter::new("tickets", 128.0)
        };
        for text in [
            "tickets=128,best=64,weight=0.5,limit=1000",
            "tickets=128, limit=1e3, weight=.5, best=64.0",
        ] {
            assert_eq!(parameter(text), Ok(whole.clone()), "{text}");
        }
        let paired = parameter("a=1,best=2,weight=3,with=b,product=-4").unwrap();
        assert_eq!((paired.with.as_deref(), paired.product), (Some("b"), Some(-4.0)));
    }

    #[test]
    fn invalid_parameters_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "NAME=VALUE"),
            ("p", "NAME=VALUE"),
            ("p=", "``"),
            ("p=x", "`x`"),
            ("p=nan", "`nan`"),
            ("p=1,best", "``"),
            ("p=1,best=inf", "`inf`"),
            ("p=1,worst=3", "`worst`"),
            ("p=1,", "``"),
            ("p=1,limit=2,limit=3", "twice"),
            ("p=1,with=a, with=b", "twice"),
            ("p=1,product=a", "`a`"),
        ] {
            let refused = parameter(text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
