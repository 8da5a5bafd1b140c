//! Negotiation of the compression.

use dyno_plan::uri::{self, TargetOptions};
use dyno_wire::compress::Compressor;
use dyno_wire::handshake::Hello;

/// Compressors to offer, with the level of the connection string.
pub(super) fn compressors(options: &TargetOptions) -> Vec<Compressor> {
    let level =
        options.zlib_compression_level.and_then(|level| i8::try_from(level).ok()).unwrap_or(-1);
    let convert = |compressor: &uri::Compressor| match compressor {
        uri::Compressor::Snappy => Compressor::Snappy,
        uri::Compressor::Zlib => Compressor::Zlib { level },
        uri::Compressor::Zstd => Compressor::Zstd,
    };
    options.compressors.iter().map(convert).collect()
}

/// The first compressor in the server's list that we offered.
pub(super) fn agreed_compressor(offered: &[Compressor], hello: &Hello) -> Option<Compressor> {
    let mut theirs = hello.compressors.iter();
    theirs.find_map(|theirs| offered.iter().find(|ours| ours.id() == theirs.id()).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_chooses_the_compressor_and_the_client_its_level() {
        let options = TargetOptions {
            compressors: vec![uri::Compressor::Zlib, uri::Compressor::Snappy],
            zlib_compression_level: Some(9),
            ..TargetOptions::default()
        };
        let offered = compressors(&options);
        let mut hello = Hello {
            compressors: vec![Compressor::Zlib { level: -1 }, Compressor::Snappy],
            ..Hello::default()
        };
        let zlib = Compressor::Zlib { level: 9 };
        assert_eq!(agreed_compressor(&offered, &hello), Some(zlib));
        hello.compressors = vec![Compressor::Zstd];
        assert_eq!(agreed_compressor(&offered, &hello), None);
    }
}
