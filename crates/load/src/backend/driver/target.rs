//! The deployment as the driver sees it.

use crate::error::LoadError;
use dyno_plan::uri::{Credentials, Mechanism, Target};
use mongodb::Client;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{AuthMechanism, ClientOptions, Credential};

/// The deployment as the driver sees it.
#[derive(Clone)]
pub struct DriverTarget {
    pub(super) options: ClientOptions,
}

impl DriverTarget {
    /// Refuses a connection string that the driver does not take; no server is asked.
    ///
    /// # Errors
    /// [`LoadError::DriverOption`], as that of [`new`](Self::new).
    pub fn check(target: &Target) -> Result<(), LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        runtime.block_on(options_of(target)).map(drop)
    }

    /// Reads the connection string with the driver's own parser and checks that the server answers.
    ///
    /// # Errors
    /// [`LoadError::Driver`] if an option is not understood or the server cannot be reached.
    pub fn new(target: &Target, credentials: Option<&Credentials>) -> Result<Self, LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        runtime.block_on(async {
            let mut options = options_of(target).await?;
            options.credential = credentials.map(credential);
            options.retry_reads = options.retry_reads.or(Some(false));
            options.retry_writes = options.retry_writes.or(Some(false));
            options.app_name = options.app_name.or_else(|| Some("mongodyno".into()));
            let client = Client::with_options(options.clone()).map_err(driver_error)?;
            let ping = bson::doc! { "ping": 1 };
            client
                .database("admin")
                .run_command(ping)
                .await
                .map_err(driver_error)?;
            client.shutdown().await;
            Ok(DriverTarget { options })
        })
    }
}

async fn options_of(target: &Target) -> Result<ClientOptions, LoadError> {
    let options = ClientOptions::parse(target.to_driver_uri()).await;
    options.map_err(|error| {
        if matches!(error.kind.as_ref(), ErrorKind::InvalidArgument { .. }) {
            LoadError::DriverOption(describe(&error))
        } else {
            driver_error(error)
        }
    })
}

fn driver_error(error: Error) -> LoadError {
    LoadError::Driver(describe(&error))
}

/// What the driver says, without the labels and the source that its own text goes on with.
pub(super) fn describe(error: &Error) -> String {
    error.kind.to_string()
}

/// A runtime of one thread.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn credential(credentials: &Credentials) -> Credential {
    let mechanism = credentials.mechanism.map(|mechanism| match mechanism {
        Mechanism::ScramSha1 => AuthMechanism::ScramSha1,
        Mechanism::ScramSha256 => AuthMechanism::ScramSha256,
    });
    let mut credential = Credential::default();
    credential.username = Some(credentials.username.clone());
    credential.password = Some(credentials.password().to_owned());
    credential.source = credentials.source.clone();
    credential.mechanism = mechanism;
    credential
}
