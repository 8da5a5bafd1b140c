//! Text of files written by people, with an accurate reason if it is unusable.

use std::io;
use std::path::Path;

/// Reads a UTF-8 file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    utf8(&std::fs::read(path)?).map(str::to_owned)
}

/// Text of a file in UTF-8, or else in ISO-8859-1, in which each byte is a character.
pub(crate) fn utf8_or_latin1(bytes: &[u8]) -> io::Result<String> {
    check_is_not_wide(bytes)?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    })
}

/// Text of a file that must be in UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> io::Result<&str> {
    check_is_not_wide(bytes)?;
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        invalid(format!("line {line} is not UTF-8 text"))
    })
}

/// Whether a read failed because of the encoding.
pub(crate) fn is_encoding(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Refuses UTF-16 and UTF-32, in which ASCII text has a byte order mark or zero bytes.
fn check_is_not_wide(bytes: &[u8]) -> io::Result<()> {
    let has_mark = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if has_mark || bytes.contains(&0) {
        return Err(invalid("it is UTF-16 text or not text".into()));
    }
    Ok(())
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str, mark: &[u8]) -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        mark.iter().copied().chain(units).collect()
    }

    #[test]
    fn latin1_is_read_where_text_is_not_utf8() {
        assert_eq!(utf8_or_latin1(b"Gr\xf6\xdfe").unwrap(), "Größe");
        assert_eq!(utf8_or_latin1("Größe".as_bytes()).unwrap(), "Größe");
        let error = utf8(b"a=1\n# Gr\xf6\xdfe").unwrap_err();
        assert!(is_encoding(&error) && error.to_string().contains("line 2"));
    }

    #[test]
    fn utf16_is_refused_by_name() {
        for bytes in [wide("a=1", b"\xff\xfe"), wide("a=1", b""), b"\xfe\xff\0a".to_vec()] {
            for error in [utf8_or_latin1(&bytes).unwrap_err(), utf8(&bytes).unwrap_err()] {
                assert!(is_encoding(&error) && error.to_string().contains("UTF-16"));
            }
        }
    }
}
