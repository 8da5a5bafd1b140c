//! What the system allows a controller.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lets this process open as many files as the system allows it at most: a controller writes one for each host, and the usual
/// limit is about a thousand. Returns the limit now; where it cannot be changed it stays as it was.
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
    fn the_limit_is_the_highest_that_is_allowed() {
        let hard = getrlimit(Resource::RLIMIT_NOFILE).unwrap().1;
        assert_eq!(raise_file_limit(), hard);
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, hard);
    }
}
