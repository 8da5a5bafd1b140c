use super::*;
use crate::command_words::{lacks_secrets, without_secrets};

/// Texts with a secret, which contains `hunter2`.
const SECRETS: &[&str] = &[
    "curl -H 'X-Api-Key: hunter2' http://h",
    "curl -H \"X-Vault-Token: hunter2\" http://h",
    "X-Vault-Token: hunter2",
    "x-auth: Token hunter2",
    "curl -H 'Cookie: sid=hunter2; b=hunter2' http://h",
    "Set-Cookie: sid=hunter2; Path=/; b=hunter2",
    "curl --header=\"Authorization: Token hunter2\" http://h",
    "Authorization: Bearer hunter2",
    "Authorization: Digest username=\"me\", response=\"hunter2\"",
    "Proxy-Authorization: Basic hunter2=",
    "sent Bearer hunter2 to it",
    "curl --user=me:hunter2 http://h",
    "curl --user me:hunter2 http://h",
    "curl -u me:hunter2 http://h",
    "curl -u \"me:two hunter2\" http://h",
    "curl -ume:hunter2 http://h",
    "curl --proxy-user me:hunter2 http://h",
    "curl -d '{\"password\":\"hunter2\"}' http://h",
    "{\"user\": \"me\", \"password\" : \"a \\\" hunter2\", \"x\": 1}",
    r#"{"body":"{\"password\":\"two hunter2\",\"x\":1}"}"#,
    "{'token': 'hunter2'}",
    "db.createUser({user:\"me\",pwd:\"hunter2\"})",
    "db.createUser({user: 'me', pwd: 'two hunter2'})",
    "mongosh --eval 'db.auth(\"me\",\"hunter2\")'",
    "db.getSiblingDB('admin').auth('me', 'hunter2')",
    "https://s3.example/x?sig=hunter2",
    "https://h/x?a=1&b=hunter2#c",
    "GET /x?sig=hunter2 HTTP/1.1",
    "MONGO_PW=hunter2 mongosh",
    "env PGPASSWORD=hunter2 psql",
    "export AWS_SECRET_ACCESS_KEY=hunter2",
    "AccountName=a;AccountKey=hunter2;x=1",
    "mongosh --password \"two hunter2\"",
    "mongosh --password 'two hunter2' --quiet",
    "mongosh --password hunter2",
    "mongosh --password=hunter2",
    "mongosh --password=a'b hunter2'",
    "mongosh -u app -p hunter2",
    "mongosh -u app -p 'two hunter2'",
    "curl --auth-token hunter2",
    "sshpass -p hunter2 ssh h",
    "sshpass -phunter2 ssh h",
    "mysql -phunter2 shop",
    "redis-cli -a hunter2",
    "redis-cli AUTH hunter2",
    "echo hunter2 | sudo -S true",
    "echo \"two | hunter2\" | sudo -u root -S true",
    "printf '%s\\n' hunter2 | sudo -kS true",
    "sudo -S true <<< hunter2",
    "printf '%s' hunter2 | docker login -u me --password-stdin",
    "openssl rsa -passin pass:hunter2 -in key",
    "psql postgres://u:hunter2@db/x",
    "redis://:hunter2@db",
    "https://u:a/hunter2@db/x",
    "mongodb://u:hunter2@db/x",
    "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:hunter2&w=1",
    "password: hunter2",
    "user me password: hunter2",
    "  password = two2\ttoken: hunter2",
    "password => 'hunter2'",
    "Caused by: token=hunter2, user=me",
    "\"password\": hunter2",
    "{'token': hunter2, 'x': 1}",
    "{\"psk\": hunter2}",
    "pass: hunter2",
    "db_pw: hunter2",
    "psk: hunter2",
    "with these credentials: hunter2",
    "password= hunter2",
    "db.password= \"two hunter2\"",
    "secret=> hunter2",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nhunter2\n",
    "kubectl create secret generic x --from-literal=password=hunter2",
];

#[test]
fn secrets_of_every_form_are_hidden() {
    let mut kept = Vec::new();
    for text in SECRETS {
        let redacted = redact(text);
        if redacted.contains("hunter2") || !redacted.contains(MASK) || redact(&redacted) != redacted
        {
            kept.push(redacted);
        }
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn secrets_of_every_form_are_hidden_in_scripts() {
    let mut kept = Vec::new();
    for text in SECRETS {
        let words = ["sh", "-c", text].map(str::to_owned);
        let once = without_secrets(&words);
        let is_stable = without_secrets(&once) == once && lacks_secrets(&once);
        if once[2].contains("hunter2") || !is_stable || lacks_secrets(&words) {
            kept.push(once[2].clone());
        }
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn ordinary_texts_stay_unchanged() {
    let mut changed = Vec::new();
    for text in [
        "does not support `tlsCertificateKeyFilePassword=***`: the wire backend reads unencrypted keys only",
        "does not support `tlsCertificateKeyFilePassword`: the wire backend reads unencrypted keys only",
        "`--password`: it must not be empty, or give `--password-file FILE` and `--token-file FILE`",
        "a value is required for '--password <PASSWORD>'",
        "Usage: dyno run --password-file <FILE> --token TOKEN",
        "cannot read the token: permission denied",
        "wrong password: try another",
        "error: no secret: it is empty",
        "E11000 duplicate key error collection: ycsb.usertable index: _id_ dup key: { _id: \"user1\" }",
        "Error reading key=user6284781860667377211",
        "shard_key=a, key: 17, keys=5, sort_key=b",
        "{\"key\":\"user1\",\"keyPattern\":{\"_id\":1}}",
        "--authenticationDatabase admin, mongodb://h/?authSource=admin&authMechanism=PLAIN",
        "add `/?authSource=admin` or `?directConnection=true` to it",
        "Unauthorized: command find requires authentication",
        "basic authentication, a bearer token",
        "pass=12 fail=3, pass: 12",
        "tokens: 5, max_tokens=7, secrets: 3",
        "docker run --user 1000:1000 x",
        "perf stat -a -p 17 sleep 10; pidstat -u -p ALL 1",
        "redis-cli -p 6379 ping",
        "fio --name=read --size=1G --filename /data/x -v",
        "password=$PW --password \"$PW\" TOKEN=${TOKEN}",
        "\"password\": null, secret: false",
        "the password is wrong, the cookie is stale",
        "cannot read the token: Permission denied (os error 13)",
        "cannot log in with these credentials: authentication failed",
        "no such option \"password\": expected `user`",
        "{\"secret\": {\"name\": 1}, \"credentials\": [1], \"token\": true}",
        "dyno_plan::credentials::Source, sort_key= b, auth= c",
        "mongosh --password= --quiet",
        "http://h:9100/metrics, ssh://h/x, me@example.org, git@h:x",
        "openssl --key /etc/key.pem --keyFile /etc/keyfile, tlsCertificateKeyFile=/etc/x.pem",
        "2026-08-22T10:15:00Z I  NETWORK  [conn1] received client metadata from 127.0.0.1:5: { a: 1 }",
        "p99 = 5.1 ms: it's fine, isn't it",
        "echo it works | sudo tee /proc/sys/vm/swappiness",
    ] {
        let redacted = redact(text);
        if redacted != text {
            changed.push((text, redacted));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn text_around_a_secret_stays() {
    for (text, expected) in [
        ("curl -H 'X-Api-Key: S' http://h", "curl -H 'X-Api-Key: ***' http://h"),
        ("{\"a\":1,\"password\":\"S\",\"b\":2}", "{\"a\":1,\"password\":\"***\",\"b\":2}"),
        ("token=S, user=me", "token=***, user=me"),
        ("refused `password=S`: too short", "refused `password=***`: too short"),
        ("f(password=S) failed", "f(password=***) failed"),
        ("the password: swordfish", "the password: ***"),
        ("{\"token\": abc, \"x\": 1}", "{\"token\": ***, \"x\": 1}"),
        ("psk: 12345678 of wlan0", "psk: *** of wlan0"),
        ("http://h/x?a=S&b=T ok", "http://h/x?a=***&b=*** ok"),
        ("curl -u me:S http://h", "curl -u me:*** http://h"),
    ] {
        assert_eq!(redact(text), expected);
    }
}

#[test]
fn credentials_disappear_and_the_rest_stays() {
    assert_eq!(
        redact("cannot reach mongodb://app:s3cret@db.example:27017/ycsb?w=1 now"),
        "cannot reach mongodb://***@db.example:27017/ycsb?w=1 now"
    );
    assert_eq!(
        redact("mongodb+srv://app:s3cret@cluster.example"),
        "mongodb+srv://***@cluster.example"
    );
}

#[test]
fn text_without_credentials_is_unchanged() {
    for text in [
        "",
        "nothing here",
        "mongodb://localhost:27017/ycsb, mongodb://[::1]:27018",
        "mail to me@example.org",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn placeholders_in_hints_stay() {
    let hint = "name a user: `mongodb://USER:PASSWORD@HOST/?authSource=admin`";
    assert_eq!(redact(hint), hint);
    assert_eq!(redact("mongodb://USER:PASSWORD1@HOST"), "mongodb://***@HOST");
}

#[test]
fn every_connection_string_in_a_text_is_redacted() {
    let text = redact("-p mongodb.url=mongodb://u:secret1@a -P x mongodb://u:secret2@b");
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("@a -P x"), "{text}");
}

#[test]
fn passwords_with_unescaped_characters_are_hidden() {
    for password in ["a/b", "a?b", "a@b", "a#b", "a'b", "a\"b", "a b", "ä:b", "a,b"] {
        let text = redact(&format!("bad uri 'mongodb://user:{password}@host/db'"));
        assert_eq!(text, "bad uri 'mongodb://***@host/db'", "{password}");
    }
}

#[test]
fn secret_options_and_properties_are_hidden() {
    assert_eq!(
        redact("mongodb://h/?tlsCertificateKeyFilePassword=pw&w=1 -p mongodb.password=x y"),
        "mongodb://h/?tlsCertificateKeyFilePassword=***&w=1 -p mongodb.password=*** y"
    );
}
