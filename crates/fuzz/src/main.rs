//! The fuzzer. `DYNO_FUZZ_TARGET` selects the target. See scripts/fuzz.sh.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<dyno_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("DYNO_FUZZ_TARGET").unwrap_or_default();
    let target = dyno_fuzz::TARGETS.iter().find(|one| one.0 == name);
    target.expect("DYNO_FUZZ_TARGET names a target").1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
