use super::*;

fn target(text: &str) -> Target {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).0
}

fn error(text: &str) -> UriError {
    parse(text).map(|_| ()).expect_err(text)
}

fn tcp(host: &str, port: u16) -> Host {
    Host::Tcp { host: host.into(), port }
}

#[test]
fn host_alone_is_enough() {
    let parsed = target("mongodb://localhost");
    assert_eq!(parsed.hosts, [tcp("localhost", 27017)]);
    assert_eq!(parsed.database, None);
    assert!(!parsed.options.tls);
    assert!(parsed.unsupported_by_wire.is_empty());
}

#[test]
fn hosts_may_be_names_addresses_and_sockets() {
    let parsed =
        target("mongodb://a.example,[::1]:27018,%2Ftmp%2Fmongodb-27017.sock,10.0.0.1:1/db?");
    assert_eq!(
        parsed.hosts,
        [
            tcp("a.example", 27017),
            tcp("::1", 27018),
            Host::Unix("/tmp/mongodb-27017.sock".into()),
            tcp("10.0.0.1", 1),
        ]
    );
    assert_eq!(parsed.database.as_deref(), Some("db"));
}

#[test]
fn bad_hosts_are_named() {
    for text in [
        "mongodb://",
        "mongodb:///db",
        "mongodb://a,,b",
        "mongodb://a:0",
        "mongodb://a:65536",
        "mongodb://a:+1",
        "mongodb://a:",
        "mongodb://:27017",
        "mongodb://::1",
        "mongodb://[::1",
        "mongodb://[nonsense]",
        "mongodb://[::1]27017",
        "mongodb://%2Ftmp%2Fplain",
        "mongodb://a b",
    ] {
        let is_host = matches!(error(text), UriError::Host { .. } | UriError::EmptyHost);
        assert!(is_host, "{text}");
    }
}

#[test]
fn socket_path_must_be_encoded() {
    for text in ["mongodb:///tmp/x.sock", "mongodb:///tmp/X.SOCK?w=1"] {
        assert_eq!(error(text), UriError::Socket, "{text}");
    }
}

#[test]
fn other_schemes_are_refused() {
    for text in ["", "localhost", "http://localhost", "mongodb:/localhost"] {
        assert_eq!(error(text), UriError::Scheme, "{text}");
    }
}

#[test]
fn credentials_are_decoded_and_kept_separate() {
    let (target, credentials) =
        parse("mongodb://a%40b:p%3Aw%2F%25@host/db?authMechanism=SCRAM-SHA-256").unwrap();
    let credentials = credentials.unwrap();
    assert_eq!(credentials.username, "a@b");
    assert_eq!(credentials.password(), "p:w/%");
    assert_eq!(credentials.source.as_deref(), Some("db"));
    assert_eq!(credentials.mechanism, Some(Mechanism::ScramSha256));
    assert_eq!(target.to_string(), "mongodb://host:27017/db");
    assert!(!format!("{credentials:?}").contains("p:w"));
}

#[test]
fn authsource_overrides_the_database_and_admin() {
    let source = |text: &str| parse(text).unwrap().1.unwrap().source;
    assert_eq!(source("mongodb://u:p@h/db?authSource=users").as_deref(), Some("users"));
    assert_eq!(source("mongodb://u:p@h/db").as_deref(), Some("db"));
    assert_eq!(source("mongodb://u:p@h"), None);
}

#[test]
fn errors_never_contain_the_password() {
    for text in [
        "mongodb://user:sec/ret@host/db",
        "mongodb://user:sec?ret@host/db",
        "mongodb://user:sec?ret=x@host/db",
        "mongodb://user:sec#ret@host/db",
        "mongodb://user:sec:ret@host/db",
        "mongodb://user:sec@ret@host/db",
        "mongodb://user:sec%ret@host/db",
        "mongodb://user:sec[ret@host/db",
        "mongodb://user:12/secret@host/db",
        "mongodb://user:se@c/ret@host/db",
        "mongodb://user:secret@host:bad/db",
        "mongodb://user:secret@host/db?nonsense=1",
        "mongodb://user:secret@host/db?journal=maybe",
        "mongodb+srv://user:secret@host:1/db",
        "mongo://user:secret@host",
        "mongodb://:secret@host",
        "mongodb://[user:secret",
        "mongodb://[user:secret]",
        "mongodb://[user:secret]:1",
        "mongodb+srv://user:secret",
        "mongodb+srv://[user:secret",
        "mongodb://host/?tlsCertificateKeyFilePassword=secret&tlsCertificateKeyFilePassword=secret2",
    ] {
        let error = error(text);
        for shown in [error.to_string(), format!("{error:?}"), format!("{:?}", error.hint())] {
            for part in ["sec", "ret@"] {
                assert!(!shown.contains(part), "{text} gives {shown}");
            }
        }
    }
}

#[test]
fn secret_options_reach_only_the_driver() {
    let parsed =
        target("mongodb://h/?tlsCertificateKeyFilePassword=hush&tlsCertificateKeyFile=c.pem");
    assert!(parsed.to_driver_uri().contains("hush"));
    assert!(!parsed.to_string().contains("hush"));
    assert!(!format!("{parsed:?}").contains("hush"));
    assert_eq!(parsed.certificate_key_password(), Some("hush"));
    let proxied = error("mongodb://h/?proxyPassword=hush");
    let UriError::UnsupportedOption { name, value, .. } = &proxied else { panic!("{proxied:?}") };
    assert_eq!((*name, value.as_str()), ("proxyPassword", "***"));
}

#[test]
fn options_are_interpreted_in_any_case() {
    let parsed = target(
        "mongodb://h/?REPLICASET=rs0&w=2&j=true&wtimeoutMS=500&readConcernLevel=majority\
         &compressors=zstd,snappy&zlibCompressionLevel=-1&connectTimeoutMS=0&socketTimeoutMS=7\
         &serverSelectionTimeoutMS=9&appName=my%20app&maxPoolSize=5&retryReads=false&RETRYWRITES=true&directConnection=true",
    );
    let options = &parsed.options;
    assert_eq!(options.replica_set.as_deref(), Some("rs0"));
    assert_eq!(
        options.write_concern,
        WriteConcern { w: Some(W::Number(2)), journal: Some(true), wtimeout_ms: Some(500) }
    );
    assert_eq!(options.read_concern_level.as_deref(), Some("majority"));
    assert_eq!(options.compressors, [Compressor::Zstd, Compressor::Snappy]);
    assert_eq!(options.zlib_compression_level, Some(-1));
    assert_eq!(options.connect_timeout_ms, Some(0));
    assert_eq!(options.socket_timeout_ms, Some(7));
    assert_eq!(options.server_selection_timeout_ms, Some(9));
    assert_eq!(options.app_name.as_deref(), Some("my app"));
    assert_eq!(options.max_pool_size, Some(5));
    assert_eq!(options.retry_reads, Some(false));
    assert_eq!(options.retry_writes, Some(true));
    assert_eq!(options.direct_connection, Some(true));
    assert!(parsed.unsupported_by_wire.is_empty());
}

#[test]
fn wrong_values_name_the_option_and_the_valid_values() {
    for text in [
        "journal=yes",
        "connectTimeoutMS=1s",
        "maxPoolSize=-1",
        "zlibCompressionLevel=10",
        "compressors=lz4",
        "readConcernLevel=best",
        "readPreference=first",
        "serverSelectionTimeoutMS=0",
        "heartbeatFrequencyMS=499",
        "maxStalenessSeconds=89",
        "maxConnecting=0",
        "uuidRepresentation=legacy",
        "readPreferenceTags=ny",
        "maxAdaptiveRetries=x",
        "w=-1",
        "authMechanism=scram",
        "replicaSet=",
    ] {
        let error = error(&format!("mongodb://h/?{text}"));
        let name = text.split('=').next().unwrap();
        assert!(
            matches!(&error, UriError::OptionValue { name: found, .. } if *found == name),
            "{text} gives {error}"
        );
    }
}

#[test]
fn unknown_option_is_an_error_with_the_nearest_name() {
    let error = error("mongodb://h/?maxPoolSzie=5");
    let unknown =
        UriError::UnknownOption { name: "maxPoolSzie".into(), nearest: Some("maxPoolSize".into()) };
    assert_eq!(error, unknown);
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("`maxPoolSize`"), "{hint}");
}

#[test]
fn options_unsupported_by_the_wire_backend_are_listed() {
    for text in ["readPreference=secondary", "loadBalanced=true", "w=0"] {
        let parsed = target(&format!("mongodb://h/?{text}"));
        let (name, value) = text.split_once('=').unwrap();
        assert_eq!(parsed.unsupported_by_wire.len(), 1, "{text}");
        assert_eq!(parsed.unsupported_by_wire[0].name, name);
        assert_eq!(parsed.unsupported_by_wire[0].value, value);
        assert!(parsed.to_driver_uri().contains(text), "{text}");
    }
    let members = "readPreference=nearest&readPreferenceTags=dc:ny&maxStalenessSeconds=90";
    let parsed = target(&format!("mongodb://h/?{members}"));
    assert_eq!(parsed.unsupported_by_wire.len(), 3);
    assert!(parsed.to_driver_uri().contains(members));
}

#[test]
fn options_that_neither_backend_supports_are_refused() {
    for text in [
        "proxyHost=p",
        "timeoutMS=100",
        "tlsDisableOCSPEndpointCheck=false",
        "tlsDisableCertificateRevocationCheck=false",
        "serverSelectionTryOnce=true",
        "waitQueueMultiple=2",
        "maxLifeTimeMS=9",
        "safe=true",
        "authMechanismProperties=SERVICE_NAME:x",
    ] {
        let error = error(&format!("mongodb://h/?{text}"));
        let (expected, _) = text.split_once('=').unwrap();
        let UriError::UnsupportedOption { name, hint, .. } = &error else {
            panic!("{text}: {error:?}")
        };
        assert_eq!(*name, expected);
        assert!(!hint.contains("--backend"), "{text}");
    }
}

#[test]
fn default_values_reach_neither_backend() {
    for text in [
        "uuidRepresentation=standard",
        "uuidRepresentation=csharpLegacy",
        "tlsDisableOCSPEndpointCheck=true",
        "tlsDisableCertificateRevocationCheck=true",
        "tlsAllowInvalidHostnames=false",
        "serverSelectionTryOnce=false",
        "serverMonitoringMode=auto",
        "enableOverloadRetargeting=false",
        "maxIdleTimeMS=0",
        "minPoolSize=0",
        "maxPoolSize=0",
    ] {
        let parsed = target(&format!("mongodb://h/?{text}"));
        assert!(parsed.unsupported_by_wire.is_empty(), "{text}");
        let name = text.split('=').next().unwrap();
        assert!(!parsed.to_driver_uri().contains(name), "{text}");
    }
}

#[test]
fn wire_backend_accepts_options_that_match_its_behavior() {
    let parsed = target(
        "mongodb://h/?readPreference=primary&retryWrites=false&loadBalanced=false&minPoolSize=0\
         &maxStalenessSeconds=-1&w=majority&maxPoolSize=0",
    );
    assert!(parsed.unsupported_by_wire.is_empty());
    assert_eq!(parsed.options.max_pool_size, None);
    assert_eq!(parsed.options.write_concern.w, Some(W::Majority));
}

#[test]
fn direct_connection_supports_every_read_preference() {
    let text = "mongodb://h/?readPreference=secondaryPreferred&maxStalenessSeconds=120\
                &readPreferenceTags=dc:ny&readPreferenceTags=&directConnection=true";
    let parsed = target(text);
    assert!(parsed.unsupported_by_wire.is_empty());
    let mode = parsed.options.read_preference.as_deref();
    assert_eq!(mode, Some("secondaryPreferred"));
}

#[test]
fn router_gets_only_the_mode_of_a_read_preference() {
    let names = |text: &str| {
        let parsed = target(&format!("mongodb://h/?readPreference=nearest&{text}"));
        parsed.unsupported_on_router.into_iter().map(|option| option.name).collect::<Vec<_>>()
    };
    let more = "maxStalenessSeconds=120&readPreferenceTags=dc:ny";
    assert!(names(more).is_empty(), "it was refused before");
    let direct = names(&format!("{more}&directConnection=true"));
    assert_eq!(direct, ["maxStalenessSeconds", "readPreferenceTags"]);
    assert!(names("directConnection=true").is_empty());
}

#[test]
fn unsupported_mechanisms_are_refused_by_name() {
    for name in ["GSSAPI", "MONGODB-CR"] {
        let error = error(&format!("mongodb://u:p@h/?authMechanism={name}"));
        assert_eq!(error, UriError::UnsupportedMechanism { mechanism: name.into() });
    }
}

#[test]
fn plain_password_to_another_machine_needs_tls() {
    for text in [
        "mongodb://u:p@h/?authMechanism=PLAIN",
        "mongodb://u:p@localhost,h/?authMechanism=PLAIN&tls=false",
        "mongodb+srv://u:p@h.example.org/?authMechanism=PLAIN&tls=false",
    ] {
        let error = error(text);
        assert_eq!(error, UriError::UnencryptedPassword, "{text}");
        assert!(error.hint().is_some_and(|hint| hint.contains("`tls=true`")));
    }
}

#[test]
fn mechanisms_of_external_users_have_their_own_rules() {
    let read = |text: &str| parse(text).unwrap().1.unwrap();
    for (text, mechanism, source) in [
        ("mongodb://u:p@h/?authMechanism=PLAIN&tls=true", Mechanism::Plain, "$external"),
        ("mongodb://u:p@localhost,[::1]/db?authMechanism=PLAIN", Mechanism::Plain, "db"),
        (
            "mongodb+srv://u:p@h.example.org/?authMechanism=PLAIN&authSource=admin",
            Mechanism::Plain,
            "admin",
        ),
        ("mongodb://h/db?authMechanism=MONGODB-AWS", Mechanism::Aws, "$external"),
        (
            "mongodb+srv://k:s@h.example.org/?authSource=%24external&authMechanism=MONGODB-AWS",
            Mechanism::Aws,
            "$external",
        ),
        (
            "mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s",
            Mechanism::Oidc,
            "$external",
        ),
    ] {
        let credentials = read(text);
        assert_eq!(credentials.mechanism, Some(mechanism), "{text}");
        assert_eq!(credentials.source.as_deref(), Some(source), "{text}");
    }
    let token = "authMechanismProperties=AWS_SESSION_TOKEN:a%2Bhush%3D%3D";
    let text = format!("mongodb://k:s@h/?authMechanism=MONGODB-AWS&{token}");
    let (target, credentials) = parse(&text).unwrap();
    assert_eq!(credentials.as_ref().unwrap().session_token(), Some("a+hush=="));
    assert!(!format!("{target:?} {credentials:?} {}", target.to_driver_uri()).contains("hush"));
    assert_eq!(read("mongodb://u:p@h/?authMechanism=DEFAULT").mechanism, None);

    for text in [
        "k:s@h/?authMechanism=MONGODB-AWS&authSource=admin",
        "u@h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s",
    ] {
        let error = error(&format!("mongodb://{text}"));
        assert!(matches!(error, UriError::Conflict { .. }), "{text}: {error:?}");
    }
    for text in [
        "h/?authMechanism=PLAIN".to_owned(),
        "k@h/?authMechanism=MONGODB-AWS".to_owned(),
        format!("h/?authMechanism=MONGODB-AWS&{token}"),
        "h/?authMechanism=MONGODB-OIDC".to_owned(),
    ] {
        let error = error(&format!("mongodb://{text}"));
        assert!(matches!(error, UriError::Needs { .. }), "{text}: {error:?}");
    }
    for text in [
        "h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:azure,TOKEN_RESOURCE:hush",
        "k:s@h/?authMechanism=MONGODB-AWS&authMechanismProperties=OTHER:hush",
        "u:p@h/?authMechanism=PLAIN&authMechanismProperties=SERVICE_NAME:hush",
    ] {
        let error = error(&format!("mongodb://{text}"));
        assert!(matches!(error, UriError::UnsupportedOption { .. }), "{text}: {error:?}");
        assert!(!format!("{error:?} {error}").contains("hush"), "{error:?}");
    }
}

#[test]
fn strings_of_hosts_are_accepted_as_they_are() {
    for text in [
        // Atlas: driver, X.509, IAM, and the form without SRV.
        "mongodb+srv://u:p@cluster0.abc.mongodb.net/?retryWrites=true&w=majority&appName=Cluster0",
        "mongodb+srv://cluster0.abc.mongodb.net/?authSource=%24external&authMechanism=MONGODB-X509&retryWrites=true&w=majority&tlsCertificateKeyFile=%2Fc.pem",
        "mongodb+srv://k:s@cluster0.abc.mongodb.net/?authSource=%24external&authMechanism=MONGODB-AWS&retryWrites=true&w=majority&authMechanismProperties=AWS_SESSION_TOKEN:t&appName=Cluster0",
        "mongodb://u:p@a.abc.mongodb.net:27017,b.abc.mongodb.net:27017/?ssl=true&replicaSet=atlas-x-shard-0&authSource=admin&retryWrites=true&w=majority&readPreference=primary",
        // Compass.
        "mongodb://u:p@h:27017/?authMechanism=DEFAULT&tls=true&tlsInsecure=true&directConnection=true",
        // Cosmos DB for MongoDB, both kinds.
        "mongodb://u:p%3D%3D@u.mongo.cosmos.azure.com:10255/?ssl=true&retrywrites=false&replicaSet=globaldb&maxIdleTimeMS=120000&appName=@u@",
        "mongodb+srv://u:p@c.mongocluster.cosmos.azure.com/?tls=true&authMechanism=SCRAM-SHA-256&retrywrites=false&maxIdleTimeMS=120000",
        // DigitalOcean, IBM Cloud.
        "mongodb+srv://doadmin:p@db.mongo.ondigitalocean.com/admin?tls=true&authSource=admin&replicaSet=db",
        "mongodb://admin:p@a.databases.appdomain.cloud:30484,b.databases.appdomain.cloud:30484/ibmclouddb?authSource=admin&replicaSet=replset&tls=true&compressors=zstd,snappy&retryReads=true",
    ] {
        let parsed = target(text);
        assert!(parsed.unsupported_by_wire.is_empty(), "{text}: {:?}", parsed.unsupported_by_wire);
    }
    let parsed = target("mongodb://h/?minPoolSize=3&w=1&maxIdleTimeMS=9&serverMonitoringMode=poll");
    let ignored: Vec<String> = parsed.only_of_drivers().collect();
    assert_eq!(ignored, ["`minPoolSize=3`", "`maxIdleTimeMS=9`", "`serverMonitoringMode=poll`"]);
}

#[test]
fn found_hosts_replace_the_name_of_a_service() {
    let (mut target, _) =
        parse("mongodb+srv://h.example.org/db?srvMaxHosts=2&retryWrites=true").unwrap();
    target.apply_txt_record(None, "authSource=admin&replicaSet=rs0").unwrap();
    let hosts = vec![Host::Tcp { host: "a.example.org".into(), port: 1 }];
    let found = target.with_hosts(hosts).to_driver_uri();
    assert_eq!(found, "mongodb://a.example.org:1/db?retryWrites=true&replicaSet=rs0&tls=true");
    let parsed = self::target(&found);
    assert_eq!(parsed.options.replica_set.as_deref(), Some("rs0"));
}

#[test]
fn tls_is_on_when_anything_asks_for_it() {
    for (text, expected) in [
        ("mongodb://h/?tls=true", true),
        ("mongodb://h/?ssl=true", true),
        ("mongodb://h/?tlsCAFile=ca.pem", true),
        ("mongodb://h/?tls=false", false),
        ("mongodb+srv://h.example.org", true),
        ("mongodb+srv://h.example.org/?tls=false", false),
    ] {
        assert_eq!(target(text).options.tls, expected, "{text}");
    }
}

#[test]
fn contradictions_are_errors() {
    for text in [
        "mongodb://h/?tls=false&tlsCAFile=ca.pem",
        "mongodb://h/?tlsInsecure=true&tlsAllowInvalidCertificates=true",
        "mongodb://h/?w=0&journal=true",
        "mongodb://a,b/?directConnection=true",
        "mongodb+srv://h.example.org/?directConnection=true",
        "mongodb+srv://h.example.org/?srvMaxHosts=2&replicaSet=rs0",
        "mongodb://h/?loadBalanced=true&replicaSet=rs0",
    ] {
        assert!(matches!(error(text), UriError::Conflict { .. }), "{text}");
    }
    assert_eq!(error("mongodb://h/?tls=true&ssl=false"), UriError::Repeated { name: "tls" });
    assert!(matches!(
        error("mongodb://h/?srvServiceName=x"),
        UriError::Needs { name: "srvServiceName", .. }
    ));
    for text in ["readPreferenceTags=dc:ny", "maxStalenessSeconds=90"] {
        let needs = error(&format!("mongodb://h/?readPreference=primary&{text}"));
        assert!(matches!(needs, UriError::Needs { .. }), "{text}");
    }
    assert!(matches!(
        error("mongodb://h/?authMechanism=SCRAM-SHA-256"),
        UriError::Needs { name: "authMechanism", .. }
    ));
}

#[test]
fn authentication_database_without_user_has_no_effect() {
    let (_, credentials) = parse("mongodb://h/?authSource=x").unwrap();
    assert_eq!(credentials, None);
}

#[test]
fn x509_takes_its_user_from_the_certificate() {
    let external = |text: &str| {
        let credentials = parse(text).unwrap().1.unwrap();
        assert_eq!(credentials.mechanism, Some(Mechanism::X509), "{text}");
        assert_eq!(credentials.source.as_deref(), Some("$external"), "{text}");
        credentials.username
    };
    let named = "mongodb://CN%3Dclient%2COU%3Dx@h/db?tls=true&authMechanism=MONGODB-X509";
    assert_eq!(external(named), "CN=client,OU=x");
    for text in [
        "mongodb://h/db?authMechanism=MONGODB-X509",
        "mongodb://h/?authMechanism=MONGODB-X509&authSource=$external",
        "mongodb+srv://h.example.org/?authMechanism=MONGODB-X509&authSource=%24external",
    ] {
        assert_eq!(external(text), "");
    }
    for text in [
        "mongodb://u:p@h/?authMechanism=MONGODB-X509",
        "mongodb://h/?authMechanism=MONGODB-X509&authSource=admin",
    ] {
        assert!(matches!(error(text), UriError::Conflict { .. }), "{text}");
    }
}

#[test]
fn repeated_option_with_the_same_value_counts_once() {
    let parsed = target("mongodb://h/?journal=true&j=true");
    assert_eq!(parsed.to_string(), "mongodb://h:27017/?journal=true");
}

#[test]
fn srv_names_take_one_host_without_port() {
    let parsed = target("mongodb+srv://Cluster.example.org/db?srvServiceName=other&srvMaxHosts=3");
    assert_eq!(
        parsed.srv,
        Some(SrvName {
            host: "cluster.example.org".into(),
            service_name: "other".into(),
            max_hosts: Some(3)
        })
    );
    assert!(parsed.hosts.is_empty());
    for text in [
        "mongodb+srv://a.example.org,b.example.org",
        "mongodb+srv://a.example.org:27017",
        "mongodb+srv://127.0.0.1",
        "mongodb+srv://%2Ftmp%2Fx.sock",
    ] {
        assert!(matches!(error(text), UriError::Host { .. }), "{text}");
    }
    assert!(matches!(error("mongodb+srv://"), UriError::EmptyHost));
}

#[test]
fn txt_record_fills_options_that_are_not_given() {
    let (mut target, credentials) = parse("mongodb+srv://u:p@h.example.org/db").unwrap();
    let mut credentials = credentials.unwrap();
    target.apply_txt_record(Some(&mut credentials), "authSource=users&replicaSet=rs0").unwrap();
    assert_eq!(credentials.source.as_deref(), Some("users"));
    assert_eq!(target.options.replica_set.as_deref(), Some("rs0"));

    let (mut target, credentials) =
        parse("mongodb+srv://u:p@h.example.org/?authSource=mine&replicaSet=mine").unwrap();
    let mut credentials = credentials.unwrap();
    target.apply_txt_record(Some(&mut credentials), "authSource=users&replicaSet=rs0").unwrap();
    assert_eq!(credentials.source.as_deref(), Some("mine"));
    assert_eq!(target.options.replica_set.as_deref(), Some("mine"));
    assert!(target.apply_txt_record(None, "tls=false").is_err());
}

#[test]
fn displayed_target_parses_to_the_same_target() {
    for text in [
        "mongodb://localhost",
        "mongodb://u:p@a:1,[::1]:2,%2Ftmp%2Fm%20%2B.sock/my%2Ddb?w=tag%26x&appName=a%20b%2Bc&authSource=x",
        "mongodb+srv://h.example.org/db?retryWrites=true&w=majority",
        "mongodb://h/?readPreference=nearest&readPreferenceTags=dc:ny&readPreferenceTags=dc:la",
        "mongodb://h/?ssl=true&tlsCAFile=%2Fetc%2Fca.pem",
    ] {
        let parsed = target(text);
        assert_eq!(target(&parsed.to_string()), parsed, "{text}");
        assert_eq!(target(&parsed.to_driver_uri()), parsed, "{text}");
        assert_eq!(serde_json::to_string(&parsed).unwrap(), format!("\"{parsed}\""));
    }
}

#[test]
fn database_names_that_mongodb_forbids_are_refused() {
    assert!(matches!(
        error("mongodb://h/db.collection"),
        UriError::Database { character: '.', .. }
    ));
    assert!(matches!(error("mongodb://h/a%20b"), UriError::Database { .. }));
}

#[test]
fn added_option_is_inserted_at_the_right_place() {
    let cases = [
        ("mongodb://h", "mongodb://h/?a=b"),
        ("mongodb://h:1,i:2/", "mongodb://h:1,i:2/?a=b"),
        ("mongodb://h/db", "mongodb://h/db?a=b"),
        ("mongodb://u:p@h/?", "mongodb://u:p@h/?a=b"),
        ("mongodb://h/?c=d", "mongodb://h/?c=d&a=b"),
        ("mongodb://h/?c=d&", "mongodb://h/?c=d&a=b"),
        ("mongodb://h?c=d;", "mongodb://h/?c=d;a=b"),
        ("mongodb://%2Ftmp%2Fm.sock", "mongodb://%2Ftmp%2Fm.sock/?a=b"),
    ];
    for (given, expected) in cases {
        assert_eq!(with_option(given, "a", "b"), expected, "{given}");
    }
    let given = with_option("mongodb://h", "serverMonitoringMode", "poll");
    assert_eq!(target(&given).to_driver_uri(), given.replace("//h/", "//h:27017/"));
}

#[test]
fn option_is_found_under_any_of_its_names() {
    let uri = "mongodb://h/?J=true&servermonitoringmode=stream";
    assert!(has_option(uri, "journal"));
    assert!(has_option(uri, "serverMonitoringMode"));
    assert!(!has_option(uri, "w"));
    assert!(!has_option("mongodb://w=1", "w"));
}
