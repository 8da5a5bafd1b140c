# frozen_string_literal: true

# Detects blind tailable cursors; see "Blind cursors" in drivers/README.md.
class Sight
  # A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages
  # are requested this long after the opening.
  CATCH_UP_NS = 100_000_000
  # Interval of queries for missing messages while a cursor is silent.
  ASK_EVERY_NS = 1_000_000_000
  # A cursor is blind if it still returns nothing this long after a query found messages that it missed.
  BLIND_AFTER_NS = 100_000_000

  # Messages that queries found since the cursor's last one.
  attr_reader :missed

  # This driver hides empty answers; after two waits of the server, a later request has been answered.
  def initialize(await_ms)
    @blind_after_ns = BLIND_AFTER_NS + 2_000_000 * await_ms
    @asked_ns = 0
  end

  def opened(now)
    # Messages sent later cannot have been skipped.
    @after_ns = now + CATCH_UP_NS
    heard(0, now)
  end

  # Records that the cursor returned a message.
  def heard(sent_ns, now)
    @heard_ns = now
    @after_ns = sent_ns if sent_ns > @after_ns
    @missed = 0
    # Send time of the oldest missed message, and when a conclusive one was found.
    @missed_ns = @suspect_ns = nil
  end

  # Whether it is time for a query while the cursor is silent.
  def asks?(now)
    return false if now - @asked_ns < ASK_EVERY_NS

    @asked_ns = now
    true
  end

  # Records that a query found a message that the cursor did not return.
  def found(sent_ns, now)
    @missed += 1
    @missed_ns = [@missed_ns, [sent_ns, @heard_ns].max].compact.min
    @suspect_ns ||= now if sent_ns > @after_ns
  end

  # How long the cursor, which returned nothing since the last query, has been blind; nil if it is not.
  def blind_ns(now)
    now - @missed_ns if @suspect_ns && now - @suspect_ns >= @blind_after_ns
  end
end
