//! Table of the commands. Unsupported fields are omitted, so that a client that sends one gets an error.

use super::Field;
use super::Kind::{Any, Boolean, List, Number, Object, Text, Whole};

/// Fields that every command may have.
pub(super) const GENERIC: &[Field] = &[
    ("$db", Text, true),
    ("maxTimeMS", Whole, false),
    ("comment", Any, false),
    ("writeConcern", Object, false),
    ("readConcern", Object, false),
    // Sent by drivers.
    ("lsid", Object, false),
    ("txnNumber", Whole, false),
    ("$clusterTime", Object, false),
    ("$readPreference", Object, false),
];

/// One update and one delete.
pub(super) const UPDATE: &[Field] = &[
    ("q", Object, true),
    ("u", Object, true),
    ("upsert", Boolean, false),
    ("multi", Boolean, false),
];
pub(super) const DELETE: &[Field] = &[("q", Object, true), ("limit", Whole, true)];

/// Commands with the type of their first field and the other fields.
pub(super) const COMMANDS: &[(&str, super::Kind, &[Field])] = &[
    ("addShard", Text, &[("name", Text, false)]),
    ("aggregate", Text, &[("pipeline", List, true), ("cursor", Object, true)]),
    ("balancerStart", Number, &[]),
    ("balancerStop", Number, &[]),
    ("buildInfo", Number, &[]),
    ("collStats", Text, &[("scale", Whole, false)]),
    ("count", Text, &[("query", Object, false)]),
    ("create", Text, &[]),
    (
        "createUser",
        Text,
        &[
            ("pwd", Text, true),
            ("roles", List, true),
            ("customData", Object, false),
            ("authenticationRestrictions", List, false),
            ("mechanisms", List, false),
            ("digestPassword", Boolean, false),
        ],
    ),
    ("delete", Text, &[("deletes", List, true), ("ordered", Boolean, false)]),
    ("createIndexes", Text, &[("indexes", List, true), ("commitQuorum", Any, false)]),
    ("drop", Text, &[]),
    ("dropIndexes", Text, &[("index", Any, true)]),
    ("enableSharding", Text, &[("primaryShard", Text, false)]),
    ("endSessions", List, &[]),
    (
        "find",
        Text,
        &[
            ("filter", Object, false),
            ("sort", Object, false),
            ("projection", Object, false),
            ("hint", Any, false),
            ("limit", Whole, false),
            ("batchSize", Whole, false),
            ("singleBatch", Boolean, false),
            ("noCursorTimeout", Boolean, false),
        ],
    ),
    ("fsync", Number, &[]),
    ("getCmdLineOpts", Number, &[]),
    ("getLog", Text, &[]),
    ("getMore", Whole, &[("collection", Text, true), ("batchSize", Whole, false)]),
    (
        "getParameter",
        Any,
        &[
            ("diagnosticDataCollectionEnabled", Number, false),
            ("diagnosticDataCollectionPeriodMillis", Number, false),
            ("journalCommitInterval", Number, false),
            ("syncdelay", Number, false),
        ],
    ),
    ("hello", Number, HELLO),
    ("insert", Text, &[("documents", List, true), ("ordered", Boolean, false)]),
    ("isMaster", Number, HELLO),
    ("ismaster", Number, HELLO),
    ("killCursors", Text, &[("cursors", List, true)]),
    (
        "listCollections",
        Number,
        &[("filter", Object, false), ("nameOnly", Boolean, false), ("cursor", Object, false)],
    ),
    (
        "listDatabases",
        Number,
        &[("authorizedDatabases", Boolean, false), ("nameOnly", Boolean, false)],
    ),
    ("listIndexes", Text, &[("cursor", Object, false)]),
    (
        "moveChunk",
        Text,
        &[
            ("find", Object, false),
            ("bounds", List, false),
            ("to", Text, true),
            ("forceJumbo", Boolean, false),
        ],
    ),
    ("ping", Number, &[]),
    ("profile", Whole, &[]),
    ("replSetGetConfig", Number, &[]),
    ("replSetGetStatus", Number, &[]),
    ("replSetInitiate", Object, &[]),
    (
        "serverStatus",
        Number,
        // Sections to be excluded.
        &[
            ("locks", Whole, false),
            // Parts of this section can also be selected.
            ("metrics", Any, false),
            ("repl", Whole, false),
            ("tcmalloc", Whole, false),
        ],
    ),
    (
        "shardCollection",
        Text,
        &[
            ("key", Object, true),
            ("unique", Boolean, false),
            ("numInitialChunks", Whole, false),
            ("presplitHashedZones", Boolean, false),
            ("collation", Object, false),
            ("timeseries", Object, false),
        ],
    ),
    ("split", Text, &[("find", Object, false), ("middle", Object, false), ("bounds", List, false)]),
    ("update", Text, &[("updates", List, true), ("ordered", Boolean, false)]),
    // Between fake servers.
    ("fakeMongodAuthenticate", Text, &[("pwd", Text, true)]),
    ("fakeMongodForward", Object, &[]),
    ("fakeMongodJoin", Object, &[]),
    ("fakeMongodState", Number, &[]),
];

/// Source: MongoDB manual, `hello`, and the drivers' handshake specification.
const HELLO: &[Field] = &[
    // A newer driver field with a value that servers ignore.
    ("backpressure", Any, false),
    ("client", Object, false),
    ("compression", List, false),
    ("helloOk", Boolean, false),
    ("loadBalanced", Boolean, false),
    ("saslSupportedMechs", Text, false),
];
