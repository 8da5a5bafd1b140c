//! The deployment, as set up for the driver.

use crate::connect;
use crate::error::LoadError;
use dyno_plan::uri::{Credentials, Mechanism, Target};
use mongodb::Client;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{AuthMechanism, ClientOptions, Credential, Tls};

/// The deployment, as set up for the driver.
#[derive(Clone)]
pub struct DriverTarget {
    pub(super) options: ClientOptions,
}

impl DriverTarget {
    /// Rejects connection strings that the driver does not accept, without contacting a server.
    ///
    /// # Errors
    /// [`LoadError::DriverOption`] and [`LoadError::DriverLimit`], as in [`new`](Self::new).
    pub fn check(target: &Target, credentials: Option<&Credentials>) -> Result<(), LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        let options = runtime.block_on(options_of(target, credentials));
        options.map(drop)
    }

    /// Parses the connection string with the driver's own parser and checks that the server answers.
    ///
    /// # Errors
    /// [`LoadError::Driver`] if the server cannot be reached, [`LoadError::DriverOption`] if an option is unknown, and
    /// [`LoadError::DriverLimit`] for features that only the wire backend has.
    pub fn new(target: &Target, credentials: Option<&Credentials>) -> Result<Self, LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        runtime.block_on(async {
            let mut options = options_of(target, credentials).await?;
            options.retry_reads = options.retry_reads.or(Some(false));
            options.retry_writes = options.retry_writes.or(Some(false));
            options.app_name = options.app_name.or_else(|| Some("mongodyno".into()));
            let client = Client::with_options(options.clone()).map_err(driver_error)?;
            let ping = bson::doc! { "ping": 1 };
            let pinged = client.database("admin").run_command(ping).await;
            pinged.map_err(driver_error)?;
            client.shutdown().await;
            Ok(DriverTarget { options })
        })
    }
}

async fn options_of(
    target: &Target,
    credentials: Option<&Credentials>,
) -> Result<ClientOptions, LoadError> {
    let parsed = ClientOptions::parse(target.to_driver_uri()).await;
    let mut options = parsed.map_err(|error| {
        if matches!(error.kind.as_ref(), ErrorKind::InvalidArgument { .. }) {
            LoadError::DriverOption(describe(&error))
        } else {
            driver_error(error)
        }
    })?;
    if let Some(Tls::Enabled(tls)) = &mut options.tls
        && let Some(file) = &target.options.tls_certificate_key_file
        && !connect::has_encrypted_key(file)
    {
        // The driver accepts a password only for encrypted keys.
        tls.tls_certificate_key_file_password = None;
    }
    options.credential = credentials.map(credential).transpose()?;
    Ok(options)
}

fn driver_error(error: Error) -> LoadError {
    let text = describe(&error);
    if text.contains("CaUsedAsEndEntity") {
        return LoadError::DriverLimit {
            reason: "it does not accept a server's certificate that is marked as an authority (basicConstraints CA:TRUE)".to_owned(),
            hint: "use the wire backend, which accepts it if `tlsCAFile` holds it, or make a certificate with `-addext basicConstraints=critical,CA:FALSE`".to_owned(),
        };
    }
    LoadError::Driver(text)
}

/// The driver's message, without the labels and source that its own display appends.
pub(super) fn describe(error: &Error) -> String {
    error.kind.to_string()
}

/// A runtime of one thread.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn credential(credentials: &Credentials) -> Result<Credential, LoadError> {
    let mut credential = Credential::default();
    credential.source = credentials.source.clone();
    credential.mechanism = match credentials.mechanism {
        None => None,
        Some(Mechanism::ScramSha1) => Some(AuthMechanism::ScramSha1),
        Some(Mechanism::ScramSha256) => Some(AuthMechanism::ScramSha256),
        Some(Mechanism::Plain) => Some(AuthMechanism::Plain),
        Some(Mechanism::X509) => {
            // The driver sends a name in the field `username`, which servers refuse; without one they take the certificate's subject.
            credential.mechanism = Some(AuthMechanism::MongoDbX509);
            return Ok(credential);
        }
        Some(Mechanism::Oidc) => {
            // The driver reads the file with the token.
            credential.mechanism = Some(AuthMechanism::MongoDbOidc);
            credential.mechanism_properties = Some(bson::doc! { "ENVIRONMENT": "k8s" });
            return Ok(credential);
        }
        Some(Mechanism::Aws) => {
            return Err(LoadError::DriverLimit {
                reason: "it is built without `authMechanism=MONGODB-AWS`".to_owned(),
                hint: "use the wire backend".to_owned(),
            });
        }
    };
    credential.username = Some(credentials.username.clone());
    credential.password = Some(credentials.password().to_owned());
    if credentials.mechanism == Some(Mechanism::Plain) {
        return Ok(credential);
    }
    // The driver asks for the user's mechanisms by the plain name, and sends the same name where SCRAM expects `=2C` and
    // `=3D` (RFC 5802, section 5.1).
    if credentials.username.contains([',', '=']) {
        return Err(LoadError::DriverLimit {
            reason: format!(
                "it does not escape the `,` and `=` in the name of user `{}`",
                credentials.username
            ),
            hint: "use the wire backend".to_owned(),
        });
    }
    Ok(credential)
}
