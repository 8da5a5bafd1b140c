//! `dyno responder`: the responder with known behaviour as a process of its own. It prints where it
//! listens, and ends when its standard input ends or a signal comes, so that it never outlives
//! whoever started it.

use crate::args::ResponderArguments;
use crate::exit::Exit;
use crate::messages::print_data;
use dyno_engine::{Cancel, Error, Kind, OrFault};
use dyno_load::responder::{
    Behaviour, Fault, FaultRule, Listener, Service, ServiceTime, Stall, serve,
};
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// See the module.
pub(crate) fn responder(arguments: &ResponderArguments, cancel: &Cancel) -> Result<Exit, Error> {
    let port = arguments.port;
    let listener = Listener::tcp((Ipv4Addr::LOCALHOST, port).into())
        .or_fault(Kind::Environment, || {
            format!("cannot listen on port {port} of 127.0.0.1")
        })
        .with_hint("choose another `--port`, or 0 for a free one")?;
    print_data(&format!("listening on {}\n", listener.address()))?;
    let stop = cancel.phase_flag();
    let ended = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Nothing is expected on it: both its end and a failure mean that the other side is gone.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
    });
    match serve(listener, behaviour(arguments), &stop) {
        Ok(_) => Ok(Exit::Done),
        Err(error) => {
            let kind = match error.kind() {
                std::io::ErrorKind::InvalidInput => Kind::BadInput,
                _ => Kind::Environment,
            };
            Err(Error::from_cause(kind, error).context("cannot serve"))
        }
    }
}

fn behaviour(arguments: &ResponderArguments) -> Behaviour {
    let service = arguments
        .service_us
        .map(Duration::from_micros)
        .map_or(Service::Null, |time| Service::SingleQueue {
            time: if arguments.exponential {
                ServiceTime::Exponential { mean: time }
            } else {
                ServiceTime::Fixed(time)
            },
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
        ..Behaviour::default()
    }
}

/// Reads `KIND:N`.
pub(crate) fn fault_rule(text: &str) -> Result<FaultRule, String> {
    let (kind, every) = text.rsplit_once(':').ok_or("expected KIND:N")?;
    let every = every
        .parse()
        .ok()
        .filter(|every| *every > 0)
        .ok_or("N must be a number of at least 1")?;
    let (name, code) = kind
        .split_once('=')
        .map_or((kind, None), |(name, code)| (name, Some(code)));
    let code = code
        .map(|code| {
            code.parse::<i32>()
                .map_err(|_| format!("`{code}` is no server code"))
        })
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
        _ => return Err(format!("`{kind}` is no kind of fault")),
    };
    Ok(FaultRule { every, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_faults_are_read() {
        let rule = |every, kind| Ok(FaultRule { every, kind });
        assert_eq!(fault_rule("drop:100"), rule(100, Fault::Drop));
        assert_eq!(
            fault_rule("error=11600:7"),
            rule(7, Fault::ErrorCode(11600))
        );
        assert_eq!(
            fault_rule("write-error=-3:1"),
            rule(1, Fault::WriteError(-3))
        );
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        for text in [
            "drop",
            "drop:0",
            "drop:x",
            "error:5",
            "error=x:5",
            "drop=3:5",
            "fly:5",
            ":5",
        ] {
            assert!(fault_rule(text).is_err(), "{text}");
        }
    }
}
