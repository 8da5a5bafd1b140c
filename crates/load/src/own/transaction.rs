//! Transactions of own operations, as the drivers' specification of the convenient API performs them: the whole transaction
//! again after `TransientTransactionError`, its commit again after `UnknownTransactionCommitResult`. Further attempts follow
//! at once, until the time limit of the operation.

use super::steps::{Command, Following, OwnOperation};
use crate::operation::{OperationError, Outcome};
use crate::program::Program;
use bson::Document;

/// How an operation performs its steps in a transaction.
pub(super) struct OwnTransaction {
    /// A document whose first value is whether the transaction is aborted on purpose.
    pub(super) abort: Option<Program>,
    pub(super) commands: Ends,
    /// Elements of the first command that only the wire needs.
    pub(super) first: Vec<u8>,
    pub(super) read_concern: Option<Document>,
    pub(super) write_concern: Option<Document>,
}

/// The commands that end a transaction, as BSON.
pub(super) struct Ends {
    pub(super) commit: Vec<u8>,
    /// With the write concern `majority`, so that a commit whose effect is unknown cannot be lost.
    pub(super) commit_again: Vec<u8>,
    pub(super) abort: Vec<u8>,
}

/// Part of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Steps,
    Commit,
    Abort(AfterAbort),
}

/// How an operation continues when its transaction is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterAbort {
    /// It ends as intended.
    End,
    Fail(OperationError),
    Restart,
}

/// Labels of a failure in a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionLabels {
    /// `TransientTransactionError`.
    pub(crate) is_transient: bool,
    /// `UnknownTransactionCommitResult`.
    pub(crate) is_unknown: bool,
}

/// How a command of an own operation has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) labels: TransactionLabels,
    /// Whether there is time for another attempt.
    pub(crate) may_repeat: bool,
    /// Whether the server can receive the command.
    pub(crate) is_connected: bool,
}

/// An event that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Restart,
    CommitAgain,
    Abort,
}

impl OwnTransaction {
    /// Writes the command that ends the transaction after its last step.
    pub(super) fn write_end(&self, command: &mut Command) {
        let aborts = self.abort.as_ref().is_some_and(|draw| command.draws(draw));
        if aborts {
            self.write_abort(command, AfterAbort::End);
        } else {
            command.set_end(Stage::Commit, &self.commands.commit);
        }
    }

    fn write_abort(&self, command: &mut Command, after: AfterAbort) {
        command.set_end(Stage::Abort(after), &self.commands.abort);
    }
}

impl OwnOperation {
    /// Continues after a command of a transaction has ended.
    pub(super) fn after_in_transaction(
        &self,
        transaction: &OwnTransaction,
        command: &mut Command,
        ending: Ending,
    ) -> Following {
        let Ending { outcome, labels, may_repeat, is_connected } = ending;
        if outcome == Err(OperationError::Cancelled) {
            return Following::End(outcome);
        }
        match (command.stage(), outcome) {
            (Stage::Steps, Ok(documents)) => {
                command.continue_transaction();
                self.proceed(command, documents)
            }
            (Stage::Steps, Err(error)) => {
                let is_repeated = may_repeat && (labels.is_transient || error.is_unsure());
                match (is_repeated, is_connected) {
                    (true, false) => self.restart(command),
                    (false, false) => Following::End(outcome),
                    (true, true) => {
                        transaction.write_abort(command, AfterAbort::Restart);
                        Following::Send
                    }
                    (false, true) => {
                        transaction.write_abort(command, AfterAbort::Fail(error));
                        Following::Send
                    }
                }
            }
            (Stage::Commit, Ok(_)) => Following::End(self.as_expected(command.documents())),
            (Stage::Commit, Err(error)) => {
                if may_repeat && (labels.is_unknown || error.is_unsure()) {
                    command.set_end(Stage::Commit, &transaction.commands.commit_again);
                    command.count(Counted::CommitAgain);
                    Following::Send
                } else if may_repeat && labels.is_transient {
                    self.restart(command)
                } else {
                    Following::End(outcome)
                }
            }
            // A server also aborts a transaction without this command, so failures do not count.
            (Stage::Abort(AfterAbort::End), _) => {
                command.count(Counted::Abort);
                Following::End(self.as_expected(command.documents()))
            }
            (Stage::Abort(AfterAbort::Fail(error)), _) => Following::End(Err(error)),
            (Stage::Abort(AfterAbort::Restart), _) => self.restart(command),
        }
    }

    fn restart(&self, command: &mut Command) -> Following {
        command.restart();
        command.count(Counted::Restart);
        self.write(command)
    }
}
