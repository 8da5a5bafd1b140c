//! Failed commands of a client: messages, and commands that are sent again.

use super::Clients;
use crate::operation::OperationError;
use dyno_record::error_example::ErrorExample;

impl Clients {
    /// Keeps the message of the failed command in flight, if it is the first of its kind.
    #[cold]
    pub(crate) fn note_example(
        &mut self,
        client: usize,
        error: OperationError,
        now_ns: u64,
        example: impl FnOnce() -> ErrorExample,
    ) {
        let Some(in_flight) = &self.clients[client].in_flight else {
            return;
        };
        let counts_as = in_flight.operation.counts_as;
        self.core.tick(now_ns);
        self.core.part.note_example(counts_as, error, example);
    }

    /// Schedules the command in flight to be sent again after `delay_ns`, unless this is the second attempt or its time
    /// is over.
    #[must_use]
    pub(crate) fn resend(
        &mut self,
        client: usize,
        error: OperationError,
        now_ns: u64,
        delay_ns: u64,
    ) -> bool {
        let Some(in_flight) = &mut self.clients[client].in_flight else {
            return false;
        };
        let may_be_sent = in_flight.resent.is_none()
            && in_flight.retry_at_ns.is_none()
            && self.stopping_since_ns.is_none()
            && now_ns < in_flight.deadline_ns;
        if may_be_sent {
            in_flight.resent = Some(error);
            in_flight.retry_at_ns = Some(now_ns + delay_ns);
            self.core.tick(now_ns);
            self.core.part.counts.retries += 1;
        }
        may_be_sent
    }

    /// The failure after which the command in flight was sent again.
    #[inline]
    pub(crate) fn resent_after(&self, client: usize) -> Option<OperationError> {
        self.clients[client].in_flight.as_ref()?.resent
    }

    /// A random delay of at most `longest_ns`.
    pub(crate) fn random_delay_ns(&mut self, longest_ns: u64) -> u64 {
        self.generator.random_delay_ns(longest_ns)
    }
}
