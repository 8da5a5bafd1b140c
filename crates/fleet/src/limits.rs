//! System limits of a controller.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit of open files to the system's maximum, and returns the limit. A controller writes one file for each
/// host, and the usual limit is about a thousand. If it cannot be changed, it stays.
pub fn raise_file_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_limit_is_raised_to_the_maximum() {
        let hard = getrlimit(Resource::RLIMIT_NOFILE).unwrap().1;
        assert_eq!(raise_file_limit(), hard);
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, hard);
    }
}
