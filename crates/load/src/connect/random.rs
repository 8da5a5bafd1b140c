//! Random bits from the system.

use super::error::ConnectError;

/// A nonce of 192 random bits, printable.
pub(super) fn nonce() -> Result<String, ConnectError> {
    let mut text = String::new();
    for _ in 0..3 {
        text.push_str(&format!("{:016x}", random_u64()?));
    }
    Ok(text)
}

/// Random bits that cannot be predicted.
pub(super) fn random_u64() -> Result<u64, ConnectError> {
    bytes().map(u64::from_le_bytes)
}

/// Random bytes that cannot be predicted.
pub(super) fn bytes<const COUNT: usize>() -> Result<[u8; COUNT], ConnectError> {
    let mut bytes = [0; COUNT];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| ConnectError::TlsSetup {
        source: "the system returned no random bytes".into(),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_long_and_differ() {
        let nonces = [nonce().unwrap(), nonce().unwrap()];
        assert_eq!(nonces[0].len(), 48);
        assert_ne!(nonces[0], nonces[1]);
    }
}
