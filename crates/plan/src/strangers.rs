//! Detects servers that other machines reach without a password.

use crate::model::{ServerKind, ServerPlan};

/// The warning to show before starting such servers; `None` for all others.
pub fn warning(server: &ServerPlan) -> Option<String> {
    let listen = server.listen_address();
    let is_open = server.kind != ServerKind::Uri && !listen.is_loopback() && !server.auth;
    is_open.then(|| {
        format!(
            "everyone who reaches {listen} can read, change and delete everything on the server \
                without a password; add `--auth --tls` (`server.auth`, `server.encryption`), or \
                use a private network"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_servers_without_a_password_give_a_warning() {
        let mut server = ServerPlan { kind: ServerKind::Mongod, ..ServerPlan::default() };
        assert_eq!(warning(&server), None);
        server.listen = Some("127.0.0.2".into());
        assert_eq!(warning(&server), None);
        server.listen = Some("10.0.0.1".into());
        let text = warning(&server).expect("it is open");
        assert!(text.contains("10.0.0.1") && text.contains("`--auth --tls`"));
        server.auth = true;
        assert_eq!(warning(&server), None);
    }
}
