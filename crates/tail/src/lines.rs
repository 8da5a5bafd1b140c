//! Lines of other programs' output, with any length and any bytes.

use std::io::{BufRead, BufReader, Read};

/// Longest part of a line to keep; the rest is dropped.
const LONGEST_BYTES: usize = 1 << 16;

/// Lines of a stream without line ends, until the end or an error.
pub(crate) fn lines(stream: impl Read) -> impl Iterator<Item = String> {
    let mut reader = BufReader::new(stream);
    std::iter::from_fn(move || next_line(&mut reader))
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let kept = reader.by_ref().take(LONGEST_BYTES as u64).read_until(b'\n', &mut line);
    if kept.ok()? == 0 {
        return None;
    }
    if !line.ends_with(b"\n") {
        reader.skip_until(b'\n').ok()?;
    }
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are() {
        let all: Vec<String> = lines(&b"a\r\n\nb\xff\nc"[..]).collect();
        assert_eq!(all, ["a", "", "b\u{fffd}", "c"]);
    }

    #[test]
    fn line_without_end_is_kept_in_part() {
        let endless = std::io::repeat(b'x').take(50 << 20);
        let text = endless.chain(&b"\nnext"[..]);
        let lengths: Vec<usize> = lines(text).map(|line| line.len()).collect();
        assert_eq!(lengths, [LONGEST_BYTES, 4]);
    }
}
