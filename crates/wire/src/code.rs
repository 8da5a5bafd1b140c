//! Names of error codes. A refused command includes the name of its code; a failed single write has only the number.
//! Test servers also use these names in their replies.

/// Code of an insert with an existing key.
pub const DUPLICATE_KEY: i32 = 11_000;

/// Codes for operations on documents, their set-up and their retries. Source: `error_codes.yml` of MongoDB.
const NAMES: [(i32, &str); 58] = [
    (1, "InternalError"),
    (2, "BadValue"),
    (6, "HostUnreachable"),
    (7, "HostNotFound"),
    (8, "UnknownError"),
    (9, "FailedToParse"),
    (11, "UserNotFound"),
    (13, "Unauthorized"),
    (14, "TypeMismatch"),
    (18, "AuthenticationFailed"),
    (20, "IllegalOperation"),
    (26, "NamespaceNotFound"),
    (43, "CursorNotFound"),
    (48, "NamespaceExists"),
    (50, "MaxTimeMSExpired"),
    (59, "CommandNotFound"),
    (61, "ShardKeyNotFound"),
    (64, "WriteConcernFailed"),
    (66, "ImmutableField"),
    (67, "CannotCreateIndex"),
    (72, "InvalidOptions"),
    (73, "InvalidNamespace"),
    (76, "NoReplicationEnabled"),
    (79, "UnknownReplWriteConcern"),
    (85, "IndexOptionsConflict"),
    (86, "IndexKeySpecsConflict"),
    (89, "NetworkTimeout"),
    (91, "ShutdownInProgress"),
    (94, "NotYetInitialized"),
    (96, "OperationFailed"),
    (100, "UnsatisfiableWriteConcern"),
    (112, "WriteConflict"),
    (115, "CommandNotSupported"),
    (121, "DocumentValidationFailure"),
    (125, "CommandFailed"),
    (134, "ReadConcernMajorityNotAvailableYet"),
    (146, "ExceededMemoryLimit"),
    (166, "CommandNotSupportedOnView"),
    (175, "QueryPlanKilled"),
    (189, "PrimarySteppedDown"),
    (202, "NetworkInterfaceExceededTimeLimit"),
    (225, "TransactionTooOld"),
    (238, "NotImplemented"),
    (251, "NoSuchTransaction"),
    (262, "ExceededTimeLimit"),
    (279, "ClientDisconnect"),
    (462, "IngressRequestRateLimitExceeded"),
    (9001, "SocketException"),
    (10_107, "NotWritablePrimary"),
    (10_334, "BSONObjectTooLarge"),
    (DUPLICATE_KEY, "DuplicateKey"),
    (11_600, "InterruptedAtShutdown"),
    (11_601, "Interrupted"),
    (11_602, "InterruptedDueToReplStateChange"),
    (13_388, "StaleConfig"),
    (13_435, "NotPrimaryNoSecondaryOk"),
    (13_436, "NotPrimaryOrSecondary"),
    (14_031, "OutOfDiskSpace"),
];

/// The server's name of a code; `None` for codes without a name, and for codes outside the table.
pub fn name(code: i32) -> Option<&'static str> {
    let place = NAMES.binary_search_by_key(&code, |(code, _)| *code).ok()?;
    Some(NAMES[place].1)
}

/// The name as servers write it: codes without a name are named by their number.
pub fn name_or_location(code: i32) -> String {
    name(code).map_or_else(|| format!("Location{code}"), str::to_owned)
}

/// `code 13, Unauthorized`, with the name from the server or else from the table.
pub fn text(code: i32, given: &str) -> String {
    let name = Some(given).filter(|name| !name.is_empty());
    match name.or_else(|| self::name(code)) {
        Some(name) => format!("code {code}, {name}"),
        None => format!("code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_table_is_found() {
        for (code, expected) in NAMES {
            assert_eq!(name(code), Some(expected));
        }
        assert_eq!(name(0), None);
        assert_eq!(name_or_location(121), "DocumentValidationFailure");
        assert_eq!(name_or_location(51_091), "Location51091");
        assert_eq!(text(13, ""), "code 13, Unauthorized");
        assert_eq!(text(500, "TooManyOpenTransactions"), "code 500, TooManyOpenTransactions");
        assert_eq!(text(500, ""), "code 500");
    }
}
