//! libFuzzer for the target named by the environment variable `BENTPIPE_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use bentpipe_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("BENTPIPE_FUZZ_TARGET").unwrap_or_default();
    Target::from_name(&name)
        .unwrap_or_else(|| panic!("BENTPIPE_FUZZ_TARGET: found {name:?}, accepted: {:?}", Target::ALL))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    TARGET.run(bytes);
});
