//! Length of field values: four properties and, for `histogram`, a file.

use super::reader::Reader;
use crate::model::FieldLength;

/// Largest number of buckets of a histogram file: longer values would exceed a document.
const MOST_BUCKETS: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Constant,
    Uniform,
    Zipfian,
    Histogram,
}

/// The lengths of a plan after applying the given properties.
pub(super) fn read(current: &FieldLength, reader: &mut Reader<'_>) -> FieldLength {
    let (current_kind, current_shortest, current_longest) = match *current {
        FieldLength::Constant { bytes } => (Kind::Constant, 1, bytes),
        FieldLength::Uniform { min_bytes, max_bytes } => (Kind::Uniform, min_bytes, max_bytes),
        FieldLength::Zipfian { min_bytes, max_bytes } => (Kind::Zipfian, min_bytes, max_bytes),
        FieldLength::Histogram { .. } => (Kind::Histogram, 1, 100),
    };
    let given_kind = reader.choice(
        "fieldlengthdistribution",
        &[
            ("constant", Kind::Constant),
            ("uniform", Kind::Uniform),
            ("zipfian", Kind::Zipfian),
            ("histogram", Kind::Histogram),
        ],
    );
    let kind = given_kind.unwrap_or(current_kind);
    let min_bytes = reader.count("minfieldlength").unwrap_or(current_shortest);
    let max_bytes = reader.count("fieldlength").unwrap_or(current_longest);
    warn_unused(kind, reader);
    match kind {
        Kind::Constant => FieldLength::Constant { bytes: max_bytes },
        Kind::Uniform => FieldLength::Uniform { min_bytes, max_bytes },
        Kind::Zipfian => FieldLength::Zipfian { min_bytes, max_bytes },
        Kind::Histogram if given_kind.is_some() || reader.is_given("fieldlengthhistogram") => {
            histogram(reader).unwrap_or_else(|| current.clone())
        }
        Kind::Histogram => current.clone(),
    }
}

fn warn_unused(kind: Kind, reader: &mut Reader<'_>) {
    if !matches!(kind, Kind::Uniform | Kind::Zipfian) {
        reader.warn_unused(
            "minfieldlength",
            "`fieldlengthdistribution` is neither `uniform` nor `zipfian`",
        );
    }
    if kind == Kind::Histogram {
        reader.warn_unused("fieldlength", "`fieldlengthdistribution` is `histogram`");
    } else {
        reader.warn_unused("fieldlengthhistogram", "`fieldlengthdistribution` is not `histogram`");
    }
}

/// Reads the file named by `fieldlengthhistogram`.
fn histogram(reader: &mut Reader<'_>) -> Option<FieldLength> {
    const NAME: &str = "fieldlengthhistogram";
    let path = reader.text(NAME).unwrap_or("hist.txt");
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read the histogram `{path}`: {error}");
            reader.problem(
                NAME,
                message,
                "`fieldlengthhistogram` is relative to the working directory",
            );
            return None;
        }
    };
    match parse(&text) {
        Ok(length) => {
            let warning = "YCSB gives values of the last histogram bucket the length of the \
                previous bucket; here they have their own length";
            reader.warnings.push(warning.into());
            Some(length)
        }
        Err(line) => {
            let hint = "the first line is `BlockSize` and a number, each further one a bucket from 0 and its count";
            reader.problem(
                NAME,
                format!("line {line} of the histogram `{path}` is malformed"),
                hint,
            );
            None
        }
    }
}

/// Parses a histogram file; the error is the number of the malformed line.
fn parse(text: &str) -> Result<FieldLength, usize> {
    let mut block_bytes = 0;
    let mut weights: Vec<u64> = Vec::new();
    let mut is_seen: Vec<bool> = Vec::new();
    let mut is_first = true;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let malformed = || index + 1;
        let mut words = line.split_whitespace();
        let (Some(name), Some(number), None) = (words.next(), words.next(), words.next()) else {
            return Err(malformed());
        };
        if is_first {
            let size = number.parse().ok().filter(|size| *size > 0 && name == "BlockSize");
            block_bytes = size.ok_or_else(malformed)?;
            is_first = false;
            continue;
        }
        let bucket: usize =
            name.parse().ok().filter(|bucket| *bucket < MOST_BUCKETS).ok_or_else(malformed)?;
        if bucket >= weights.len() {
            weights.resize(bucket + 1, 0);
            is_seen.resize(bucket + 1, false);
        }
        if std::mem::replace(&mut is_seen[bucket], true) {
            return Err(malformed());
        }
        weights[bucket] = number.parse().map_err(|_| malformed())?;
    }
    if weights.is_empty() {
        return Err(text.lines().count().max(1));
    }
    Ok(FieldLength::Histogram { block_bytes, weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_file_has_a_block_size_and_buckets() {
        assert_eq!(
            parse("BlockSize\t10\n0\t5\n2\t7\n\n"),
            Ok(FieldLength::Histogram { block_bytes: 10, weights: vec![5, 0, 7] })
        );
    }

    #[test]
    fn a_malformed_line_is_named() {
        for (text, line) in [
            ("", 1),
            ("BlockSize\t10\n", 1),
            ("Blocksize\t10\n0\t5", 1),
            ("BlockSize\t0\n0\t5", 1),
            ("BlockSize\t10\n0\t5\n1", 3),
            ("BlockSize\t10\n0\t5\n0\t6", 3),
            ("BlockSize\t10\n\n0\t-5", 3),
            ("BlockSize\t10\n99999999999\t5", 2),
        ] {
            assert_eq!(parse(text), Err(line), "{text:?}");
        }
    }
}
