//! Connection string options with both backends: hints suggest only working alternatives.

use dyno_load::backend::driver::DriverTarget;
use dyno_load::connect::{ConnectError, Connector};
use dyno_load::error::LoadError;
use dyno_plan::uri::{self, Target};

/// Values, at least one of which each option accepts.
const VALUES: [&str; 22] = [
    "true",
    "false",
    "0",
    "1",
    "2",
    "90",
    "500",
    "majority",
    "secondary",
    "primary",
    "local",
    "zlib",
    "dc:ny",
    "auto",
    "poll",
    "standard",
    "javaLegacy",
    "x",
    "SCRAM-SHA-256",
    "PLAIN",
    "-1",
    "",
];

/// Options that others require.
const COMPANIONS: [&str; 2] = ["", "readPreference=nearest&"];

fn wire(target: &Target) -> Result<(), ConnectError> {
    Connector::new(target, None).map(drop)
}

#[test]
fn hints_about_options_work_with_both_backends() {
    let mut hinted = 0;
    for name in uri::option_names() {
        for (value, companion) in
            VALUES.iter().flat_map(|value| COMPANIONS.map(|companion| (value, companion)))
        {
            // Their values are names of files or services.
            if companion.starts_with(name) || name.ends_with("File") || name.starts_with("srv") {
                continue;
            }
            let text = format!("mongodb://127.0.0.1/?{companion}{name}={value}");
            let target = match uri::parse(&text) {
                Ok((target, _)) => target,
                Err(error) => {
                    let hint = error.hint().unwrap_or_default();
                    assert!(!hint.contains("--backend"), "{text}: {hint}");
                    continue;
                }
            };
            let alone = uri::parse(&format!("mongodb://127.0.0.1/?{name}={value}"));
            let alone = alone.map(|(target, _)| DriverTarget::check(&target, None));
            if !companion.is_empty() && !matches!(alone, Ok(Ok(()))) {
                // A hint about the companion says nothing about an option that the driver refuses.
                continue;
            }
            let (by_wire, by_driver) = (wire(&target), DriverTarget::check(&target, None));
            if let Err(error) = &by_wire {
                let hint = error.hint().unwrap_or_default();
                hinted += usize::from(hint.contains("--backend driver"));
                assert!(
                    !hint.contains("--backend driver") || by_driver.is_ok(),
                    "{text}: {hint}: {by_driver:?}"
                );
            }
            if let Err(error) = &by_driver {
                // Its hint is the other backend.
                assert!(matches!(error, LoadError::DriverOption(_)), "{text}: {error}");
                let refused = matches!(by_wire, Err(ConnectError::Unsupported { .. }));
                assert!(!refused, "{text}: {error}: {by_wire:?}");
            }
        }
    }
    assert!(hinted > 5, "{hinted}");
}
