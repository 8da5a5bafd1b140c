//! The commands of own operations: steps, and the replies that others need.

use super::{CHECK_NS, Clients};
use crate::operation::{OperationError, Outcome};
use crate::own::{Counted, Ending, TransactionLabels};
use dyno_record::error_example::ErrorExample;

impl Clients {
    /// Keeps the reply to the command in flight, if another command needs it. Call it before the command has
    /// [`ended`](Self::ended).
    #[inline]
    pub(crate) fn keep_reply(&mut self, client: usize, reply: &[u8]) {
        if let Some(in_flight) = &mut self.clients[client].in_flight {
            self.generator.keep_reply(&mut in_flight.operation, reply);
        }
    }

    /// Keeps the labels of the failure of the command in flight. Call it before the command has [`ended`](Self::ended).
    pub(crate) fn note_labels(&mut self, client: usize, labels: TransactionLabels) {
        if let Some(in_flight) = &mut self.clients[client].in_flight {
            in_flight.labels = labels;
        }
    }

    /// Handles the end of a command of an own operation. Returns whether the client has a command to send now.
    #[inline]
    pub(super) fn command_ended(&mut self, client: usize, outcome: Outcome, now_ns: u64) -> bool {
        let state = &mut self.clients[client];
        let is_connected = state.connected;
        let Some(in_flight) = &mut state.in_flight else {
            return false;
        };
        if let Some(step) = in_flight.operation.step().filter(|_| in_flight.sent) {
            let times = in_flight.command_times(now_ns);
            self.core.part_ended(in_flight.ticket, step, times, outcome);
        }
        let may_repeat = self.stopping_since_ns.is_none() && now_ns < in_flight.deadline_ns;
        let labels = std::mem::take(&mut in_flight.labels);
        let ending = Ending { outcome, labels, may_repeat, is_connected };
        if let Some(counted) = self.generator.after(&mut in_flight.operation, ending) {
            self.core.count(in_flight.ticket, now_ns, |own| match counted {
                Counted::Restart => own.transaction_restarts += 1,
                Counted::CommitAgain => own.commit_retries += 1,
                Counted::Abort => own.transaction_aborts += 1,
            });
        }
        if let Some(outcome) = in_flight.operation.over {
            if outcome == Err(OperationError::Expect) {
                self.note_unexpected(client, now_ns);
            }
            return self.finish_operation(client, outcome, now_ns);
        }
        in_flight.continues = true;
        in_flight.resent = None;
        in_flight.awaits_connection = !is_connected;
        let waits = in_flight.operation.awaits_document() || !is_connected;
        in_flight.retry_at_ns = waits.then_some(now_ns + CHECK_NS);
        !waits
    }

    #[cold]
    fn note_unexpected(&mut self, client: usize, now_ns: u64) {
        let Some(in_flight) = &self.clients[client].in_flight else {
            return;
        };
        let text = self.generator.unexpected(&in_flight.operation);
        let example = ErrorExample::new(None, "", &text);
        self.note_example(client, OperationError::Expect, now_ns, || example);
    }
}
