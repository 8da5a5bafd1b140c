//! Tests for both the embedded server and a real `mongod` run with both.

use dyno_testkit::{Skip, TestServer};

/// Starts a server.
pub(crate) type Start = fn() -> Result<TestServer, Skip>;

/// Makes two tests of each function that takes a [`Start`].
macro_rules! of_both {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[test]
            fn $test() {
                super::$test(dyno_testkit::embedded);
            })+
        }

        mod mongod {
            $(#[test]
            fn $test() {
                super::$test(dyno_testkit::mongod);
            })+
        }
    };
}
